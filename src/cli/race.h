/* race.h: starts N copies of a command at the same moment. */
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
    int               stopped_by; /* the first INT or TERM received; 0 = none */
};

/*
 * Fork n processes, wait until all of them are ready, start `path` with `argv` in all of them at
 * once, and wait until they exit. Their output is discarded unless `verbose`. The first interrupt
 * reaches the racers through the terminal; the second kills them. IL_OK; IL_STORE if they cannot be
 * started, IL_CANCELLED if a signal came first (in both cases no command has run); IL_NOMEM.
 */
MUST_USE il_status il__cli_race_run(struct cli_race *race, size_t n, const char *path,
                                    char *const *argv, bool verbose, il_error *reterr);

#endif
