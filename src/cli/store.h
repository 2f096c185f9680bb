/* store.h: chooses and opens the store. */
#ifndef IL_CLI_STORE_H
#define IL_CLI_STORE_H

#include "base/base.h"

struct cli;

/*
 * The URL that `text` stands for: a text without a scheme is the path of a SQLite file, `~/` is the
 * home folder, and a relative path is relative to `folder` (NULL = the current one, left relative).
 * il__free() it; NULL if out of memory or if there is no home folder.
 */
char *il__cli_store_url(const char *text, const char *folder);
/* What has no scheme is a path, and messages show paths. Is this one rather a URL with something
 * before it, or the parameters of libpq? Then refuse it without showing it: it may contain a
 * password. */
bool il__cli_store_is_odd(const char *url);
/* sqlite: and interlock/interlock.db in the user's state folder; NULL as above. */
char *il__cli_store_default(void);

/* The URL with every password replaced by ***, for display; il__free() it, NULL = out of memory. */
char *il__cli_safe_url(const char *url);

/* Does the store live in one process only, so that it cannot coordinate two? */
bool il__cli_store_is_private(const char *url);
/* Is it on this machine, without a server? */
bool il__cli_store_is_local(const char *url);
/*
 * Opening it failed. Is its server away (not started yet, starting, unreachable), so that a retry
 * may succeed, as opposed to one that answered with a refusal? Unclear errors count as away: the
 * waiting caller reports them.
 */
bool il__cli_store_is_away(const char *url, const il_error *err);
/* Is it another Interlock, over HTTP? */
bool il__cli_store_is_server(const char *url);
/* IL_OK, or IL_INVAL: the store of `command` is a server, which does not support `what`. */
MUST_USE il_status il__cli_store_not_server(const struct cli *cli, const char *what,
                                            il_error *reterr);

/* The folder named by `$variable`, else `below` in the home folder (XDG rules); il__free() it or
 * NULL. */
char *il__cli_xdg_folder(const char *variable, const char *below);

/* The options of il_open() from the configuration; they live as long as *cli. `create`: may the
 * store be created? If so, the folder of the default store is created here. */
MUST_USE il_status il__cli_store_prepare(struct cli *cli, bool create, il_open_opts *ret_opts,
                                         il_error *reterr);
/* Prepare, and open as cli->store. A missing default store that may not be created is replaced
 * by an empty one in memory, and cli->store_missing is set. */
MUST_USE il_status il__cli_store_open(struct cli *cli, bool create, il_error *reterr);

#endif
