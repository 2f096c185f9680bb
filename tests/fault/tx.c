/*
 * tx.c: the caller's own transactions with several processes: one is killed before its commit, one
 * is stopped in the middle, two push at once while a third uses the store normally. The caller's
 * row and its job always exist together or not at all.
 */
#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include "harness/proc.h"
#include "harness/tmp.h"
#include "harness/unit.h"

#define N_EACH 150

static char dir[T_PATH_BYTES];
static char url[T_PATH_BYTES];
static char path[T_PATH_BYTES];

static void
setup(void)
{
    t_tmp_make(dir);
    t_path(path, "%s/x.db", dir);
    t_path(url, "sqlite:%s/x.db", dir);
}

/* ---- what a process does --------------------------------------------------------------------- */

static il *
open_store(void)
{
    il *h = NULL;

    CHECK(il_open(url, NULL, &h, NULL) == IL_OK);
    return h;
}

static sqlite3 *
open_db(void)
{
    sqlite3 *db = NULL;

    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    return db;
}

/* One transaction: a row and a job; then `pause` says that it is about to commit, and waits to be
 * told to. */
static il_status
pay(il *h, sqlite3 *db, const char *id, bool pause_before)
{
    il_tx *tx     = NULL;
    il_op  op     = { .type = IL_OP_JOB_PUSH, .key = "mail" };
    char  *insert = sqlite3_mprintf("INSERT INTO paid VALUES (%Q)", id);

    CHECK(insert != NULL);
    CHECK(il_tx_begin(h, db, &tx, NULL) == IL_OK);
    CHECK(sqlite3_exec(db, "CREATE TABLE IF NOT EXISTS paid (job TEXT PRIMARY KEY)", NULL, NULL,
                       NULL) == SQLITE_OK);
    op.in.job.id = id;
    CHECK(il_tx_apply(tx, &op, 1, NULL) == IL_OK && op.status == IL_OK);
    il_op_release(&op);
    CHECK(sqlite3_exec(db, insert, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_free(insert);
    if (pause_before) {
        CHECK(write(STDOUT_FILENO, "ready\n", 6) == 6);
        for (;;)
            (void)pause();
    }
    return il_tx_commit(tx, NULL);
}

static int
die_before_commit(void *arg)
{
    il      *h  = open_store();
    sqlite3 *db = open_db();

    IGNORE(pay(h, db, arg, true)); /* does not come back */
    return 1;
}

static int
pay_many(void *arg)
{
    il      *h  = open_store();
    sqlite3 *db = open_db();
    char     id[64];

    for (unsigned i = 0; i < N_EACH; i++) {
        (void)snprintf(id, sizeof id, "%s-%u", (const char *)arg, i);
        il_status st = pay(h, db, id, false);
        CHECK(st == IL_OK || st == IL_TIMEOUT); /* a slow machine */
    }
    CHECK(sqlite3_close(db) == SQLITE_OK);
    il_close(h);
    return 0;
}

/* ---- what is seen afterwards ----------------------------------------------------------------- */

static int64_t
number(const char *text)
{
    sqlite3      *db  = open_db();
    sqlite3_stmt *row = NULL;

    T_EQ(sqlite3_prepare_v2(db, text, -1, &row, NULL), SQLITE_OK);
    T_EQ(sqlite3_step(row), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(row, 0);
    T_EQ(sqlite3_finalize(row), SQLITE_OK);
    T_EQ(sqlite3_close(db), SQLITE_OK);
    return n;
}

static bool
has_job(il *h, const char *id)
{
    il_op op = { .type = IL_OP_JOB_GET };

    op.in.job.id = id;
    T_EQ(il_apply(h, &op, 1, NULL), IL_OK);
    bool there = op.status == IL_OK;
    il_op_release(&op);
    return there;
}

U_TEST(killed_before_the_commit)
{
    static char   id[] = "lost";
    struct t_proc p;

    setup();
    t_proc_fork(&p, die_before_commit, id);
    T_LINE(&p, "ready", 10000, NULL);
    t_proc_signal(&p, SIGKILL);
    T_EQ(t_proc_exit(&p, 10000), 128 + SIGKILL);
    t_proc_release(&p);

    il *h = open_store();
    T_TRUE(!has_job(h, "lost"));
    T_EQ(number("SELECT count(*) FROM sqlite_master WHERE name = 'paid'"), 0);
    sqlite3 *db = open_db();
    T_EQ(pay(h, db, "kept", false), IL_OK); /* the lock has gone with the process */
    T_TRUE(has_job(h, "kept"));
    T_EQ(number("SELECT count(*) FROM paid"), 1);
    T_EQ(sqlite3_close(db), SQLITE_OK);
    il_close(h);
    t_tmp_remove(dir);
}

/* Its guard is in the process that stalls: others get on after a second. */
U_TEST(stalled_before_the_commit)
{
    static char   id[] = "lost";
    struct t_proc p;
    il_op         op = { .type = IL_OP_JOB_PUSH, .key = "mail" };

    setup();
    t_proc_fork(&p, die_before_commit, id);
    T_LINE(&p, "ready", 10000, NULL);
    il *h        = open_store();
    op.in.job.id = "mine";
    T_EQ(il_apply(h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    il_op_release(&op);
    T_TRUE(!has_job(h, "lost"));
    t_proc_release(&p);
    il_close(h);
    t_tmp_remove(dir);
}

/* Two processes with transactions of their own, and this one that pushes as usual. */
U_TEST(two_processes_and_a_third)
{
    static char   names[2][2] = { "a", "b" };
    struct t_proc p[2];

    setup();
    for (unsigned i = 0; i < 2; i++)
        t_proc_fork(&p[i], pay_many, names[i]);
    il *h = open_store();
    for (unsigned i = 0; i < N_EACH; i++) {
        char  id[64];
        il_op op = { .type = IL_OP_JOB_PUSH, .key = "mail" };
        (void)snprintf(id, sizeof id, "c-%u", i);
        op.in.job.id = id;
        T_EQ(il_apply(h, &op, 1, NULL), IL_OK);
        T_EQ(op.status, IL_OK);
        il_op_release(&op);
    }
    for (unsigned i = 0; i < 2; i++) {
        T_EQ(t_proc_exit(&p[i], 60000), 0);
        t_proc_release(&p[i]);
    }
    T_LESS(0, (uint64_t)number("SELECT count(*) FROM paid"));
    T_EQ(number("SELECT count(*) FROM paid WHERE job NOT IN (SELECT id FROM il_job)"), 0);
    T_EQ(number("SELECT count(*) FROM il_job WHERE id NOT LIKE 'c-%' AND id NOT IN (SELECT job "
                "FROM paid)"),
         0);
    T_EQ(number("SELECT count(*) FROM il_job"), number("SELECT pushed FROM il_queue"));
    T_EQ(number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
    il_close(h);
    t_tmp_remove(dir);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(killed_before_the_commit),
        U_ROW(stalled_before_the_commit),
        U_ROW(two_processes_and_a_third),
    };

    return cmocka_run_group_tests_name("tx", tests, NULL, NULL);
}
