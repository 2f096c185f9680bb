/*
 * race.h: the same command, N times, at once.
 */
#ifndef IL_CLI_RACE_H
#define IL_CLI_RACE_H

#include <sys/types.h>

#include "base/base.h"

struct cli_racer {
    pid_t   pid;
    int     exit_status; /* as a shell shows it: 128 + N for signal N */
    int64_t took_ns;     /* from the start signal to the end */
};

struct cli_race {
    struct cli_racer *racers; /* il__free() */
    size_t            n;
};

/*
 * Fork n processes, let all of them get ready, start `path` with `argv` in all of them at once, and
 * wait for their ends. Their output is thrown away unless `verbose`. The first interrupt reaches
 * the racers through the terminal; the second kills them. IL_OK, or IL_STORE when the machine has
 * no room for them (then none was started), IL_NOMEM.
 */
MUST_USE il_status il__cli_race_run(struct cli_race *race, size_t n, const char *path,
                                    char *const *argv, bool verbose, il_error *reterr);

#endif
