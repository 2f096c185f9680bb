/*
 * raw.c: runs the statements of bench/sql/raw_lock.sql, prepared once.
 */
#include "raw.h"

#include <sqlite3.h>

#include "bench.h"

#include "bench_sql.inc"

#define TENANT "default"

enum stmt {
    RAW_BEGIN,
    RAW_COMMIT,
    RAW_FENCE,
    RAW_ACQUIRE,
    RAW_RELEASE,
    RAW_COUNT
};

static const char *const sql[] = {
    [RAW_BEGIN] = sql_raw_begin,     [RAW_COMMIT] = sql_raw_commit,   [RAW_FENCE] = sql_raw_fence,
    [RAW_ACQUIRE] = sql_raw_acquire, [RAW_RELEASE] = sql_raw_release,
};
_Static_assert(ARRAY_LEN(sql) == RAW_COUNT, "a text for each statement");

struct raw {
    sqlite3      *db;
    sqlite3_stmt *stmts[RAW_COUNT];
};

static void
check(struct raw *r, bool ok, const char *what)
{
    if (!ok)
        die("raw SQLite loop: %s: %s", what, sqlite3_errmsg(r->db));
}

struct raw *
raw_open(const char *path)
{
    struct raw *r = must_calloc(1, sizeof *r);

    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    check(r, sqlite3_open_v2(path, &r->db, flags, NULL) == SQLITE_OK, "open");
    check(r, sqlite3_exec(r->db, sql_raw_connect, NULL, NULL, NULL) == SQLITE_OK, "connect");
    check(r, sqlite3_exec(r->db, sql_raw_create, NULL, NULL, NULL) == SQLITE_OK, "create");
    for (size_t i = 0; i < RAW_COUNT; i++) {
        int rc =
            sqlite3_prepare_v3(r->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &r->stmts[i], NULL);
        check(r, rc == SQLITE_OK, sql[i]);
    }
    return r;
}

void
raw_close(struct raw *r)
{
    for (size_t i = 0; i < RAW_COUNT; i++)
        (void)sqlite3_finalize(r->stmts[i]); /* repeats an error that was already fatal */
    check(r, sqlite3_close(r->db) == SQLITE_OK, "close");
    free(r);
}

/* Execute a statement with bound values; returns the number in its row, if any. */
static int64_t
run(struct raw *r, enum stmt i)
{
    sqlite3_stmt *s     = r->stmts[i];
    int64_t       value = 0;
    int           rc    = sqlite3_step(s);

    if (rc == SQLITE_ROW) {
        value = sqlite3_column_int64(s, 0);
        rc    = sqlite3_step(s);
    }
    check(r, rc == SQLITE_DONE, sql[i]);
    check(r, sqlite3_reset(s) == SQLITE_OK, sql[i]);
    return value;
}

static void
bind_text(struct raw *r, enum stmt stmt, int i, const char *text)
{
    check(r, sqlite3_bind_text(r->stmts[stmt], i, text, -1, SQLITE_STATIC) == SQLITE_OK, "bind");
}

static void
bind_int(struct raw *r, enum stmt stmt, int i, int64_t value)
{
    check(r, sqlite3_bind_int64(r->stmts[stmt], i, value) == SQLITE_OK, "bind");
}

void
raw_begin(struct raw *r)
{
    IGNORE(run(r, RAW_BEGIN)); /* gives no row */
}

void
raw_commit(struct raw *r)
{
    IGNORE(run(r, RAW_COMMIT)); /* gives no row */
}

int64_t
raw_acquire(struct raw *r, const char *key, const char *holder, int64_t ttl_ms)
{
    int64_t now_ms = il__clock_boot_ns() / IL__NS_PER_MS;
    int64_t fence  = run(r, RAW_FENCE);

    bind_text(r, RAW_ACQUIRE, 1, TENANT);
    bind_text(r, RAW_ACQUIRE, 2, key);
    bind_text(r, RAW_ACQUIRE, 3, holder);
    bind_int(r, RAW_ACQUIRE, 4, fence);
    bind_int(r, RAW_ACQUIRE, 5, now_ms + ttl_ms);
    bind_int(r, RAW_ACQUIRE, 6, now_ms);
    IGNORE(run(r, RAW_ACQUIRE)); /* gives no row */
    check(r, sqlite3_changes(r->db) == 1, "the key is held");
    return fence;
}

void
raw_release(struct raw *r, const char *key, const char *holder, int64_t fence)
{
    bind_text(r, RAW_RELEASE, 1, TENANT);
    bind_text(r, RAW_RELEASE, 2, key);
    bind_text(r, RAW_RELEASE, 3, holder);
    bind_int(r, RAW_RELEASE, 4, fence);
    IGNORE(run(r, RAW_RELEASE)); /* gives no row */
    check(r, sqlite3_changes(r->db) == 1, "the lease is lost");
}

static void
next(struct raw *r, struct caller *c, bool alone)
{
    int64_t fence = raw_acquire(r, c->names.key, c->names.holder, IL_TTL_MS_DEFAULT);

    if (alone)
        raw_commit(r); /* the release is a single statement, and so its own transaction */
    raw_release(r, c->names.key, c->names.holder, fence);
    names_next(&c->names);
}

unsigned
raw_pair(void *cookie, struct caller *c)
{
    struct raw *r = cookie;

    raw_begin(r);
    next(r, c, true);
    return 1;
}

unsigned
raw_pairs(void *cookie, struct caller *c)
{
    struct raw *r = cookie;

    raw_begin(r);
    for (unsigned i = 0; i < RAW_PAIRS_PER_COMMIT; i++)
        next(r, c, false);
    raw_commit(r);
    return RAW_PAIRS_PER_COMMIT;
}
