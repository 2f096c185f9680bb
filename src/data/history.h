/*
 * history.h: details of runs, in addition to their row in the store: steps and their
 * attempts, output, and the triggers that joined a run. Stored in the data store: tables
 * il_run_detail, il_run_step, il_run_join (SQLite), run_detail, run_step, run_join (PostgreSQL).
 * Kept as long as the run's row: il__data_history_purge().
 *
 * Written by the server that executes the run, read by all. Writes are idempotent (upserts by key),
 * so that a write whose outcome is unknown can be repeated; all calls block, like those of data.h.
 * Invalid ids (too long, not UTF-8, empty) return IL_INVAL; any other text is truncated if too
 * long, and invalid UTF-8 becomes '?'. An ended attempt (ended_at_ms) stays ended: a late write can
 * only change it to another final state.
 */
#ifndef IL_DATA_HISTORY_H
#define IL_DATA_HISTORY_H

#include "data/data.h"

#define DATA_OUTPUT_BYTES_MAX 65536 /* of a step's stdout, and of its stderr: the tail is kept */
/* of details and of parameters: longer ones become {"omitted_bytes":N} */
#define DATA_DETAILS_BYTES_MAX 65536
#define DATA_STEPS_MAX 2000 /* attempts of steps that a listing shows */
/* joins kept per run: the newest. The run's own n_joined counts all */
#define DATA_JOINS_MAX 100

/* One attempt of a step. */
struct il__data_step {
    const char *tenant;
    const char *run;     /* id */
    uint32_t    n;       /* position of the step in its pipeline, from 0 */
    uint32_t    attempt; /* from 1; 0: the step was not started (SKIPPED, PENDING) */
    const char *step;    /* its id */
    const char *type;    /* "command", "sql", "http", "check" */
    /* "RUNNING", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "INTERRUPTED", "SKIPPED", "WARNING"
     * (failed, and the run continues) */
    const char *state;
    int64_t     level;                      /* of the graph, from 0 */
    int64_t     started_at_ms, ended_at_ms; /* 0 = not yet */
    int64_t     exit_code;                  /* of a command; 128 + signal; HTTP status; -1 = none */
    const char *error;                      /* "" = none; IL_TEXT_BYTES_MAX */
    const char *out, *err;                  /* tails, valid UTF-8 without NUL */
    int64_t     out_bytes, err_bytes;       /* written in all */
    const char *details; /* JSON object: check results, rows changed, …; "" = none */
};

struct il__data_detail { /* one per run */
    const char *tenant;
    const char *run;
    const char *pipeline; /* or the subject of another app's run */
    const char *version;
    const char *node;       /* the executing server: host:pid */
    const char *parameters; /* JSON object */
    int64_t     renewals;   /* of its lease, so far */
    int64_t     renewed_at_ms;
    int64_t     created_at_ms; /* for the purge */
};

struct il__data_join { /* a trigger that joined an existing run and got its id */
    const char *tenant;
    const char *run;
    int64_t     at_ms;
    const char *by;
    const char *trigger;    /* "api", "cli", "schedule" */
    const char *request_id; /* with at_ms its key: a repeated write adds no second row */
};

/* One commit about runs of one class (their keys are CLASS:NAME). Any of the counts may be 0. */
il_status il__data_history_write(struct il__data *d, const char *run_class,
                                 const struct il__data_detail *details, size_t n_details,
                                 const struct il__data_step *steps, size_t n_steps,
                                 const struct il__data_join *joins, size_t n_joins,
                                 il_error *reterr) MUST_USE;

typedef void il__data_step_fn(void *cookie, const struct il__data_step *step);
typedef void il__data_detail_fn(void *cookie, const struct il__data_detail *detail);
typedef void il__data_join_fn(void *cookie, const struct il__data_join *join);

/* IL_OK also if there are none. Steps sorted by n, then attempt; without with_output, out and err
 * are "". Joins: oldest first. */
il_status il__data_history_detail(struct il__data *d, const char *tenant, const char *run,
                                  il__data_detail_fn *each, void *cookie, il_error *reterr)
    MUST_USE;
il_status il__data_history_steps(struct il__data *d, const char *tenant, const char *run,
                                 bool with_output, il__data_step_fn *each, void *cookie,
                                 il_error *reterr) MUST_USE;
il_status il__data_history_joins(struct il__data *d, const char *tenant, const char *run,
                                 il__data_join_fn *each, void *cookie, il_error *reterr) MUST_USE;
/* The attempts of one step, with their output. */
il_status il__data_history_step(struct il__data *d, const char *tenant, const char *run,
                                const char *step, il__data_step_fn *each, void *cookie,
                                il_error *reterr) MUST_USE;
/*
 * Add up the storage of a tenant's runs, at most `limit` of them (1,000), after the run `after` (""
 * = from the first). ret->last: the last one; "" = no more.
 */
struct il__data_usage {
    uint64_t n_rows, n_bytes;
    char     last[IL_ID_BYTES_MAX + 1];
};
il_status il__data_history_usage(struct il__data *d, const char *tenant, const char *after,
                                 uint32_t limit, struct il__data_usage *ret, il_error *reterr)
    MUST_USE;
/* Purge runs of this class created before this time: each class is kept for a time of its own. At
 * most 1,000 per call, in short transactions. *ret_n = the number purged, even if it failed
 * half-way; less than 1,000 means all (except runs that another server is writing at that
 * moment). */
il_status il__data_history_purge(struct il__data *d, const char *run_class, int64_t older_than_ms,
                                 uint64_t *ret_n, il_error *reterr) MUST_USE;

#endif
