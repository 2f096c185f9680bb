/*
 * wrap.h: runs a command under a lease: `interlock run`, `once` and `cache get`.
 *
 * cli/cmd_*.c parse the command line; the work is done here. The process between wrapper and
 * command, and how a process tree is ended, are in src/proc.
 *
 *   wrap.c            the wrapper, from the options to the exit status
 *   hold_lease.c      what the command runs under: a lease
 *   hold_record.c     ... or a recorded run
 *   hold_once.c       ... or the claim of an idempotency key
 *   hold_build.c      ... or a build of a cached value
 *   supervise.c       while the command runs
 *   signals.c         signals sent to the wrapper, also while it waits for the store
 *   conclude.c        after the command's end: its status and the messages about it
 *   bounded_call.c    giving back when the store does not answer
 *   holder_text.c     says who holds a key
 *   report_refusal.c  reports a refusal to the store, for the key's history
 *   meta.c            the meta of a lease, which describes its holder
 *   pump.c            passes output on
 *   capture.c         keeps output in memory, for an answer or a value
 *   log.c             writes output to the store
 *   spool.c           keeps output in a file, for --on-conflict join
 *   spool_read.c      reads that
 *   join.c            --on-conflict join
 */
#ifndef IL_CLI_WRAP_WRAP_H
#define IL_CLI_WRAP_WRAP_H

#include "cli/hook.h"

enum wrap_conflict {
    WRAP_REJECT, /* the key is held: exit status 75 */
    WRAP_SKIP,   /* ...: exit status 0, nothing is run */
    WRAP_JOIN,   /* ...: wait for the running one, return its output and exit status */
    /* For recorded runs only: */
    WRAP_QUEUE,           /* wait for its turn */
    WRAP_REPLACE_PENDING, /* cancel pending runs, and wait in their place */
    WRAP_CANCEL_RUNNING,  /* and ask the running one to stop */
};

/* What the command runs under. */
enum wrap_kind {
    WRAP_LEASE,
    WRAP_RECORD, /* a run recorded in the store: log, end */
    WRAP_ONCE,   /* the claim of an idempotency key; its output and exit status are the answer */
    WRAP_BUILD,  /* the right to build a cached value, which is its output */
};

struct wrap_opts {
    const char             *store_url;
    const il_open_opts     *open_opts; /* tenant, ranks, timeout */
    const char             *key;
    const char             *holder; /* NULL = generated */
    char                  **argv;   /* the command, NULL-terminated, at least one */
    int64_t                 ttl_ms;
    int64_t                 wait_ms;    /* 0, a time, IL_FOREVER */
    int64_t                 timeout_ms; /* time limit of the command; 0 = none */
    int64_t                 grace_ms;   /* between TERM and KILL; at most a third of the TTL */
    int64_t                 settle_ms;
    il_mode                 mode;
    uint32_t                permits;
    enum wrap_conflict      on_conflict;
    int                     conflict_exit; /* 75, or the value of -E */
    bool                    quiet;         /* no messages on stderr except errors */
    bool                    json;          /* one JSON object about the run on stderr at the end */
    enum wrap_kind          kind;
    const struct cli_hooks *hooks;   /* NULL = none */
    int64_t                 keep_ms; /* RECORD: after its end; ONCE: the answer */
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

/* Run the command. Returns the exit status of the interlock process. */
int wrap_command(const struct wrap_opts *opts);

/* Print a cached value. Returns the exit status: 0, or the code of a negative value; CLI_EXIT_IO
 * if stdout cannot be written. */
int wrap_print_value(const il_op *op);

#endif
