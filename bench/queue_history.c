/*
 * queue_history.c: does the cost of a job grow with the number of ended jobs? The same work
 * alternately on a store with 1,000,000 finished jobs and on one with none.
 */
#include <sqlite3.h>

#include "load.h"
#include "queue.h"

#include "bench_sql.inc"

#define N_HISTORY 1000000

/* Push, claim and finish, ns per job. */
static double
cycle_round(void *cookie)
{
    struct jobs *j       = cookie;
    int64_t      took_ns = 0;

    for (unsigned i = 0; i < j->n_batches; i++) {
        queue_ids(j->ids);
        int64_t start_ns = il__clock_boot_ns();
        jobs_push(j);
        jobs_claim(j);
        jobs_finish(j);
        took_ns += il__clock_boot_ns() - start_ns;
    }
    return (double)took_ns / (j->n_batches * QUEUE_BATCH);
}

static void
run_with_number(sqlite3 *db, const char *sql, int64_t value)
{
    sqlite3_stmt *stmt = NULL;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK ||
        (sqlite3_bind_parameter_count(stmt) > 0 &&
         sqlite3_bind_int64(stmt, 1, value) != SQLITE_OK) ||
        sqlite3_step(stmt) != SQLITE_DONE)
        die("filling the history: %s", sqlite3_errmsg(db));
    (void)sqlite3_finalize(stmt); /* it has reported that it is done */
}

/* Straight into the tables of an otherwise unused store: through the library it would take longer
 * than the benchmark. */
static void
fill(const struct jobs *j, int64_t n)
{
    sqlite3 *db = NULL;

    if (sqlite3_open(j->path, &db) != SQLITE_OK)
        die("%s: %s", j->path, sqlite3_errmsg(db));
    run_with_number(db, sql_raw_begin, 0);
    run_with_number(db, sql_fill_history, n);
    run_with_number(db, sql_fill_history_ends, 0);
    run_with_number(db, sql_fill_history_ticket, n);
    run_with_number(db, sql_raw_commit, 0);
    if (sqlite3_close(db) != SQLITE_OK)
        die("%s: cannot be closed", j->path);
}

void
bench_queue_history(struct bench *b, unsigned unused UNUSED)
{
    struct result r = {
        .name         = "queue-history",
        .what         = "push, claim and finish in batches of 100, beside 1,000,000 finished jobs",
        .against      = "the same without a history",
        .durability   = BENCH_FULL,
        .unit         = UNIT_NS,
        .wanted       = WANTED_RATIO_AT_MOST,
        .wanted_value = 1.5
    };
    struct jobs *large = must_calloc(1, sizeof *large);
    struct jobs *small = must_calloc(1, sizeof *small);
    unsigned     n     = b->quick ? 2 : 50;

    /* The queue is created first, so that it gets number 1. */
    jobs_open(large, b, "large.db", 1);
    jobs_open(small, b, "small.db", n);
    IGNORE(cycle_round(large) > 0);
    il_close(large->store);
    fill(large, b->quick ? 1000 : N_HISTORY);
    jobs_open(large, b, "large.db", n);
    compare(&r, b->n_rounds, (struct side){ cycle_round, large },
            (struct side){ cycle_round, small });
    jobs_close(large);
    jobs_close(small);
    free(large);
    free(small);
    report_add(&b->report, &r);
}
