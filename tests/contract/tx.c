/*
 * tx.c: the caller's own transactions: a job pushed in one exists exactly if it commits. Everything
 * here happens in one process; tests/fault/tx.c has several.
 */
#include <sqlite3.h>

#include "harness/suite.h"
#include "runtime/handle.h"

/* A store with a connection of the caller's beside it, and a table of the caller's. */
struct caller {
    il      *h;
    sqlite3 *db;
    char     path[T_PATH_BYTES];
};

static void
sql(sqlite3 *db, const char *text)
{
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        T_FAIL("%s: %s", text, sqlite3_errmsg(db));
}

static int64_t
number(const struct caller *c, const char *text)
{
    sqlite3_stmt *row = NULL;

    T_EQ(sqlite3_prepare_v2(c->db, text, -1, &row, NULL), SQLITE_OK);
    T_EQ(sqlite3_step(row), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(row, 0);
    T_EQ(sqlite3_finalize(row), SQLITE_OK);
    return n;
}

/* The caller's table is made in a transaction of its own, too: nobody writes to the file without
 * the lock. */
static void
caller_open(struct caller *c, struct t_store *s)
{
    il_tx *tx = NULL;

    c->h = t_handle(s);
    t_path(c->path, "%s/x.db", s->dir);
    T_EQ(sqlite3_open(c->path, &c->db), SQLITE_OK);
    T_EQ(il_tx_begin(c->h, c->db, &tx, NULL), IL_OK);
    sql(c->db, "CREATE TABLE paid (job TEXT PRIMARY KEY)");
    T_EQ(il_tx_commit(tx, NULL), IL_OK);
}

static void
caller_close(struct caller *c)
{
    T_EQ(sqlite3_close(c->db), SQLITE_OK);
}

static il_tx *
begin(const struct caller *c)
{
    il_tx   *tx  = NULL;
    il_error err = { 0 };

    if (il_tx_begin(c->h, c->db, &tx, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return tx;
}

static il_op
op_push(const char *id)
{
    il_op op = { .type = IL_OP_JOB_PUSH, .key = "mail" };

    op.in.job.id         = id;
    op.in.job.data       = "hello";
    op.in.job.data_bytes = 5;
    return op;
}

static void
push_in(il_tx *tx, const char *id)
{
    il_op op = op_push(id);

    T_EQ(il_tx_apply(tx, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    T_EQU(op.out.n_jobs, 1);
    il_op_release(&op);
}

/* The state of a job, through the handle whose turn it is. */
static il_job_state
state_of(struct t_store *s, const char *id)
{
    il_op op = { .type = IL_OP_JOB_GET };

    op.in.job.id       = id;
    const il_op *shown = t_op_run(s, NULL, op);
    return shown->status == IL_OK ? shown->out.jobs[0].state : IL_JOB_NONE;
}

static uint64_t
pushed_total(struct t_store *s)
{
    il_op op = { .type = IL_OP_QUEUE_LIST };

    const il_op *shown = t_op_run(s, NULL, op);
    return shown->out.n_queues > 0 ? shown->out.queues[0].pushed : 0;
}

static uint32_t
queue_word(const struct caller *c)
{
    return il__board_read(c->h->store->board, il__board_slot("default", "mail", IL__WAKE_QUEUE));
}

/* ---- together, or not at all ----------------------------------------------------------------- */

T_TEST(row_and_job_appear_together)
{
    struct caller c;

    T_NEEDS_FILE(s);
    caller_open(&c, s);
    uint32_t word = queue_word(&c);
    il_tx   *tx   = begin(&c);
    push_in(tx, "j1");
    sql(c.db, "INSERT INTO paid VALUES ('j1')");
    T_EQ(state_of(s, "j1"), IL_JOB_NONE); /* reading waits for nobody, and sees what is committed */
    T_EQ(queue_word(&c), word);           /* nobody is woken too early */
    T_EQ(il_tx_commit(tx, NULL), IL_OK);
    T_EQ(state_of(s, "j1"), IL_JOB_READY);
    T_EQ(number(&c, "SELECT count(*) FROM paid"), 1);
    T_TRUE(queue_word(&c) != word); /* a worker that waits looks again */
    T_EQU(pushed_total(s), 1);
    caller_close(&c);
}

T_TEST(a_rollback_takes_both)
{
    struct caller c;

    T_NEEDS_FILE(s);
    caller_open(&c, s);
    uint32_t word = queue_word(&c);
    il_tx   *tx   = begin(&c);
    push_in(tx, "j1");
    sql(c.db, "INSERT INTO paid VALUES ('j1')");
    il_tx_rollback(tx);
    T_EQ(state_of(s, "j1"), IL_JOB_NONE);
    T_EQ(number(&c, "SELECT count(*) FROM paid"), 0);
    T_EQ(queue_word(&c), word);
    il_tx_rollback(NULL);
    caller_close(&c);
}

/* A savepoint of the caller's takes along what was pushed after it, and its totals. */
T_TEST(savepoints_of_the_caller)
{
    struct caller c;

    T_NEEDS_FILE(s);
    caller_open(&c, s);
    il_tx *tx = begin(&c);
    push_in(tx, "j1");
    sql(c.db, "SAVEPOINT mine");
    push_in(tx, "j2");
    sql(c.db, "ROLLBACK TO mine");
    push_in(tx, "j3");
    T_EQ(il_tx_commit(tx, NULL), IL_OK);
    T_EQ(state_of(s, "j1"), IL_JOB_READY);
    T_EQ(state_of(s, "j2"), IL_JOB_NONE);
    T_EQ(state_of(s, "j3"), IL_JOB_READY);
    T_EQU(pushed_total(s), 2);
    caller_close(&c);
}

/* A worker finishes a job together with what it did; its fence is checked in the same
 * transaction. */
T_TEST(finish_and_check_in_it)
{
    struct caller c;
    il_op         push  = op_push("j1");
    il_op         claim = { .type = IL_OP_JOB_CLAIM, .key = "mail", .holder = "w" };

    T_NEEDS_FILE(s);
    caller_open(&c, s);
    T_IS(t_op_run(s, NULL, push), IL_OK);
    claim.in.job.id  = "c1";
    uint64_t token   = T_IS(t_op_run(s, NULL, claim), IL_OK)->out.fence;
    uint64_t fence   = T_IS(t_acquire(s, "k", "w"), IL_OK)->out.fence;
    il_op    ops[3]  = { { .type = IL_OP_JOB_FINISH, .fence = token },
                         { .type = IL_OP_CHECK_FENCE, .key = "k", .fence = fence },
                         { .type = IL_OP_CHECK_FENCE, .key = "k", .fence = fence + 1000 } };
    ops[0].in.job.id = "j1";
    for (unsigned commits = 0; commits < 2; commits++) {
        il_tx *tx = begin(&c);
        T_EQ(il_tx_apply(tx, ops, 3, NULL), IL_OK);
        T_EQ(ops[0].status, IL_OK);
        T_EQ(ops[1].status, IL_OK);
        T_EQ(ops[2].status, IL_STALE);
        for (size_t i = 0; i < 3; i++)
            il_op_release(&ops[i]);
        if (commits == 0)
            il_tx_rollback(tx);
        else
            T_EQ(il_tx_commit(tx, NULL), IL_OK);
        T_EQ(state_of(s, "j1"), commits == 0 ? IL_JOB_RUNNING : IL_JOB_COMPLETED);
    }
    caller_close(&c);
}

/* ---- what is refused ------------------------------------------------------------------------- */

T_TEST(not_a_connection_for_it)
{
    struct caller c;
    sqlite3      *other = NULL;
    il_tx        *tx    = NULL;
    il_error      err;
    char          path[T_PATH_BYTES];

    if (!s->engine->durable || s->engine->server != NULL) {
        T_EQ(sqlite3_open(":memory:", &other), SQLITE_OK);
        T_EQ(il_tx_begin(t_handle(s), other, &tx, &err), IL_INVAL);
        T_HAS(err.message, "sqlite:");
        T_EQ(sqlite3_close(other), SQLITE_OK);
        return;
    }
    caller_open(&c, s);
    T_EQ(il_tx_begin(c.h, NULL, &tx, &err), IL_INVAL);
    t_path(path, "%s/other.db", s->dir);
    T_EQ(sqlite3_open(path, &other), SQLITE_OK);
    sql(other, "CREATE TABLE t (x)");
    T_EQ(il_tx_begin(c.h, other, &tx, &err), IL_INVAL);
    T_HAS(err.message, "another file");
    T_EQ(sqlite3_close(other), SQLITE_OK);
    T_EQ(sqlite3_open(":memory:", &other), SQLITE_OK);
    T_EQ(il_tx_begin(c.h, other, &tx, &err), IL_INVAL);
    T_EQ(sqlite3_close(other), SQLITE_OK);
    T_EQ(sqlite3_open_v2(c.path, &other, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL),
         SQLITE_OK);
    T_EQ(il_tx_begin(c.h, other, &tx, &err), IL_INVAL);
    T_HAS(err.message, "FULLMUTEX");
    T_EQ(sqlite3_close(other), SQLITE_OK);
    sql(c.db, "BEGIN");
    T_EQ(il_tx_begin(c.h, c.db, &tx, &err), IL_INVAL);
    T_HAS(err.message, "open");
    sql(c.db, "ROLLBACK");
    T_TRUE(tx == NULL);
    caller_close(&c);
}

T_TEST(other_ops_are_refused)
{
    struct caller c;
    il_op         ops[3] = { { .type = IL_OP_ACQUIRE, .key = "k", .holder = "h" },
                             op_push("j1"),
                             { .type = IL_OP_JOB_PUSH, .key = "mail" } };

    T_NEEDS_FILE(s);
    caller_open(&c, s);
    il_tx *tx = begin(&c);
    T_EQ(il_tx_apply(tx, ops, 0, NULL), IL_INVAL);
    T_EQ(il_tx_apply(tx, ops, 3, NULL), IL_OK);
    T_EQ(ops[0].status, IL_INVAL);
    T_HAS(ops[0].out.detail, "push");
    T_EQ(ops[1].status, IL_OK);
    T_EQ(ops[2].status, IL_INVAL); /* has no id */
    for (size_t i = 0; i < 3; i++)
        il_op_release(&ops[i]);
    T_EQ(il_tx_commit(tx, NULL), IL_OK);
    T_EQ(state_of(s, "j1"), IL_JOB_READY);
    T_IS(t_get(s, "k"), IL_NOT_HELD);
    caller_close(&c);
}

/* The caller cannot commit behind our back, and a rollback of its own is noticed: job and row stay
 * together. */
T_TEST(only_il_tx_commit_commits)
{
    struct caller c;
    il_op         late = op_push("j2");

    T_NEEDS_FILE(s);
    caller_open(&c, s);
    il_tx *tx = begin(&c);
    push_in(tx, "j1");
    sql(c.db, "INSERT INTO paid VALUES ('j1')");
    T_EQ(sqlite3_exec(c.db, "COMMIT", NULL, NULL, NULL), SQLITE_CONSTRAINT);
    T_EQ(il_tx_apply(tx, &late, 1, NULL), IL_STATE);
    T_EQ(il_tx_commit(tx, NULL), IL_STATE);
    T_EQ(state_of(s, "j1"), IL_JOB_NONE);
    T_EQ(number(&c, "SELECT count(*) FROM paid"), 0);

    tx = begin(&c);
    push_in(tx, "j1");
    sql(c.db, "ROLLBACK");
    sql(c.db, "BEGIN");
    sql(c.db, "INSERT INTO paid VALUES ('j1')");
    T_EQ(il_tx_commit(tx, NULL), IL_STATE);
    T_EQ(state_of(s, "j1"), IL_JOB_NONE);
    T_EQ(number(&c, "SELECT count(*) FROM paid"), 0);
    caller_close(&c);
}

/* ---- the limit of a second ------------------------------------------------------------------- */

/* The owner does nothing any more: others go on after a second, and nothing of it stays, whatever
 * it tries later. */
T_TEST(a_stalled_owner_is_rolled_back)
{
    struct caller c;
    il_op         late = op_push("j2");
    il_error      err;

    T_NEEDS_FILE(s);
    caller_open(&c, s);
    il_tx *tx = begin(&c);
    push_in(tx, "j1");
    sql(c.db, "INSERT INTO paid VALUES ('j1')");
    /* waits for the lock file until the tx watch has given it up */
    T_IS(t_acquire(s, "k", "h"), IL_OK);
    T_EQ(sqlite3_exec(c.db, "INSERT INTO paid VALUES ('j9')", NULL, NULL, NULL), SQLITE_CONSTRAINT);
    T_EQ(il_tx_apply(tx, &late, 1, NULL), IL_TIMEOUT);
    T_EQ(il_tx_commit(tx, &err), IL_TIMEOUT);
    T_HAS(err.message, "1000 ms");
    T_EQ(state_of(s, "j1"), IL_JOB_NONE);
    T_EQ(number(&c, "SELECT count(*) FROM paid"), 0);

    tx = begin(&c); /* the connection is as good as new */
    push_in(tx, "j3");
    T_EQ(il_tx_commit(tx, NULL), IL_OK);
    T_EQ(state_of(s, "j3"), IL_JOB_READY);
    caller_close(&c);
}

/* A statement that does not end is interrupted. */
T_TEST(an_endless_statement_is_interrupted)
{
    struct caller c;

    T_NEEDS_FILE(s);
    caller_open(&c, s);
    il_tx *tx = begin(&c);
    push_in(tx, "j1");
    T_EQ(sqlite3_exec(c.db,
                      "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
                      "SELECT count(*) FROM n",
                      NULL, NULL, NULL),
         SQLITE_INTERRUPT);
    T_IS(t_acquire(s, "k", "h"), IL_OK);
    T_EQ(il_tx_commit(tx, NULL), IL_TIMEOUT);
    T_EQ(state_of(s, "j1"), IL_JOB_NONE);
    caller_close(&c);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(row_and_job_appear_together),
        T_ROW(a_rollback_takes_both),
        T_ROW(savepoints_of_the_caller),
        T_ROW(finish_and_check_in_it),
        T_ROW(not_a_connection_for_it),
        T_ROW(other_ops_are_refused),
        T_ROW(only_il_tx_commit_commits),
        T_ROW(a_stalled_owner_is_rolled_back),
        T_ROW(an_endless_statement_is_interrupted),
    };

    return T_SUITE("tx", tests);
}
