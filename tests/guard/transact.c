/*
 * transact.c: whole transactions: retries, idempotency keys, the pool of connections, interrupting,
 * and what observers see.
 */
#include <unistd.h>

#include "guard/rows.h"

#define BALANCE "SELECT balance FROM users WHERE id = 1"

static il_guard_tx *
begin(il_guard *c)
{
    return t_begin(c, NULL, false);
}

/* ---- retries --------------------------------------------------------------------------------- */

struct work {
    int          n_calls;
    il_guard_tx *other; /* holds user 2; committed by the second call */
    il_status    ends_with;
    bool         tries; /* lock user 2 in a savepoint */
};

static il_status
lock_user_2(void *cookie UNUSED, il_guard_tx *tx, il_error *err)
{
    return il_guard_lock(tx, R_USER(2), NULL, err);
}

/* Add to user 1, lock user 2. */
static il_status
work(void *cookie, il_guard_tx *tx, il_error *err)
{
    struct work *w = cookie;

    if (++w->n_calls == 2 && w->other != NULL) {
        t_commit(w->other);
        w->other = NULL;
    }
    il_status st = il_guard_add(tx, R_USER(1), "balance", 1, NULL, NULL, err);
    if (st == IL_OK)
        st = w->tries ? il_guard_try(tx, lock_user_2, NULL, err) : lock_user_2(NULL, tx, err);
    return st == IL_OK ? w->ends_with : st;
}

/* PostgreSQL: the first attempt meets a lock. In SQLite that happens at the begin. */
static void
a_conflict(const struct t_ground *g, bool tries)
{
    struct t_row_events seen;
    struct work         w   = { .tries = tries };
    il_guard_opts       o   = IL_GUARD_OPTS_INIT;
    il_guard           *a   = t_rows_open(g, NULL, NULL);
    il_error            err = { .message = "" };

    o.lock_timeout_ms = 100;
    il_guard *b       = t_rows_open(g, &o, &seen);
    t_rows_make(g);
    if (g->is_postgres) {
        w.other = begin(a);
        R_RUN(il_guard_lock(w.other, R_USER(2), NULL, why));
    }
    T_EQ(il_guard_transact(b, NULL, work, &w, NULL, &err), IL_OK);
    T_STREQ(err.message, ""); /* written on failure only */
    T_EQ(t_ground_count(g, BALANCE), 11);
    if (g->is_postgres) {
        T_EQ(w.n_calls, 2);
        T_EQ(seen.n, 3);
        T_EQ(seen.rows[0].n_attempt, 1);
        T_EQ(seen.rows[0].outcome, IL_GUARD_CONFLICT);
        T_EQ(seen.rows[1].n_attempt, 2);
        T_EQ(seen.rows[1].outcome, IL_GUARD_COMMITTED);
    }
    il_guard_close(a);
    il_guard_close(b);
}

G_TEST(a_conflict_is_tried_again)
{
    a_conflict(g, false);
}

G_TEST(a_conflict_in_a_savepoint_is_tried_again)
{
    a_conflict(g, true);
}

static il_status
work_in_thread(void *cookie, il_error *err)
{
    struct work w = { 0 };

    il_status st = il_guard_transact(cookie, NULL, work, &w, NULL, err);
    return st == IL_OK && w.n_calls != 1 ? IL_BUSY : st;
}

/* The file of another transaction: the begin is tried again, whatever the machine's speed. */
G_TEST(a_begin_that_waits_too_long_is_tried_again)
{
    il_guard_opts o = IL_GUARD_OPTS_INIT;
    il_guard     *a = t_rows_open(g, NULL, NULL);
    struct t_task task;

    o.lock_timeout_ms = 100;
    il_guard *b       = t_rows_open(g, &o, NULL);
    t_rows_make(g);
    il_guard_tx *tx = begin(a);
    if (!g->is_postgres) {
        t_task_start(&task, work_in_thread, b);
        T_TRUE(!t_event_wait(&task.done, 1, 250)); /* it does not get in: a limit, not a hope */
    }
    t_commit(tx);
    if (!g->is_postgres)
        T_EQ(t_task_end(&task), IL_OK);
    il_guard_close(a);
    il_guard_close(b);
}

G_TEST(attempts_are_limited)
{
    struct t_row_events seen;
    struct work         w = { 0 };
    il_guard_opts       o = IL_GUARD_OPTS_INIT;
    il_guard_tx_opts    t = IL_GUARD_TX_OPTS_INIT;
    il_guard           *a = t_rows_open(g, NULL, NULL);
    il_error            err;

    o.lock_timeout_ms = 20;
    t.tries_max       = 3;
    il_guard *b       = t_rows_open(g, &o, &seen);
    t_rows_make(g);
    il_guard_tx *tx = begin(a);
    R_RUN(il_guard_lock(tx, R_USER(2), NULL, why));
    T_EQ(il_guard_transact(b, &t, work, &w, NULL, &err), IL_TIMEOUT);
    T_TRUE(err.message[0] != '\0');
    if (g->is_postgres) {
        T_EQ(w.n_calls, 3);
        T_EQ(seen.n, 3);
        T_EQ(seen.rows[2].n_attempt, 3);
        T_EQ(seen.rows[2].outcome, IL_GUARD_CONFLICT);
    } else {
        T_EQ(w.n_calls, 0); /* it never got the file */
    }
    t_commit(tx);
    T_EQ(t_ground_count(g, BALANCE), 10);
    t.tries_max = IL_GUARD_TRIES_MAX;
    T_EQ(il_guard_transact(b, &t, work, &w, NULL, &err), IL_OK);
    t.tries_max = IL_GUARD_TRIES_MAX + 1;
    T_EQ(il_guard_transact(b, &t, work, &w, NULL, &err), IL_INVAL);
    il_guard_close(a);
    il_guard_close(b);
}

G_TEST(the_status_of_the_function_is_returned)
{
    static const il_status ends[] = { IL_BUSY, IL_DEADLOCK, IL_TIMEOUT, IL_STORE };
    struct t_row_events    seen;
    il_guard              *c = t_rows_open(g, NULL, &seen);
    il_error               err;

    t_rows_make(g);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) { /* not the database's: not tried again */
        struct work w = { .ends_with = ends[i] };
        T_EQ(il_guard_transact(c, NULL, work, &w, NULL, &err), ends[i]);
        T_EQ(w.n_calls, 1);
        T_EQ(t_ground_count(g, BALANCE), 10);
    }
    T_EQ(seen.rows[0].outcome, IL_GUARD_ROLLED_BACK);
    il_guard_close(c);
}

/* ---- idempotency keys ------------------------------------------------------------------------ */

static il_status
once(il_guard *c, const char *key, struct work *w, int *replayed, il_error *err)
{
    il_guard_tx_opts t = IL_GUARD_TX_OPTS_INIT;

    t.once_key = key;
    *replayed  = -1;
    *err       = (il_error){ .message = "" };
    return il_guard_transact(c, &t, work, w, replayed, err);
}

G_TEST(a_transaction_with_a_key_is_done_once)
{
    il_guard   *c = t_rows_open(g, NULL, NULL), *other = t_rows_open(g, NULL, NULL);
    struct work w = { .ends_with = IL_BUSY };
    char        key[IL_ONCE_KEY_BYTES_MAX + 2];
    int         replayed;
    il_error    err;

    t_rows_make(g);
    T_EQ(once(c, "k", &w, &replayed, &err), IL_BUSY); /* undone: not recorded */
    T_EQ(replayed, -1);
    w.ends_with = IL_OK;
    T_EQ(once(c, "k", &w, &replayed, &err), IL_OK);
    T_EQ(replayed, 0);
    T_EQ(w.n_calls, 2);
    T_EQ(once(c, "k", &w, &replayed, &err), IL_OK);
    T_EQ(replayed, 1);
    T_EQ(once(other, "k", &w, &replayed, &err), IL_OK);
    T_EQ(replayed, 1);
    T_EQ(w.n_calls, 2);
    T_EQ(t_ground_count(g, BALANCE), 11);
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    T_EQ(once(c, key, &w, &replayed, &err), IL_INVAL);
    T_EQ(once(c, "", &w, &replayed, &err), IL_INVAL);
    key[IL_ONCE_KEY_BYTES_MAX] = '\0';
    T_EQ(once(c, key, &w, &replayed, &err), IL_OK);
    T_EQ(replayed, 0);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM interlock_done"), 2);
    il_guard_tx_opts t = IL_GUARD_TX_OPTS_INIT;
    t.once_key         = "r";
    t.flags            = IL_GUARD_READ_ONLY;
    T_EQ(il_guard_transact(c, &t, work, &w, NULL, &err), IL_INVAL);
    il_guard_close(c);
    il_guard_close(other);
}

struct twice {
    const struct t_ground *g;
    il_guard              *other;
    struct t_task          task;
    int                    n_calls, replayed;
};

static il_status
count_call(void *cookie, il_guard_tx *tx UNUSED, il_error *err UNUSED)
{
    ((struct twice *)cookie)->n_calls++;
    return IL_OK;
}

static il_status
same_key(void *cookie, il_error *err)
{
    struct twice    *t = cookie;
    il_guard_tx_opts o = IL_GUARD_TX_OPTS_INIT;

    o.once_key = "both";
    return il_guard_transact(t->other, &o, count_call, t, &t->replayed, err);
}

/* While this runs, another thread begins with the same key. */
static il_status
meanwhile(void *cookie, il_guard_tx *tx, il_error *err UNUSED)
{
    struct twice *t   = cookie;
    int64_t       pid = t->g->is_postgres ? t_pid_of(tx) : 0;

    t_task_start(&t->task, same_key, t);
    if (t->g->is_postgres)
        T_TRUE(t_is_waited_for(t->g, pid, &t->task));
    return IL_OK;
}

G_TEST(two_with_one_key_at_once)
{
    il_guard        *c        = t_rows_open(g, NULL, NULL);
    struct twice     t        = { .g = g, .other = t_rows_open(g, NULL, NULL) };
    il_guard_tx_opts o        = IL_GUARD_TX_OPTS_INIT;
    int              replayed = -1;

    o.once_key = "both";
    R_RUN(il_guard_transact(c, &o, meanwhile, &t, &replayed, why));
    T_EQ(replayed, 0);
    T_EQ(t_task_end(&t.task), IL_OK);
    T_EQ(t.replayed, 1);
    T_EQ(t.n_calls, 0);
    il_guard_close(c);
    il_guard_close(t.other);
}

/* Say something about a role, @, and the user's schema, #. */
static void
say(const struct t_ground *g, const char *text, const char *role)
{
    char sql[512] = "";

    for (; *text != '\0'; text++)
        (void)snprintf(sql + strlen(sql), sizeof sql - strlen(sql), "%.*s",
                       *text == '@' || *text == '#' ? (int)sizeof sql : 1,
                       *text == '@'   ? role
                       : *text == '#' ? g->schema
                                      : text);
    t_sql(g, sql);
}

/* PostgreSQL: a role that may not create tables. */
G_TEST(a_role_without_the_right_to_create)
{
    static const char *const before[] = { "CREATE ROLE @ LOGIN", "GRANT USAGE ON SCHEMA # TO @",
                                          "GRANT SELECT, UPDATE ON users TO @" };
    char                     role[64], url[T_PATH_BYTES];
    const char              *at = strstr(g->url, "postgres@");
    il_guard                *c  = NULL;
    struct work              w  = { 0 };
    int                      replayed;
    il_error                 err;

    if (!g->is_postgres || at == NULL)
        return;
    (void)snprintf(role, sizeof role, "role_%d", (int)getpid());
    t_path(url, "%.*s%s%s", (int)(at - g->url), g->url, role, at + strlen("postgres"));
    t_rows_make(g);
    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        say(g, before[i], role);
    il_guard_opts o = IL_GUARD_OPTS_INIT;
    o.ranks         = t_ranks;
    o.n_ranks       = ARRAY_LEN(t_ranks);
    R_RUN(il_guard_open(url, &o, &c, why));
    T_EQ(once(c, "k", &w, &replayed, &err), IL_INVAL);
    T_HAS(err.message, "permission denied");
    t_sql(g, "CREATE TABLE interlock_done (key text NOT NULL PRIMARY KEY, "
             "done_at_ms bigint NOT NULL)");
    say(g, "GRANT SELECT, INSERT ON interlock_done TO @", role);
    if (once(c, "k", &w, &replayed, &err) != IL_OK)
        T_FAIL("%s", err.message);
    T_EQ(replayed, 0);
    T_EQ(once(c, "k", &w, &replayed, &err), IL_OK);
    T_EQ(replayed, 1);
    il_guard_close(c);
    say(g, "DROP OWNED BY @", role);
    say(g, "DROP ROLE @", role);
}

/* ---- the pool -------------------------------------------------------------------------------- */

static il_status
read_once(void *cookie, il_error *err)
{
    il_guard_tx *tx = NULL;

    il_status st = t_guard_begin(cookie, NULL, true, &tx, err);
    return st == IL_OK ? il_guard_commit(tx, err) : st;
}

G_TEST(connections_are_limited)
{
    il_guard_opts o = IL_GUARD_OPTS_INIT;
    struct t_task task;
    il_guard_tx  *more = NULL;
    il_error      err;

    o.conns_max      = 2;
    il_guard    *c   = t_rows_open(g, &o, NULL);
    il_guard_tx *one = t_begin(c, NULL, true), *two = t_begin(c, NULL, true);
    t_task_start(&task, read_once, c);
    T_TRUE(!t_event_wait(&task.done, 1, 100)); /* it waits: a limit, not a hope */
    il_guard_rollback(one);
    T_EQ(t_task_end(&task), IL_OK);
    il_guard_rollback(two);
    il_guard_close(c);

    o                 = (il_guard_opts)IL_GUARD_OPTS_INIT;
    o.conns_max       = 1;
    o.lock_timeout_ms = 50;
    c                 = t_rows_open(g, &o, NULL);
    one               = t_begin(c, NULL, true);
    T_EQ(t_guard_begin(c, NULL, true, &more, &err), IL_TIMEOUT);
    T_HAS(err.message, "all 1 connections");
    T_EQ(il_guard_connect(c, &err), IL_TIMEOUT);
    t_commit(one);
    R_RUN(il_guard_connect(c, why));
    il_guard_close(c);
}

G_TEST(as_many_connections_as_allowed)
{
    il_guard_opts o = IL_GUARD_OPTS_INIT;
    il_guard_tx  *txs[IL_GUARD_CONNS_MAX], *more = NULL;
    il_error      err;

    if (g->is_postgres)
        return; /* the server is for other tests, too */
    o.conns_max       = IL_GUARD_CONNS_MAX;
    o.lock_timeout_ms = 2000;
    il_guard *c       = t_rows_open(g, &o, NULL);
    for (size_t i = 0; i < ARRAY_LEN(txs); i++)
        txs[i] = t_begin(c, NULL, true);
    T_EQ(t_guard_begin(c, NULL, true, &more, &err), IL_TIMEOUT);
    t_commit(txs[0]);
    il_guard_close(c); /* rolls back the others */
}

/* ---- interrupting ---------------------------------------------------------------------------- */

static il_status
lock_user_1(void *cookie, il_error *err)
{
    il_guard_tx *tx = NULL;

    il_status st = il_guard_begin(cookie, NULL, &tx, err);
    if (st == IL_OK)
        st = il_guard_lock(tx, R_USER(1), NULL, err);
    il_guard_rollback(tx);
    return st;
}

G_TEST(a_wait_for_a_row_is_interrupted)
{
    il_guard     *a = t_rows_open(g, NULL, NULL), *b = t_rows_open(g, NULL, NULL);
    struct t_task task;
    il_guard_tx  *later = NULL;
    struct work   w     = { 0 };
    il_error      err;

    t_rows_make(g);
    il_guard_tx *tx = begin(a);
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    int64_t pid = g->is_postgres ? t_pid_of(tx) : 0;
    t_task_start(&task, lock_user_1, b);
    if (g->is_postgres)
        T_TRUE(t_is_waited_for(g, pid, &task));
    il_guard_interrupt(b);
    T_EQ(t_task_end(&task), IL_CANCELLED);
    T_EQ(il_guard_begin(b, NULL, &later, &err), IL_CANCELLED); /* and later calls */
    T_EQ(il_guard_transact(b, NULL, work, &w, NULL, &err), IL_CANCELLED);
    T_EQ(il_guard_connect(b, &err), IL_CANCELLED);
    T_EQ(w.n_calls, 0);
    t_commit(tx); /* the other handle goes on */
    il_guard_close(a);
    il_guard_close(b);
}

G_TEST(calls_of_an_open_transaction_are_cancelled)
{
    il_guard *c = t_rows_open(g, NULL, NULL);
    il_error  err;

    t_rows_make(g);
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_add(tx, R_USER(1), "balance", 1, NULL, NULL, why));
    il_guard_interrupt(c);
    T_EQ(t_try(tx, "SELECT 1", &err), IL_CANCELLED);
    T_TRUE(il_guard_commit(tx, &err) != IL_OK);
    T_EQ(t_ground_count(g, BALANCE), 10);
    il_guard_close(c);
}

G_TEST(a_wait_for_a_connection_is_interrupted)
{
    il_guard_opts o = IL_GUARD_OPTS_INIT;
    struct t_task task;

    o.conns_max     = 1;
    il_guard    *c  = t_rows_open(g, &o, NULL);
    il_guard_tx *tx = t_begin(c, NULL, true);
    t_task_start(&task, read_once, c);
    T_TRUE(!t_event_wait(&task.done, 1, 100));
    il_guard_interrupt(c);
    T_EQ(t_task_end(&task), IL_CANCELLED);
    il_guard_rollback(tx);
    il_guard_close(c);
}

/* ---- what observers see ---------------------------------------------------------------------- */

struct holder {
    il_guard      *c;
    struct t_event locked, go;
    int64_t        began_ms, ended_ms;
};

static il_status
lock_and_hold(void *cookie, il_error *err)
{
    struct holder *h  = cookie;
    il_guard_tx   *tx = NULL;

    h->began_ms  = t_real_ms();
    il_status st = il_guard_begin(h->c, NULL, &tx, err);
    if (st == IL_OK)
        st = il_guard_lock(tx, R_USER(1), NULL, err);
    t_event_add(&h->locked);
    (void)t_event_wait(&h->go, 1, G_LIMIT_MS);
    if (st == IL_OK)
        st = il_guard_commit(tx, err);
    else
        il_guard_rollback(tx);
    h->ended_ms = t_real_ms();
    return st;
}

/* How long somebody waits for a lock, and how long he holds it. */
G_TEST(waiting_and_holding_are_apart)
{
    struct t_row_events seen;
    il_guard           *a = t_rows_open(g, NULL, NULL);
    struct holder       h = { .c = t_rows_open(g, NULL, &seen) };
    struct t_task       task;

    t_rows_make(g);
    t_event_init(&h.locked);
    t_event_init(&h.go);
    il_guard_tx *tx = begin(a);
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    int64_t pid = g->is_postgres ? t_pid_of(tx) : 0;
    t_task_start(&task, lock_and_hold, &h);
    if (g->is_postgres)
        T_TRUE(t_is_waited_for(g, pid, &task));
    int64_t waits_ms = t_real_ms();
    T_TRUE(!t_event_wait(&h.locked, 1, 150));
    waits_ms = t_real_ms() - waits_ms - 1;
    t_commit(tx);
    T_WAIT(&h.locked, 1, G_LIMIT_MS);
    int64_t holds_ms = t_real_ms();
    T_TRUE(!t_event_wait(&task.done, 1, 100));
    holds_ms = t_real_ms() - holds_ms - 1;
    t_event_add(&h.go);
    T_EQ(t_task_end(&task), IL_OK);
    T_EQ(seen.n, 1);
    if (g->is_postgres) /* SQLite: when the wait has begun cannot be seen from outside */
        T_LESS(waits_ms * 1000000, seen.rows[0].wait_ns);
    T_LESS(holds_ms * 1000000, seen.rows[0].hold_ns);
    /* nothing is counted twice */
    T_LESS(seen.rows[0].wait_ns + seen.rows[0].hold_ns, (h.ended_ms - h.began_ms + 1) * 1000000);
    t_event_release(&h.locked);
    t_event_release(&h.go);
    il_guard_close(a);
    il_guard_close(h.c);
}

static il_status
lock_and_fail(void *cookie UNUSED, il_guard_tx *tx, il_error *err)
{
    il_status st = il_guard_lock(tx, R_USER(3), NULL, err);

    return st == IL_OK ? IL_BUSY : st;
}

G_TEST(events_say_what_happened)
{
    struct t_row_events seen;
    il_guard           *c  = t_rows_open(g, NULL, &seen);
    il_guard_tx_opts    o  = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx        *tx = NULL;
    il_error            err;

    t_rows_make(g);
    o.pipeline = "enroll";
    o.caller   = "api";
    R_RUN(il_guard_begin(c, &o, &tx, why));
    R_RUN(il_guard_tag(tx, "user_id", R_INT(7), why));
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    t_exec(tx, "SELECT 1");
    R_RUN(il_guard_lock(tx, R_USER(2), NULL, why));
    t_exec(tx, "SELECT 2");
    T_EQ(il_guard_try(tx, lock_and_fail, NULL, &err), IL_BUSY);
    t_exec(tx, "SELECT 3");
    T_EQ(seen.n, 0); /* only at the end */
    t_commit(tx);
    T_EQ(seen.n, 3);
    T_EQ(seen.rows[0].n_queries, 5);
    T_EQ(seen.rows[1].n_queries, 3);
    T_EQ(seen.rows[2].n_queries, 0); /* undone at once */
    for (int i = 0; i < 3; i++) {
        const struct t_row_event *e = &seen.rows[i];
        T_STREQ(e->pipeline, "enroll");
        T_STREQ(e->caller, "api");
        T_STREQ(e->tags, "user_id=7|");
        T_EQ(e->outcome, IL_GUARD_COMMITTED);
        T_EQ(e->n_attempt, 1);
        T_STREQ(e->constraint, "");
        T_TRUE(e->wait_ns >= 0 && e->hold_ns >= 0);
    }
    T_STREQ(seen.rows[2].key, "3");
    il_guard_close(c);
}

/* A row that is held is found by its own key without a question to the database; by another form of
 * that key it still is found. */
G_TEST(a_held_row_is_not_looked_up_again)
{
    struct t_row_events seen;
    il_guard           *c          = t_rows_open(g, NULL, &seen);
    const char         *up         = g->is_postgres ? "0A000000-0000-4000-8000-000000000000" : "0a";
    const char         *down       = g->is_postgres ? "0a000000-0000-4000-8000-000000000000" : "0a";
    const char *const   asked[][2] = { { down, up }, { up, down }, { down, up } };
    char                sql[256];

    (void)snprintf(sql, sizeof sql, "CREATE TABLE named (id %s PRIMARY KEY, x BIGINT)",
                   g->is_postgres ? "uuid" : "TEXT");
    t_sql(g, sql);
    (void)snprintf(sql, sizeof sql, "INSERT INTO named VALUES ('%s', 1)", down);
    t_sql(g, sql);
    for (unsigned i = 0; i < ARRAY_LEN(asked); i++) {
        il_guard_tx *tx = NULL;
        R_RUN(il_guard_begin(c, NULL, &tx, why));
        R_RUN(il_guard_lock(tx, R_ROW("User", "named", "id", R_TEXT(asked[i][0])), NULL, why));
        R_RUN(il_guard_add(tx, R_ROW("User", "named", "id", R_TEXT(asked[i][1])), "x", 1, NULL,
                           NULL, why));
        t_commit(tx);
        T_EQ(seen.n, i + 1); /* held once, though it was asked for in two ways */
    }
    T_EQ(seen.rows[1].n_queries, 1); /* (the first transaction looks up the column) */
    T_EQ(seen.rows[2].n_queries, g->is_postgres ? 2 : 1);
    il_guard_close(c);
}

/* What a transaction with a row ends with. */
static il_guard_outcome
outcome(const struct t_ground *g, const char *sql, bool commits, il *h, il_status expected)
{
    struct t_row_events seen;
    il_guard           *c = t_rows_open(g, NULL, &seen);
    il_guard_fence      f = { .h = h, .key = G_KEY };
    il_error            err;

    if (h != NULL)
        f.fence = t_take(h, "a", 30000);
    il_guard_tx *tx = t_begin(c, h != NULL ? &f : NULL, false);
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    if (sql != NULL)
        T_EQ(t_try(tx, sql, &err), expected);
    if (h != NULL)
        t_break(h, f.fence);
    if (!commits)
        il_guard_rollback(tx);
    else
        T_EQ(il_guard_commit(tx, &err), sql != NULL ? IL_STATE : expected);
    T_EQ(seen.n, 1);
    T_STREQ(seen.rows[0].pipeline, "");
    il_guard_close(c);
    return seen.rows[0].outcome;
}

G_TEST(every_end_has_an_outcome)
{
    il *h = t_ground_store(g);

    t_rows_make(g);
    T_EQ(outcome(g, NULL, true, NULL, IL_OK), IL_GUARD_COMMITTED);
    T_EQ(outcome(g, NULL, false, NULL, IL_OK), IL_GUARD_ROLLED_BACK);
    T_EQ(outcome(g, "SELEC", true, NULL, IL_INVAL), IL_GUARD_ROLLED_BACK);
    T_EQ(outcome(g, NULL, true, h, IL_STALE), IL_GUARD_REFUSED);
    T_EQ(outcome(g, "UPDATE users SET email = 'b' WHERE id = 1", true, NULL, IL_UNIQUE),
         IL_GUARD_VIOLATION);
    T_EQ(outcome(g, "UPDATE users SET balance = -1", false, NULL, IL_CHECK), IL_GUARD_VIOLATION);
    T_STREQ(il_guard_outcome_name(IL_GUARD_ROLLED_BACK), "rolled_back");
    T_STREQ(il_guard_outcome_name(IL_GUARD_REFUSED), "refused");
    T_STREQ(il_guard_outcome_name(IL_GUARD_CONFLICT), "conflict");
    T_STREQ(il_guard_outcome_name(IL_GUARD_VIOLATION), "violation");
    il_close(h);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(a_conflict_is_tried_again),
        G_ROW(a_conflict_in_a_savepoint_is_tried_again),
        G_ROW(a_begin_that_waits_too_long_is_tried_again),
        G_ROW(attempts_are_limited),
        G_ROW(the_status_of_the_function_is_returned),
        G_ROW(a_transaction_with_a_key_is_done_once),
        G_ROW(two_with_one_key_at_once),
        G_ROW(a_role_without_the_right_to_create),
        G_ROW(connections_are_limited),
        G_ROW(as_many_connections_as_allowed),
        G_ROW(a_wait_for_a_row_is_interrupted),
        G_ROW(calls_of_an_open_transaction_are_cancelled),
        G_ROW(a_wait_for_a_connection_is_interrupted),
        G_ROW(waiting_and_holding_are_apart),
        G_ROW(events_say_what_happened),
        G_ROW(a_held_row_is_not_looked_up_again),
        G_ROW(every_end_has_an_outcome),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
