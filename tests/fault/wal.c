/*
 * wal.c: the WAL with overlapping reads, so that some process is always reading. It must not grow
 * beyond 100 MB, and shrinks afterwards. Then a process stopped in the middle of a read, for which
 * the WAL must grow: no other process waits for it, and the WAL shrinks after it exits.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault/integrity.h"
#include "harness/clock.h"
#include "harness/proc.h"
#include "harness/tmp.h"
#include "harness/unit.h"

#define VALUE_BYTES 1000000
#define N_COMMITS 90 /* of each writer, a value each: together far more than the WAL may hold */
#define N_LARGE 120  /* values of one batch */
#define WAL_BYTES_MAX 100000000
#define WAL_BYTES_KEPT 44000000    /* 40 MiB, and what the commit after the new start has written */
#define WAL_BYTES_WAITING 49440000 /* 12,000 frames: a checkpoint waits for readers */
#define LIMIT_MS 60000

static char dir[T_PATH_BYTES];
static char url[T_PATH_BYTES];
static char path[T_PATH_BYTES];
static char value[VALUE_BYTES];

static void
set_up(void)
{
    il *h = NULL;

    t_tmp_make_on_disk(dir); /* it needs 200 MB */
    t_path(path, "%s/x.db", dir);
    t_path(url, "sqlite:%s", path);
    T_EQ(il_open(url, NULL, &h, NULL), IL_OK);
    il_close(h);
}

static int64_t
wal_bytes(void)
{
    char        name[T_PATH_BYTES];
    struct stat st;

    t_path(name, "%s-wal", path);
    return stat(name, &st) == 0 ? (int64_t)st.st_size : 0;
}

/* ---- readers ------------------------------------------------------------------------------- */

static void
begin_read(sqlite3 *db)
{
    CHECK(sqlite3_exec(db, "BEGIN; SELECT fence FROM il_state", NULL, NULL, NULL) == SQLITE_OK);
}

/* Two connections take turns, and one begins before the other ends: there is always a read. */
static int
read_without_a_gap(void *arg UNUSED)
{
    sqlite3 *db[2];

    for (unsigned i = 0; i < ARRAY_LEN(db); i++) {
        CHECK(sqlite3_open_v2(path, &db[i], SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
        CHECK(sqlite3_busy_timeout(db[i], LIMIT_MS) == SQLITE_OK);
    }
    begin_read(db[0]);
    (void)printf("reading\n");
    (void)fflush(stdout);
    for (unsigned i = 1;; i = 1 - i) {
        begin_read(db[i]);
        (void)usleep(1000);
        CHECK(sqlite3_exec(db[1 - i], "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
    }
}

static int
read_and_stay(void *arg UNUSED)
{
    sqlite3 *db = NULL;

    CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
    begin_read(db);
    (void)printf("reading\n");
    (void)fflush(stdout);
    for (;;)
        (void)pause();
}

/* ---- writers ------------------------------------------------------------------------------- */

static void
apply(il *h, il_op *op)
{
    il_error err = { 0 };

    if (il_apply(h, op, 1, &err) != IL_OK || op->status != IL_OK) {
        (void)printf("failed: %s %s\n", err.message, il_status_name(op->status));
        _exit(1);
    }
    il_op_release(op);
}

/* One commit of a value, through the store. */
static void
write_value(il *h, const char *key)
{
    il_op drop = { .type = IL_OP_CACHE_DROP, .key = key };
    il_op look = { .type = IL_OP_CACHE_LOOKUP, .key = key, .holder = key };
    il_op fill = { .type = IL_OP_CACHE_FILL, .key = key, .holder = key };

    IGNORE(il_apply(h, &drop, 1, NULL)); /* the first time nothing is there */
    il_op_release(&drop);
    CHECK(il_apply(h, &look, 1, NULL) == IL_OK && look.status == IL_LEAD);
    fill.fence                = look.out.fence;
    fill.in.cache.value       = value;
    fill.in.cache.value_bytes = sizeof value;
    fill.in.cache.ttl_ms      = 60000;
    il_op_release(&look);
    apply(h, &fill);
}

/* The same in a transaction of the caller's own. */
static void
write_own(il *h, sqlite3 *db)
{
    il_tx *tx = NULL;

    CHECK(il_tx_begin(h, db, &tx, NULL) == IL_OK);
    CHECK(sqlite3_exec(db,
                       "CREATE TABLE IF NOT EXISTS own (id INTEGER PRIMARY KEY, x BLOB);"
                       "REPLACE INTO own VALUES (1, randomblob(1000000))",
                       NULL, NULL, NULL) == SQLITE_OK);
    CHECK(il_tx_commit(tx, NULL) == IL_OK);
}

/* Its largest WAL is its last line. arg: the key to write, or NULL for transactions of its own. */
static int
write_many(void *arg)
{
    il      *h   = NULL;
    sqlite3 *db  = NULL;
    int64_t  max = 0;

    CHECK(il_open(url, NULL, &h, NULL) == IL_OK);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    for (unsigned i = 0; i < N_COMMITS; i++) {
        if (arg != NULL)
            write_value(h, arg);
        else
            write_own(h, db);
        max = MAX(max, wal_bytes());
    }
    (void)printf("largest %" PRId64 "\n", max);
    CHECK(sqlite3_close(db) == SQLITE_OK);
    il_close(h);
    return 0;
}

/* Write until it is killed. */
static int
write_on(void *arg)
{
    il *h = NULL;

    CHECK(il_open(url, NULL, &h, NULL) == IL_OK);
    for (;;)
        write_value(h, arg);
}

/* A few commits, and the WAL has its usual size again. */
static void
shrinks(void)
{
    il *h = NULL;

    T_EQ(il_open(url, NULL, &h, NULL), IL_OK);
    for (unsigned i = 0; i < 10 || wal_bytes() > WAL_BYTES_KEPT; i++) {
        T_LESS(i, 80); /* what fits below the mark where a checkpoint is taken anyway */
        write_value(h, "after");
    }
    il_close(h);
    T_TRUE(db_is_whole(path));
}

/* ---- tests --------------------------------------------------------------------------------- */

static void
largest_of(struct t_proc *p)
{
    char    line[T_PROC_LINE_BYTES];
    int64_t n;

    T_LINE(p, "largest ", LIMIT_MS, line);
    T_EQ(t_proc_exit(p, LIMIT_MS), 0);
    n = strtoll(line + strlen("largest "), NULL, 10);
    print_message("# at most %" PRId64 " bytes\n", n);
    T_LESS(n, WAL_BYTES_MAX);
    t_proc_release(p);
}

U_TEST(reads_that_overlap_let_a_checkpoint_pass)
{
    struct t_proc readers[2], writers[2];
    char          key[] = "k";

    set_up();
    for (unsigned i = 0; i < ARRAY_LEN(readers); i++) {
        t_proc_fork(&readers[i], read_without_a_gap, NULL);
        T_LINE(&readers[i], "reading", LIMIT_MS, NULL);
    }
    t_proc_fork(&writers[0], write_many, key);
    t_proc_fork(&writers[1], write_many, NULL);
    for (unsigned i = 0; i < ARRAY_LEN(writers); i++)
        largest_of(&writers[i]);
    for (unsigned i = 0; i < ARRAY_LEN(readers); i++) {
        t_proc_signal(&readers[i], SIGKILL); /* in the middle of a read */
        T_EQ(t_proc_exit(&readers[i], LIMIT_MS), 128 + SIGKILL);
        t_proc_release(&readers[i]);
    }
    shrinks();
    t_tmp_remove(dir);
}

/* Somebody has the lock file, and the WAL is so large that he waits for readers, or is about to. */
static bool
checkpoint_waits(void)
{
    char name[T_PATH_BYTES];

    t_path(name, "%s-lock", path);
    int fd = open(name, O_RDWR | O_CLOEXEC);
    T_TRUE(fd >= 0);
    bool waits = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK &&
                 wal_bytes() >= WAL_BYTES_WAITING;
    (void)close(fd);
    return waits;
}

/* The reader is stopped, the first writer is killed while it waits for it, the second goes on. */
U_TEST(nobody_waits_for_a_reader_that_is_stopped)
{
    struct t_proc reader, writer;
    char          key[] = "k";

    set_up();
    t_proc_fork(&reader, read_and_stay, NULL);
    T_LINE(&reader, "reading", LIMIT_MS, NULL);
    t_proc_signal(&reader, SIGSTOP);
    T_TRUE(t_pid_in_state(reader.pid, 'T', LIMIT_MS));
    t_proc_fork(&writer, write_on, key);
    int64_t until = t_real_ms() + LIMIT_MS;
    while (!checkpoint_waits())
        T_LESS(t_real_ms(), until);
    t_proc_signal(&writer, SIGKILL);
    T_EQ(t_proc_exit(&writer, LIMIT_MS), 128 + SIGKILL);
    t_proc_release(&writer);

    t_proc_fork(&writer, write_many, key);
    T_LINE(&writer, "largest ", LIMIT_MS, NULL);
    T_EQ(t_proc_exit(&writer, LIMIT_MS), 0);
    t_proc_release(&writer);
    T_LESS(WAL_BYTES_MAX, wal_bytes()); /* what the reader may still need */
    t_proc_signal(&reader, SIGKILL);
    T_EQ(t_proc_exit(&reader, LIMIT_MS), 128 + SIGKILL);
    t_proc_release(&reader);
    shrinks();
    t_tmp_remove(dir);
}

/* Its values together are more than the WAL may hold. */
U_TEST(a_large_batch_is_several_commits)
{
    static il_op ops[N_LARGE];
    static char  ids[N_LARGE][16];
    il          *h = NULL;

    set_up();
    T_EQ(il_open(url, NULL, &h, NULL), IL_OK);
    for (unsigned i = 0; i < N_LARGE; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "job-%u", i);
        ops[i]                   = (il_op){ .type = IL_OP_JOB_PUSH, .key = "q" };
        ops[i].in.job.id         = ids[i];
        ops[i].in.job.data       = value;
        ops[i].in.job.data_bytes = sizeof value;
    }
    T_EQ(il_apply(h, ops, N_LARGE, NULL), IL_OK);
    for (unsigned i = 0; i < N_LARGE; i++) {
        T_EQ(ops[i].status, IL_OK);
        il_op_release(&ops[i]);
    }
    T_LESS(wal_bytes(), WAL_BYTES_MAX);
    il_close(h);
    t_tmp_remove(dir);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(reads_that_overlap_let_a_checkpoint_pass),
                                               U_ROW(nobody_waits_for_a_reader_that_is_stopped),
                                               U_ROW(a_large_batch_is_several_commits) };

    memset(value, 'v', sizeof value);
    return cmocka_run_group_tests_name("wal", tests, NULL, NULL);
}
