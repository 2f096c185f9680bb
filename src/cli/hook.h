/*
 * hook.h: the hooks of `run` and `queue work`: on_success, on_failure, on_lost. src/proc/hook.h
 * runs them.
 */
#ifndef IL_CLI_HOOK_H
#define IL_CLI_HOOK_H

#include "cli/cli.h"
#include "proc/hook.h"

enum cli_hook_event {
    CLI_HOOK_SUCCESS,
    CLI_HOOK_FAILURE,
    CLI_HOOK_LOST,
    CLI_HOOK_COUNT
};

/* The command of each; NULL = none. */
struct cli_hooks {
    char **argv[CLI_HOOK_COUNT];
};

/*
 * Read the commands. A text that begins with `[` is a JSON array of strings; any other text is a
 * program without arguments. IL_OK, IL_INVAL. il__cli_hooks_release() in any case.
 */
il_status il__cli_hooks_take(const struct cli *cli, struct cli_hooks *ret, il_error *reterr)
    MUST_USE;
void il__cli_hooks_release(struct cli_hooks *hooks);

/* "success", ... */
const char *il__cli_hook_event(enum cli_hook_event event);

/*
 * Call the hook of an event, if there is one, with h->facts, which begin with the event. h->argv is
 * set here. A failure is reported on stderr after `who`. Returns whether all is well.
 */
bool il__cli_hook_call(const struct cli_hooks *hooks, enum cli_hook_event event, struct il__hook *h,
                       const char *who);

#endif
