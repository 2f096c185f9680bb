/*
 * waits.c: waits that take too long: for a row, for a statement, for a whole transaction; and
 * commits that are interrupted.
 */
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "guard/rows.h"

static il_guard_tx *
begin(il_guard *c)
{
    return t_begin(c, NULL, false);
}

/* PostgreSQL: a row of another transaction; SQLite: the file. */
G_TEST(waiting_for_a_row_has_a_limit)
{
    struct t_row_events seen;
    il_guard_opts       o = IL_GUARD_OPTS_INIT;
    il_guard           *a = t_rows_open(g, NULL, NULL);
    il_error            err;
    il_guard_tx        *tx = NULL;

    o.lock_timeout_ms = 100;
    il_guard *b       = t_rows_open(g, &o, &seen);
    t_rows_make(g);
    il_guard_tx *first = begin(a);
    R_RUN(il_guard_lock(first, R_USER(2), NULL, why));
    if (g->is_postgres) {
        tx = begin(b);
        R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
        T_EQ(il_guard_lock(tx, R_USER(2), NULL, &err), IL_TIMEOUT);
        T_EQ(il_guard_commit(tx, &err), IL_STATE);
        T_EQ(seen.n, 1);
        T_EQ(seen.rows[0].outcome, IL_GUARD_CONFLICT);
        tx = begin(b);
        T_EQ(il_guard_add(tx, R_USER(2), "balance", 1, NULL, NULL, &err), IL_TIMEOUT);
        il_guard_rollback(tx);
    } else {
        T_EQ(il_guard_begin(b, NULL, &tx, &err), IL_TIMEOUT);
    }
    t_commit(first);
    tx = begin(b); /* and its connection is good */
    R_RUN(il_guard_lock(tx, R_USER(2), NULL, why));
    t_commit(tx);
    il_guard_close(a);
    il_guard_close(b);
}

struct update {
    il_guard_tx *tx;
    const char  *sql;
};

static il_status
update(void *cookie, il_error *err)
{
    const struct update *u = cookie;
    const il_guard_query q = { .sql = u->sql };

    return il_guard_exec(u->tx, &q, NULL, err);
}

/* Statements of one's own have no ranks: the server finds the deadlock. */
G_TEST(a_deadlock_is_found)
{
    il_guard     *a = t_rows_open(g, NULL, NULL), *b = t_rows_open(g, NULL, NULL);
    struct update u = { .sql = "UPDATE users SET small = 2 WHERE id = 2" };
    struct t_task task;
    il_error      err;

    t_rows_make(g);
    if (g->is_postgres) {
        u.tx            = begin(a);
        il_guard_tx *tx = begin(b);
        t_exec(u.tx, "UPDATE users SET small = 2 WHERE id = 1");
        t_exec(tx, "UPDATE users SET small = 3 WHERE id = 2");
        int64_t pid = t_pid_of(tx);
        t_task_start(&task, update, &u);
        T_TRUE(t_is_waited_for(g, pid, &task));
        il_status st = t_try(tx, "UPDATE users SET small = 3 WHERE id = 1", &err);
        if (st != IL_OK) { /* one of the two */
            T_EQ(st, IL_DEADLOCK);
            il_guard_rollback(tx);
            T_EQ(t_task_end(&task), IL_OK);
            t_commit(u.tx);
        } else {
            T_EQ(t_task_end(&task), IL_DEADLOCK);
            il_guard_rollback(u.tx);
            t_commit(tx);
        }
        T_EQ(t_ground_count(g, "SELECT count(DISTINCT small) FROM users WHERE id IN (1, 2)"), 1);
    }
    il_guard_close(a);
    il_guard_close(b);
}

static il_status
sleep_long(void *cookie, il_guard_tx *tx, il_error *err)
{
    const il_guard_query q = { .sql = "SELECT pg_sleep(600)" };

    (*(int *)cookie)++;
    return il_guard_exec(tx, &q, NULL, err);
}

/* A statement that is too slow by itself would be so again. */
G_TEST(a_slow_statement_is_not_tried_again)
{
    il_guard_opts o = IL_GUARD_OPTS_INIT;
    int           n = 0;
    il_error      err;

    o.statement_timeout_ms = 100;
    il_guard *c            = t_rows_open(g, &o, NULL);
    if (g->is_postgres) {
        T_EQ(il_guard_transact(c, NULL, sleep_long, &n, NULL, &err), IL_TIMEOUT);
        T_EQ(n, 1);
    }
    il_guard_close(c);
}

/* ---- commits --------------------------------------------------------------------------------- */

/* Have a function run at the commit of every transaction that changes `users`. */
static void
at_commit(const struct t_ground *g, const char *body)
{
    char sql[1024];

    (void)snprintf(sql, sizeof sql,
                   "CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s "
                   "RETURN NULL; END $$",
                   body);
    t_sql(g, sql);
    t_sql(g, "CREATE CONSTRAINT TRIGGER at_commit AFTER UPDATE ON users DEFERRABLE INITIALLY "
             "DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit()");
}

static il_status
add_one(void *cookie, il_guard_tx *tx, il_error *err)
{
    (*(int *)cookie)++;
    return il_guard_add(tx, R_USER(1), "balance", 1, NULL, NULL, err);
}

/* The server ends the connection in the middle of a commit (FATAL). */
G_TEST(a_commit_that_the_server_does_not_survive)
{
    il_guard        *c = t_rows_open(g, NULL, NULL);
    il_guard_tx_opts o = IL_GUARD_TX_OPTS_INIT;
    int              n = 0, replayed = 0;
    il_error         err;

    if (g->is_postgres) {
        t_rows_make(g);
        t_sql(g, "CREATE SEQUENCE deaths");
        at_commit(g, "IF nextval('deaths') % 2 = 1 THEN "
                     "PERFORM pg_terminate_backend(pg_backend_pid()); END IF;");
        T_EQ(il_guard_transact(c, NULL, add_one, &n, NULL, &err), IL_UNKNOWN);
        T_EQ(n, 1); /* it is not known whether it may be repeated */
        t_sql(g, "SELECT setval('deaths', 2)");
        o.once_key = "k";
        R_RUN(il_guard_transact(c, &o, add_one, &n, &replayed, why));
        T_EQ(n, 3);
        T_EQ(replayed, 0);
        T_EQ(t_ground_count(g, "SELECT balance FROM users WHERE id = 1"), 11);
    }
    il_guard_close(c);
}

static il_status
commit(void *cookie, il_error *err)
{
    return il_guard_commit(cookie, err);
}

/* Neither an interrupt nor a deadline takes back a commit that was sent. */
G_TEST(a_commit_is_not_cancelled)
{
    il_guard     *c = t_rows_open(g, NULL, NULL), *other = t_rows_open(g, NULL, NULL);
    struct t_task task;

    if (g->is_postgres) {
        t_rows_make(g);
        at_commit(g, "PERFORM pg_advisory_xact_lock(42);");
        il_guard_tx *holder = begin(other);
        t_exec(holder, "SELECT pg_advisory_xact_lock(42)");
        il_guard_tx *tx = begin(c);
        t_exec(tx, "UPDATE users SET small = 7 WHERE id = 1");
        t_task_start(&task, commit, tx);
        T_TRUE(t_is_waited_for(g, t_pid_of(holder), &task));
        il_guard_interrupt(c);
        il_guard_rollback(holder);
        T_EQ(t_task_end(&task), IL_OK);
        T_EQ(t_ground_count(g, "SELECT count(*) FROM users WHERE small = 7"), 1);
    }
    il_guard_close(c);
    il_guard_close(other);
}

/* ---- transactions with a deadline ------------------------------------------------------------ */

#define ENDLESS \
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"

static il_guard_tx *
begin_for(il_guard *c, int64_t timeout_ms)
{
    il_guard_tx_opts o  = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx     *tx = NULL;

    o.timeout_ms = timeout_ms;
    R_RUN(il_guard_begin(c, &o, &tx, why));
    return tx;
}

static il_status
run_endless(void *cookie, il_guard_tx *tx, il_error *err)
{
    const il_guard_query q = { .sql = ENDLESS };

    (*(int *)cookie)++;
    return il_guard_exec(tx, &q, NULL, err);
}

/* It is not tried again: the time is for all attempts. */
G_TEST(a_statement_ends_at_the_deadline)
{
    il_guard_tx_opts o = IL_GUARD_TX_OPTS_INIT;
    il_guard        *c = t_rows_open(g, NULL, NULL);
    int              n = 0;
    il_error         err;

    t_rows_make(g);
    o.timeout_ms = 300;
    o.flags      = IL_GUARD_READ_ONLY;
    T_EQ(il_guard_transact(c, &o, run_endless, &n, NULL, &err), IL_TIMEOUT);
    T_EQ(n, 1);
    o.flags = 0;
    T_EQ(il_guard_transact(c, &o, run_endless, &n, NULL, &err), IL_TIMEOUT);
    T_EQ(n, 2);
    il_guard_tx *tx = begin(c); /* without the deadline of the one before */
    R_RUN(il_guard_lock(tx, R_USER(2), NULL, why));
    t_commit(tx);
    il_guard_close(c);
}

static void
wait_until(int64_t boot_ns)
{
    while (il__clock_boot_ns() < boot_ns)
        (void)poll(NULL, 0, 1);
}

G_TEST(nothing_is_committed_after_the_deadline)
{
    il_guard *c = t_rows_open(g, NULL, NULL);
    il_error  err;

    t_rows_make(g);
    il_guard_tx *tx = begin_for(c, 2000);
    t_exec(tx, "UPDATE users SET small = 7 WHERE id = 1");
    wait_until(il__clock_boot_ns() + 2000 * IL__NS_PER_MS);
    T_EQ(il_guard_commit(tx, &err), IL_TIMEOUT);
    T_HAS(err.message, "timeout");
    tx = begin_for(c, 1);
    wait_until(il__clock_boot_ns() + IL__NS_PER_MS);
    T_EQ(t_try(tx, "UPDATE users SET small = 7 WHERE id = 1", &err), IL_TIMEOUT);
    il_guard_rollback(tx);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM users WHERE small = 7"), 0);
    il_guard_close(c);
}

/* PostgreSQL: for a row; SQLite: for the file; both: for a connection. */
G_TEST(waits_end_at_the_deadline)
{
    il_guard_opts    most = IL_GUARD_OPTS_INIT;
    il_guard_tx_opts o    = IL_GUARD_TX_OPTS_INIT;
    il_guard        *a    = t_rows_open(g, NULL, NULL);
    il_guard_tx     *tx   = NULL;
    int              n    = 0;
    il_error         err;

    most.lock_timeout_ms = 86400000;
    most.conns_max       = 1;
    il_guard *b          = t_rows_open(g, &most, NULL);
    t_rows_make(g);
    il_guard_tx *first = begin(a);
    R_RUN(il_guard_lock(first, R_USER(2), NULL, why));
    o.timeout_ms = 300;
    if (g->is_postgres) {
        tx = begin_for(b, 300);
        T_EQ(il_guard_lock(tx, R_USER(2), NULL, &err), IL_TIMEOUT);
        il_guard_rollback(tx);
    } else {
        T_EQ(il_guard_begin(b, &o, &tx, &err), IL_TIMEOUT);
    }
    t_commit(first);
    first = begin(b);
    T_EQ(il_guard_begin(b, &o, &tx, &err), IL_TIMEOUT);
    T_HAS(err.message, "connections");
    o.once_key = "k"; /* the table of such keys is looked for first */
    T_EQ(il_guard_transact(b, &o, run_endless, &n, NULL, &err), IL_TIMEOUT);
    T_EQ(n, 0);
    o.once_key = NULL;
    t_commit(first);
    o.timeout_ms = -1;
    T_EQ(il_guard_begin(b, &o, &tx, &err), IL_INVAL);
    il_guard_close(a);
    il_guard_close(b);
}

/* A server that accepts connections and never says a word. */
G_TEST(connecting_ends_at_the_deadline)
{
    struct sockaddr_in at   = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          n_at = sizeof at;
    il_guard_tx_opts   o    = IL_GUARD_TX_OPTS_INIT;
    il_guard          *c    = NULL;
    il_guard_tx       *tx   = NULL;
    il_error           err;
    char               url[64];

    if (!g->is_postgres)
        return;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    T_TRUE(fd >= 0);
    T_EQ(bind(fd, (const void *)&at, sizeof at), 0);
    T_EQ(listen(fd, 5), 0);
    T_EQ(getsockname(fd, (void *)&at, &n_at), 0);
    (void)snprintf(url, sizeof url, "postgres://u@127.0.0.1:%u/d", (unsigned)ntohs(at.sin_port));
    R_RUN(il_guard_open(url, NULL, &c, why));
    o.timeout_ms = 200;
    T_EQ(il_guard_begin(c, &o, &tx, &err), IL_TIMEOUT); /* not IL_STORE, connect_timeout_ms later */
    il_guard_close(c);
    (void)close(fd);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(waiting_for_a_row_has_a_limit),
        G_ROW(a_deadlock_is_found),
        G_ROW(a_slow_statement_is_not_tried_again),
        G_ROW(a_commit_that_the_server_does_not_survive),
        G_ROW(a_commit_is_not_cancelled),
        G_ROW(a_statement_ends_at_the_deadline),
        G_ROW(nothing_is_committed_after_the_deadline),
        G_ROW(waits_end_at_the_deadline),
        G_ROW(connecting_ends_at_the_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
