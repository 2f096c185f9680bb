/*
 * queue_raw.c: the hand-written queue of bench/sql/raw_queue.sql. It does what a careful program
 * would: durable commits of a hundred jobs, finished jobs moved out of the way, and a check that
 * the job still belongs to this worker. No leases, retries, groups, rates, priorities or totals.
 */
#include "queue_raw.h"

#include <sqlite3.h>
#include <stdio.h>

#include "bench.h"

#include "bench_sql.inc"

#define WORKER "worker-1"

enum stmt {
    RAW_BEGIN,
    RAW_COMMIT,
    RAW_PUSH,
    RAW_READY,
    RAW_MARK,
    RAW_MOVE,
    RAW_REMOVE,
    RAW_COUNT
};

static const char *const sql[] = {
    [RAW_BEGIN] = sql_raw_begin,       [RAW_COMMIT] = sql_raw_commit, [RAW_PUSH] = sql_raw_job_push,
    [RAW_READY] = sql_raw_job_ready,   [RAW_MARK] = sql_raw_job_mark, [RAW_MOVE] = sql_raw_job_move,
    [RAW_REMOVE] = sql_raw_job_remove,
};
_Static_assert(ARRAY_LEN(sql) == RAW_COUNT, "a text for each statement");

struct raw_queue {
    sqlite3      *db;
    sqlite3_stmt *stmts[RAW_COUNT];
};

static void
check(struct raw_queue *r, bool ok, const char *what)
{
    if (!ok)
        die("raw SQLite queue: %s: %s", what, sqlite3_errmsg(r->db));
}

struct raw_queue *
raw_queue_open(const char *path)
{
    struct raw_queue *r     = must_calloc(1, sizeof *r);
    int               flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;

    check(r, sqlite3_open_v2(path, &r->db, flags, NULL) == SQLITE_OK, "open");
    check(r, sqlite3_exec(r->db, sql_raw_connect, NULL, NULL, NULL) == SQLITE_OK, "connect");
    check(r, sqlite3_exec(r->db, sql_raw_job_create, NULL, NULL, NULL) == SQLITE_OK, "create");
    for (size_t i = 0; i < RAW_COUNT; i++) {
        int rc =
            sqlite3_prepare_v3(r->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &r->stmts[i], NULL);
        check(r, rc == SQLITE_OK, sql[i]);
    }
    return r;
}

void
raw_queue_close(struct raw_queue *r)
{
    for (size_t i = 0; i < RAW_COUNT; i++)
        (void)sqlite3_finalize(r->stmts[i]); /* repeats an error that was already fatal */
    check(r, sqlite3_close(r->db) == SQLITE_OK, "close");
    free(r);
}

/* Execute a statement with bound values that must change n rows. */
static void
run(struct raw_queue *r, enum stmt i, int n_changes)
{
    check(r, sqlite3_step(r->stmts[i]) == SQLITE_DONE, sql[i]);
    check(r, n_changes < 0 || sqlite3_changes(r->db) == n_changes, "rows changed");
    check(r, sqlite3_reset(r->stmts[i]) == SQLITE_OK, sql[i]);
}

static void
bind_text(struct raw_queue *r, enum stmt i, int at, const char *text)
{
    check(r, sqlite3_bind_text(r->stmts[i], at, text, -1, SQLITE_STATIC) == SQLITE_OK, "bind");
}

static void
bind_int(struct raw_queue *r, enum stmt i, int at, int64_t value)
{
    check(r, sqlite3_bind_int64(r->stmts[i], at, value) == SQLITE_OK, "bind");
}

void
raw_queue_push(struct raw_queue *r, char ids[][RAW_ID_BYTES], size_t n, const void *payload,
               size_t payload_bytes)
{
    int64_t now_ms = il__clock_wall_us() / 1000;

    run(r, RAW_BEGIN, -1);
    for (size_t i = 0; i < n; i++) {
        bind_text(r, RAW_PUSH, 1, ids[i]);
        bind_int(r, RAW_PUSH, 2, now_ms);
        check(r,
              sqlite3_bind_blob64(r->stmts[RAW_PUSH], 3, payload, payload_bytes, SQLITE_STATIC) ==
                  SQLITE_OK,
              "bind");
        run(r, RAW_PUSH, 1);
    }
    run(r, RAW_COMMIT, -1);
}

/* Read the next jobs with their payloads, which a worker needs. */
static void
read_ready(struct raw_queue *r, int64_t *numbers, char ids[][RAW_ID_BYTES], size_t n)
{
    sqlite3_stmt *row = r->stmts[RAW_READY];
    size_t        i   = 0;
    char          payload[256];

    bind_int(r, RAW_READY, 1, (int64_t)n);
    while (sqlite3_step(row) == SQLITE_ROW && i < n) {
        size_t n_bytes = MIN((size_t)sqlite3_column_bytes(row, 2), sizeof payload);
        numbers[i]     = sqlite3_column_int64(row, 0);
        (void)snprintf(ids[i++], RAW_ID_BYTES, "%s", (const char *)sqlite3_column_text(row, 1));
        memcpy(payload, sqlite3_column_blob(row, 2), n_bytes);
    }
    check(r, i == n, "not enough jobs");
    check(r, sqlite3_reset(row) == SQLITE_OK, sql[RAW_READY]);
}

void
raw_queue_claim(struct raw_queue *r, char ids[][RAW_ID_BYTES], size_t n)
{
    int64_t  now_ms  = il__clock_wall_us() / 1000;
    int64_t *numbers = must_calloc(n, sizeof *numbers);

    run(r, RAW_BEGIN, -1);
    read_ready(r, numbers, ids, n);
    for (size_t i = 0; i < n; i++) {
        bind_int(r, RAW_MARK, 1, numbers[i]);
        bind_text(r, RAW_MARK, 2, WORKER);
        bind_int(r, RAW_MARK, 3, now_ms);
        run(r, RAW_MARK, 1);
    }
    run(r, RAW_COMMIT, -1);
    free(numbers);
}

void
raw_queue_finish(struct raw_queue *r, char ids[][RAW_ID_BYTES], size_t n)
{
    int64_t now_ms = il__clock_wall_us() / 1000;

    run(r, RAW_BEGIN, -1);
    for (size_t i = 0; i < n; i++) {
        bind_text(r, RAW_MOVE, 1, ids[i]);
        bind_int(r, RAW_MOVE, 2, now_ms);
        bind_text(r, RAW_MOVE, 3, WORKER);
        run(r, RAW_MOVE, 1);
        bind_text(r, RAW_REMOVE, 1, ids[i]);
        run(r, RAW_REMOVE, 1);
    }
    run(r, RAW_COMMIT, -1);
}
