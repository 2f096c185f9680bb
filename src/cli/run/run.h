/*
 * run.h: `interlock run`: a command under a lease.
 *
 * The command line is parsed in cli/cmd_run.c; what happens then is here: run.c (the wrapper),
 * reaper.c (the process between wrapper and command), stop.c (ending a process tree), join.c,
 * spool.c and pump.c (--on-conflict join).
 */
#ifndef IL_CLI_RUN_RUN_H
#define IL_CLI_RUN_RUN_H

#include "base/base.h"

enum il__run_conflict {
    IL__RUN_REJECT, /* somebody else holds the key: exit status 75 */
    IL__RUN_SKIP,   /* ...: exit status 0, nothing is run */
    IL__RUN_JOIN,   /* ...: wait for the running one, give its output and exit status */
};

struct il__run_opts {
    const char           *store_url;
    const il_open_opts   *open_opts; /* tenant, ranks, timeout */
    const char           *key;
    const char           *holder; /* NULL = made here */
    char                **argv;   /* the command, NULL-terminated, at least one */
    int64_t               ttl_ms;
    int64_t               wait_ms;    /* 0, a time, IL_FOREVER */
    int64_t               timeout_ms; /* 0 = none: the command may take this long */
    int64_t               grace_ms;   /* between TERM and KILL; at most a third of the TTL */
    int64_t               settle_ms;
    il_mode               mode;
    uint32_t              permits;
    enum il__run_conflict on_conflict;
    int                   conflict_exit; /* 75, or what -E says */
    bool                  quiet;         /* no messages of our own on stderr, only errors */
    bool                  json;          /* one JSON object about the run on stderr at the end */
};

/* Run it. Returns the exit status of the interlock process. */
int il__run(const struct il__run_opts *opts);

#endif
