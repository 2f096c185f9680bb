/*
 * history.h: what is known of pipeline runs beside their row in the store: steps and their attempts, output, which triggers joined a run. In the data store: tables il_run_detail, il_run_step, il_run_join (SQLite), run_detail,
 * run_step, run_join (PostgreSQL). Kept as long as the run's row: il__data_history_purge().
 *
 * Written by the server that executes the run, read by all. Writes are idempotent (an upsert by their key), so that a write whose outcome is unknown can be repeated; all calls block, as those of data.h.
 * Ids that are not ones (too long, not UTF-8, empty) are IL_INVAL; every other text is cut if it is too long, and what is not UTF-8 in it becomes '?'. An attempt that has ended
 * (ended_at_ms) stays so: a write that comes late changes it only to another end.
 */
#ifndef IL_DATA_HISTORY_H
#define IL_DATA_HISTORY_H

#include "data/data.h"

#define DATA_OUTPUT_BYTES_MAX 65536 /* of a step's stdout, and of its stderr: the tail is kept */
#define DATA_DETAILS_BYTES_MAX \
    65536 /* of details, and of parameters: what is longer becomes {"omitted_bytes":N} */
#define DATA_STEPS_MAX 2000 /* attempts of steps that a listing shows */
#define DATA_JOINS_MAX \
    100 /* of a run that are kept: the newest. The run's own n_joined counts all */

/* One attempt of a step. */
struct il__data_step {
    const char *tenant;
    const char *run;     /* id */
    uint32_t    n;       /* place of the step in its pipeline, from 0 */
    uint32_t    attempt; /* from 1; 0: the step was not begun (SKIPPED, PENDING) */
    const char *step;    /* its id */
    const char *type;    /* "command", "sql", "http", "check" */
    const char *state; /* "RUNNING", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "INTERRUPTED", "SKIPPED", "WARNING" (failed, and the run goes on) */
    int64_t     level; /* of the graph, from 0 */
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
    const char *pipeline;
    const char *version;
    const char *node;       /* who executes it: host:pid */
    const char *parameters; /* JSON object */
    int64_t     renewals;   /* of its lease, so far */
    int64_t     renewed_at_ms;
    int64_t     created_at_ms; /* for the purge */
};

struct il__data_join { /* a trigger that was told the id of a run that was there already */
    const char *tenant;
    const char *run;
    int64_t     at_ms;
    const char *by;
    const char *trigger;    /* "api", "cli", "schedule" */
    const char *request_id; /* with at_ms its key: a repetition is no second one */
};

/* One commit. Any of the counts may be 0. */
il_status il__data_history_write(struct il__data *d, const struct il__data_detail *details,
                                 size_t n_details, const struct il__data_step *steps,
                                 size_t n_steps, const struct il__data_join *joins, size_t n_joins,
                                 il_error *reterr) MUST_USE;

typedef void il__data_step_fn(void *cookie, const struct il__data_step *step);
typedef void il__data_detail_fn(void *cookie, const struct il__data_detail *detail);
typedef void il__data_join_fn(void *cookie, const struct il__data_join *join);

/* IL_OK also when there is nothing. Steps in order of n, then attempt; with_output: else out and err are "". Joins: oldest first. */
il_status il__data_history_detail(struct il__data *d, const char *tenant, const char *run,
                                  il__data_detail_fn *each, void *cookie, il_error *reterr) MUST_USE;
il_status il__data_history_steps(struct il__data *d, const char *tenant, const char *run,
                                 bool with_output, il__data_step_fn *each, void *cookie,
                                 il_error *reterr) MUST_USE;
il_status il__data_history_joins(struct il__data *d, const char *tenant, const char *run,
                                 il__data_join_fn *each, void *cookie, il_error *reterr) MUST_USE;
/* The attempts of one step, with their output. */
il_status il__data_history_step(struct il__data *d, const char *tenant, const char *run,
                                const char *step, il__data_step_fn *each, void *cookie,
                                il_error *reterr) MUST_USE;
/* Forget runs created before; at most 1,000 a call, in transactions that are short. *ret_n = how many, also when it failed half-way; what is less than 1,000 was all (but for
 * runs that somebody else is writing of at this moment). */
il_status il__data_history_purge(struct il__data *d, int64_t older_than_ms, uint64_t *ret_n,
                                 il_error *reterr) MUST_USE;

#endif
