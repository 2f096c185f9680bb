/*
 * run.h: a command under a lease: `interlock run`, `once` and `cache get`.
 *
 * The command line is parsed in cli/cmd_*.c; what happens then is here: run.c (the wrapper), hold_*.c (what the command
 * is run under: a lease, a recorded run, the claim of an idempotency key, a build), reaper.c (the process between wrapper
 * and command), stop.c (ending a process tree), pump.c (passing output on), join.c and spool.c (--on-conflict join).
 */
#ifndef IL_CLI_RUN_RUN_H
#define IL_CLI_RUN_RUN_H

#include "base/base.h"

enum il__run_conflict {
    IL__RUN_REJECT, /* somebody else holds the key: exit status 75 */
    IL__RUN_SKIP,   /* ...: exit status 0, nothing is run */
    IL__RUN_JOIN,   /* ...: wait for the running one, give its output and exit status */
    /* Of recorded runs only: */
    IL__RUN_QUEUE,           /* wait for its turn */
    IL__RUN_REPLACE_PENDING, /* cancel those that wait, and wait in their place */
    IL__RUN_CANCEL_RUNNING,  /* and ask the running one to stop */
};

/* What the command is run under. */
enum il__run_kind {
    IL__RUN_LEASE,
    IL__RUN_RECORD, /* a run that the store keeps: log, end */
    IL__RUN_ONCE,   /* the claim of an idempotency key; its output and exit status are the answer */
    IL__RUN_BUILD,  /* the right to build a cached value: its output */
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
    enum il__run_kind     kind;
    int64_t               keep_ms; /* RECORD: after its end; ONCE: the answer */
    struct {
        const char *trigger;
        const char *by; /* NULL = this user */
    } record;
    struct {
        unsigned char fingerprint[IL_FINGERPRINT_BYTES_MAX];
        size_t        fingerprint_bytes;
        bool          only_success;
    } once;
    struct {
        int64_t fresh_ms;
        int64_t stale_ms;
        int64_t negative_ms; /* 0 = a failure is not kept */
        bool    stale_if_error;
    } build;
};

/* Run it. Returns the exit status of the interlock process. */
int il__run(const struct il__run_opts *opts);

/*
 * Print a cached value. Returns the exit status: 0, or of a negative one its code; CLI_EXIT_IO when stdout does not take
 * it.
 */
int il__run_print_value(const il_op *op);

#endif
