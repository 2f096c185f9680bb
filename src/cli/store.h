/*
 * store.h: which store, and opening it.
 */
#ifndef IL_CLI_STORE_H
#define IL_CLI_STORE_H

#include "base/base.h"

struct cli;

/*
 * The URL that `text` means: a text without a scheme is the path of a SQLite file, `~/` is the home
 * folder, a relative path is one in `folder` (NULL = the current one, left relative). il__free()
 * it; NULL when out of memory or when there is no home folder to be found.
 */
char *il__cli_store_url(const char *text, const char *folder);
/* sqlite: and interlock/interlock.db in the user's state folder; NULL as above. */
char *il__cli_store_default(void);

/*
 * The URL with every password in it replaced by ***, for people to see; il__free() it, NULL = no
 * memory.
 */
char *il__cli_safe_url(const char *url);

/* Does the store live in one process only, so that it cannot keep two apart? */
bool il__cli_store_is_private(const char *url);
/* Is it another Interlock, over HTTP? */
bool il__cli_store_is_server(const char *url);
/* IL_OK, or IL_INVAL: the store of `command` is a server, which cannot be asked for `what`. */
MUST_USE il_status il__cli_store_not_server(const struct cli *cli, const char *what, il_error *reterr);

/*
 * The folder that `$variable` names, else `below` in the home folder (XDG rules); il__free() it or
 * NULL.
 */
char *il__cli_xdg_folder(const char *variable, const char *below);

/*
 * What il_open() needs beside the URL, from the configuration; it lives as long as *cli. `create`:
 * may the store be made? The folder of the default store is made here when it may.
 */
MUST_USE il_status il__cli_store_prepare(struct cli *cli, bool create, il_open_opts *ret_opts,
                                         il_error *reterr);
/*
 * Prepare, and open as cli->store. A default store that is not there and may not be made is an empty
 * one in memory, and cli->store_missing is set.
 */
MUST_USE il_status il__cli_store_open(struct cli *cli, bool create, il_error *reterr);

#endif
