/* store.h: chooses and opens the store. */
#ifndef IL_CLI_STORE_H
#define IL_CLI_STORE_H

#include "base/base.h"
#include "config/config.h"

struct cli;

/* The URL with every password replaced by ***, for display; il__free() it, NULL = out of memory. */
char *il__cli_safe_url(const char *url);

/* Does the store live in one process only, so that it cannot coordinate two? */
bool il__cli_store_is_private(const char *url);
/* Is it on this machine, without a server? */
bool il__cli_store_is_local(const char *url);
/*
 * Opening it failed. Is its server unreachable (down, starting, overloaded), so that a retry may
 * succeed, as opposed to one that answered with a refusal? Unclear errors count as unreachable: the
 * waiting caller reports them.
 */
bool il__cli_store_is_unreachable(const char *url, const il_error *err);
/* IL_OK, or IL_INVAL: the store is a server, and the command cannot be used with one. `why`: the
 * reason, or what to do instead. */
MUST_USE il_status il__cli_store_not_server(const struct cli *cli, const char *why,
                                            il_error *reterr);

/* The options of il_open() from the configuration; they live as long as *cli. `create`: may the
 * store be created? If so, the folder of the default store is created here. */
MUST_USE il_status il__cli_store_prepare(struct cli *cli, bool create, il_open_opts *ret_opts,
                                         il_error *reterr);
/* Prepare, and open as cli->store. A missing default store that may not be created is replaced
 * by an empty one in memory, and cli->store_missing is set. */
MUST_USE il_status il__cli_store_open(struct cli *cli, bool create, il_error *reterr);

/* The store of a command that cooperates with other processes: IL_INVAL for one that lives in this
 * process only. It is not opened yet, but may be created. */
MUST_USE il_status il__cli_shared_store(struct cli *cli, il_open_opts *ret_opts,
                                        const char **ret_url, il_error *reterr);

#endif
