/*
 * fence.c: a holder that has lost its lease cannot commit: checked at begin, at commit, stopped in
 * between, and after a reader.
 */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "guard/ground.h"
#include "harness/event.h"
#include "harness/proc.h"
#include "runtime/handle.h"

#define MAKE "CREATE TABLE t (who TEXT)"
#define COUNT "SELECT count(*) FROM t"

static il_status
commit(il_guard_tx *tx, il_error *err)
{
    *err = (il_error){ .message = "" };
    return il_guard_commit(tx, err);
}

static void
make_table(const struct t_ground *g)
{
    char out[4096];

    (void)t_ground_ask(g, MAKE, out);
}

G_TEST(a_current_fence_commits)
{
    il            *h = t_ground_store(g);
    il_guard      *c = t_ground_open(g, 0);
    il_guard_fence f = t_fence(h, t_take(h, "a", 30000));
    il_error       err;

    make_table(g);
    for (int i = 0; i < 3; i++) { /* several transactions of one holder, on one connection */
        il_guard_tx *tx = t_begin(c, &f, false);
        t_exec(tx, "INSERT INTO t VALUES ('a')");
        T_EQ(commit(tx, &err), IL_OK);
    }
    T_EQ(t_ground_count(g, COUNT), 3);
    il_guard_tx *tx = t_begin(c, &f, false);
    t_exec(tx, "DELETE FROM t");
    il_guard_rollback(tx);
    T_EQ(t_ground_count(g, COUNT), 3);
    il_guard_close(c);
    il_close(h);
}

G_TEST(a_stale_fence_is_refused_at_the_begin)
{
    il            *h    = t_ground_store(g);
    il_guard      *c    = t_ground_open(g, 0);
    uint64_t       a    = t_take(h, "a", 30000);
    il_guard_fence f    = t_fence(h, a);
    il_guard_tx   *tx   = NULL;
    il_error       err  = { .message = "" };
    il_guard_fence none = t_fence(h, a + 1);

    t_break(h, a);
    T_EQ(t_guard_begin(c, &f, false, &tx, &err), IL_STALE);
    T_HAS(err.message, G_KEY);
    T_EQ(t_guard_begin(c, &f, true, &tx, &err), IL_STALE);
    T_EQ(t_guard_begin(c, &none, false, &tx, &err), IL_STALE); /* one that nobody was given */
    il_guard_close(c);
    il_close(h);
}

G_TEST(a_stale_fence_is_refused_at_the_commit)
{
    il            *h = t_ground_store(g);
    il_guard      *c = t_ground_open(g, 0);
    uint64_t       a = t_take(h, "a", 30000);
    il_guard_fence f = t_fence(h, a);
    il_error       err;

    make_table(g);
    il_guard_tx *tx = t_begin(c, &f, false);
    t_exec(tx, "INSERT INTO t VALUES ('a')");
    t_break(h, a);
    T_EQ(commit(tx, &err), IL_STALE);
    T_HAS(err.message, G_KEY);
    T_EQ(t_ground_count(g, COUNT), 0);
    il_guard_close(c);
    il_close(h);
}

G_TEST(a_fence_of_another_tenant_is_not_ours)
{
    il            *h  = t_ground_store(g);
    il_guard      *c  = t_ground_open(g, 0);
    il_guard_fence f  = t_fence(h, t_take(h, "a", 30000));
    il_guard_tx   *tx = NULL;
    il_error       err;

    f.tenant = "acme";
    T_EQ(t_guard_begin(c, &f, false, &tx, &err), IL_STALE);
    f.tenant = "default";
    tx       = t_begin(c, &f, false);
    T_EQ(commit(tx, &err), IL_OK);
    il_guard_close(c);
    il_close(h);
}

/* ---- the table of fences --------------------------------------------------------------------- */

/*
 * Two stores, each of which takes its own holder for the current one: only what was shown to the
 * database can tell them apart. The second is born later, so its fences are higher.
 */
struct two {
    il            *h[2];
    il_guard_fence f[2];
    il_guard      *c[2];
};

static void
two_make(struct two *t, const struct t_ground *g, int64_t timeout_ms)
{
    for (int i = 0; i < 2; i++) {
        char     url[T_PATH_BYTES];
        il_error err;
        t_path(url, "sqlite:%s/two%d.db", g->dir, i);
        T_EQ(il_open(url, NULL, &t->h[i], &err), IL_OK);
        t->f[i] = t_fence(t->h[i], t_take(t->h[i], i == 0 ? "a" : "b", 60000));
        t->c[i] = t_ground_open(g, timeout_ms);
    }
    T_LESS(t->f[0].fence, t->f[1].fence);
}

static void
two_release(struct two *t)
{
    for (int i = 0; i < 2; i++) {
        il_guard_close(t->c[i]);
        il_close(t->h[i]);
    }
}

G_TEST(a_higher_fence_that_was_shown_keeps_a_lower_one_out)
{
    struct two   t;
    il_guard_tx *tx;
    il_error     err = { .message = "" };

    two_make(&t, g, 0);
    make_table(g);
    tx = t_begin(t.c[0], &t.f[0], false);
    t_exec(tx, "INSERT INTO t VALUES ('a')");
    T_EQ(commit(tx, &err), IL_OK);
    tx = t_begin(t.c[1], &t.f[1], false);
    T_EQ(commit(tx, &err), IL_OK);
    T_EQ(t_guard_begin(t.c[0], &t.f[0], false, &tx, &err), IL_STALE);
    T_EQU(err.fence, t.f[1].fence);
    T_HAS(err.message, "newer fence");
    T_EQ(t_guard_begin(t.c[0], &t.f[0], true, &tx, &err), IL_STALE);
    two_release(&t);
}

/* Steps of one run at the same time: nobody waits for the other. (In SQLite, for the file.) */
G_TEST(transactions_with_one_fence_are_side_by_side)
{
    il            *h  = t_ground_store(g);
    il_guard      *c1 = t_ground_open(g, 300), *c2 = t_ground_open(g, 300);
    il_guard_fence f = t_fence(h, t_take(h, "a", 30000));
    il_error       err;

    make_table(g);
    if (g->is_postgres) {
        il_guard_tx *tx1 = t_begin(c1, &f, false);
        t_exec(tx1, "INSERT INTO t VALUES ('a')");
        il_guard_tx *tx2 = t_begin(c2, &f, false);
        t_exec(tx2, "INSERT INTO t VALUES ('a')");
        T_EQ(commit(tx1, &err), IL_OK);
        tx1 = t_begin(c1, &f, true);
        T_EQ(commit(tx1, &err), IL_OK);
        T_EQ(commit(tx2, &err), IL_OK);
        T_EQ(t_ground_count(g, COUNT), 2);
    }
    il_guard_close(c1);
    il_guard_close(c2);
    il_close(h);
}

G_TEST(a_fence_that_a_reader_showed_keeps_a_zombie_out)
{
    struct two   t;
    il_guard_tx *tx;
    il_error     err;

    two_make(&t, g, 0);
    make_table(g);
    tx = t_begin(t.c[1], &t.f[1], true);
    t_exec(tx, COUNT);
    il_guard_tx *zombie = NULL;
    /* while it still reads */
    T_EQ(t_guard_begin(t.c[0], &t.f[0], false, &zombie, &err), IL_STALE);
    T_EQ(commit(tx, &err), IL_OK);
    T_EQ(t_guard_begin(t.c[0], &t.f[0], false, &zombie, &err), IL_STALE);
    T_EQ(t_ground_count(g, COUNT), 0);
    two_release(&t);
}

/* A reader that only rolls back leaves no rows, but the fence stays. */
G_TEST(a_transaction_that_reads_does_not_write)
{
    il            *h = t_ground_store(g);
    il_guard      *c = t_ground_open(g, 0);
    il_guard_fence f = t_fence(h, t_take(h, "a", 30000));
    il_error       err;

    make_table(g);
    il_guard_tx *tx = t_begin(c, &f, true);
    T_EQ(t_try(tx, "INSERT INTO t VALUES ('a')", &err), IL_INVAL);
    T_EQ(t_try(tx, COUNT, &err), IL_STATE); /* good for rollback only */
    T_EQ(commit(tx, &err), IL_STATE);
    tx = t_begin(c, &f, true);
    t_exec(tx, COUNT);
    T_EQ(commit(tx, &err), IL_OK);
    T_EQ(t_ground_count(g, COUNT), 0);
    if (!g->is_shared)
        T_EQ(t_ground_count(g, "SELECT fence FROM interlock_fence"), f.fence);
    il_guard_close(c);
    il_close(h);
}

/* The later holder waits for the transaction of the one before, and sees what it wrote. */
struct waiter {
    struct two    *t;
    struct t_event done;
    il_status      status;
    int64_t        n_seen;
    bool           reads;
    il_error       err;
};

static int
take_count(void *cookie, const il_guard_row *row)
{
    *(int64_t *)cookie = strtoll(t_guard_text(row, 0), NULL, 10);
    return 1;
}

static void *
wait_main(void *arg)
{
    struct waiter *w  = arg;
    il_guard_tx   *tx = NULL;

    w->status = t_guard_begin(w->t->c[1], &w->t->f[1], w->reads, &tx, &w->err);
    if (w->status == IL_OK)
        w->status = t_guard_exec(tx, COUNT, NULL, 0, take_count, &w->n_seen, NULL, &w->err);
    if (w->status == IL_OK)
        w->status = il_guard_commit(tx, &w->err);
    else
        il_guard_rollback(tx);
    t_event_add(&w->done);
    return NULL;
}

static void
wait_for_the_one_before(struct t_ground *g, bool reads)
{
    struct two    t;
    struct waiter w = { .t = &t, .reads = reads, .n_seen = -1 };
    pthread_t     thread;
    il_error      err;

    two_make(&t, g, G_LIMIT_MS);
    make_table(g);
    t_event_init(&w.done);
    il_guard_tx *tx = t_begin(t.c[0], &t.f[0], false);
    t_exec(tx, "INSERT INTO t VALUES ('a')");
    T_EQ(pthread_create(&thread, NULL, wait_main, &w), 0);
    T_TRUE(!t_event_wait(&w.done, 1, 200)); /* it does not get in: a limit, not a hope */
    T_EQ(commit(tx, &err), IL_OK);
    T_WAIT(&w.done, 1, G_LIMIT_MS);
    T_EQ(pthread_join(thread, NULL), 0);
    T_EQ(w.status, IL_OK);
    T_EQ(w.n_seen, 1);
    t_event_release(&w.done);
    two_release(&t);
}

G_TEST(a_later_writer_waits_for_the_one_before)
{
    wait_for_the_one_before(g, false);
}

G_TEST(a_later_reader_waits_for_the_one_before)
{
    wait_for_the_one_before(g, true);
}

/* Not for ever. */
G_TEST(waiting_has_a_limit)
{
    struct two   t;
    il_guard_tx *other = NULL;
    il_error     err   = { .message = "" };

    two_make(&t, g, 300);
    il_guard_tx *tx = t_begin(t.c[0], &t.f[0], false);
    T_EQ(t_guard_begin(t.c[1], &t.f[1], false, &other, &err), IL_TIMEOUT);
    T_TRUE(err.message[0] != '\0');
    T_EQ(commit(tx, &err), IL_OK);
    /* and the connection is good again */
    T_EQ(commit(t_begin(t.c[1], &t.f[1], false), &err), IL_OK);
    two_release(&t);
}

/* Two who make the table at once. */
struct maker {
    const struct t_ground *g;
    struct t_event        *go;
    il_status              status;
    char                   key[32];
    il                    *h;
    uint64_t               fence; /* 0: take the key first */
    il_error               err;
};

static void *
make_main(void *arg)
{
    struct maker  *m     = arg;
    il_guard      *c     = NULL;
    il_guard_tx   *tx    = NULL;
    il_guard_fence f     = { .h = m->h, .key = m->key };
    il_lease      *lease = NULL;

    f.fence = m->fence;
    if (m->fence == 0) {
        m->status = il_acquire(m->h, m->key, NULL, &lease, &m->err);
        f.fence   = m->status == IL_OK ? il_lease_fence(lease) : 0;
    }
    if (m->status == IL_OK)
        m->status = t_guard_open(m->g->url, G_LIMIT_MS, &c, &m->err);
    (void)t_event_wait(m->go, 1, G_LIMIT_MS);
    if (m->status == IL_OK)
        m->status = t_guard_begin(c, &f, false, &tx, &m->err);
    if (m->status == IL_OK)
        m->status = il_guard_commit(tx, &m->err);
    il_guard_close(c);
    il_lease_free(lease);
    return NULL;
}

static void
at_once(const struct t_ground *g, il *h, uint64_t fence)
{
    struct t_event go;
    struct maker   makers[8];
    pthread_t      threads[8];

    t_event_init(&go);
    for (int i = 0; i < 8; i++) {
        makers[i] = (struct maker){ .g = g, .go = &go, .h = h, .fence = fence };
        if (fence != 0)
            (void)snprintf(makers[i].key, sizeof makers[i].key, "%s", G_KEY);
        else
            (void)snprintf(makers[i].key, sizeof makers[i].key, "k:%d", i);
        T_EQ(pthread_create(&threads[i], NULL, make_main, &makers[i]), 0);
    }
    t_event_add(&go);
    for (int i = 0; i < 8; i++) {
        T_EQ(pthread_join(threads[i], NULL), 0);
        if (makers[i].status != IL_OK)
            T_FAIL("%s", makers[i].err.message);
    }
    t_event_release(&go);
}

G_TEST(many_make_the_table_at_once)
{
    il *h = t_ground_store(g);

    at_once(g, h, 0);
    if (!g->is_shared)
        T_EQ(t_ground_count(g, "SELECT count(*) FROM interlock_fence"), 8);
    il_close(h);
}

/* Steps of the next run, all at once: each would make its fence the highest. */
G_TEST(many_show_a_higher_fence_at_once)
{
    il               *h       = t_ground_store(g);
    il_guard         *c       = t_ground_open(g, 0);
    const char *const names[] = { "a", "b", "c", "d", "e", "f" };
    il_error          err;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        il_guard_fence f = t_fence(h, t_take(h, names[i], 30000));
        at_once(g, h, f.fence);
        T_EQ(commit(t_begin(c, &f, false), &err), IL_OK);
        if (!g->is_shared)
            T_EQ(t_ground_count(g, "SELECT fence FROM interlock_fence"), f.fence);
        t_break(h, f.fence);
    }
    il_guard_close(c);
    il_close(h);
}

/* ---- a zombie -------------------------------------------------------------------------------- */

/* Holder A, a process of its own: takes the key for a second, begins, writes; then, when it is told
 * to, commits. */
static int
zombie_main(void *arg)
{
    const struct t_ground *g  = arg;
    il                    *h  = t_ground_store(g);
    il_guard              *c  = t_ground_open(g, 0);
    il_guard_fence         f  = t_fence(h, t_take(h, "a", 1000));
    il_guard_tx           *tx = t_begin(c, &f, false);
    char                   line[64];
    il_error               err;

    t_exec(tx, "INSERT INTO t VALUES ('a')");
    (void)printf("ready\n");
    (void)fflush(stdout);
    T_TRUE(fgets(line, sizeof line, stdin) != NULL);
    (void)printf("commit %s\n", il_status_name(commit(tx, &err)));
    il_guard_tx *again = NULL;
    (void)printf("again %s\n", il_status_name(t_guard_begin(c, &f, false, &again, &err)));
    (void)fflush(stdout);
    il_guard_close(c);
    il_close(h);
    return 0;
}

struct heir {
    const struct t_ground *g;
    il                    *h;
    il_guard_fence         f;
    struct t_event         begins, done;
    il_status              status;
    il_error               err;
};

/* Holder B, once the lease of A has run out. */
static void *
heir_main(void *arg)
{
    struct heir *b  = arg;
    il_guard    *c  = NULL;
    il_guard_tx *tx = NULL;

    b->status = t_guard_open(b->g->url, G_LIMIT_MS, &c, &b->err);
    t_event_add(&b->begins);
    if (b->status == IL_OK)
        b->status = t_guard_begin(c, &b->f, false, &tx, &b->err);
    if (b->status == IL_OK)
        b->status =
            t_guard_exec(tx, "INSERT INTO t VALUES ('b')", NULL, 0, NULL, NULL, NULL, &b->err);
    if (b->status == IL_OK)
        b->status = il_guard_commit(tx, &b->err);
    else
        il_guard_rollback(tx);
    il_guard_close(c);
    t_event_add(&b->done);
    return NULL;
}

G_TEST(a_holder_that_was_stopped_cannot_commit)
{
    struct t_proc zombie;
    struct heir   b = { .g = g };
    pthread_t     thread;
    char          out[4096], line[T_PROC_LINE_BYTES];

    make_table(g);
    t_proc_fork(&zombie, zombie_main, g);
    T_LINE(&zombie, "ready", G_LIMIT_MS, NULL);
    t_proc_signal(&zombie, SIGSTOP);
    T_TRUE(t_pid_in_state(zombie.pid, 'T', G_LIMIT_MS));

    t_event_init(&b.begins);
    t_event_init(&b.done);
    b.h = t_ground_store(g);
    b.f = t_fence(b.h, t_take(b.h, "b", 60000)); /* waits until A's lease has run out */
    T_EQ(pthread_create(&thread, NULL, heir_main, &b), 0);
    T_WAIT(&b.begins, 1, G_LIMIT_MS);
    if (g->is_shared) /* nothing of A's keeps it waiting */
        T_WAIT(&b.done, 1, G_LIMIT_MS);
    t_proc_signal(&zombie, SIGCONT);
    t_proc_say(&zombie, "go");
    T_LINE(&zombie, "commit", G_LIMIT_MS, line);
    T_STREQ(line, "commit FENCE_STALE");
    T_LINE(&zombie, "again", G_LIMIT_MS, line);
    T_STREQ(line, "again FENCE_STALE");
    T_WAIT(&b.done, 1, G_LIMIT_MS);
    T_EQ(pthread_join(thread, NULL), 0);
    if (b.status != IL_OK)
        T_FAIL("%s", b.err.message);
    T_EQ(t_ground_count(g, COUNT), 1);
    T_STREQ(t_ground_ask(g, "SELECT who FROM t", out), "b");
    T_EQ(t_proc_exit(&zombie, G_LIMIT_MS), 0);
    t_proc_release(&zombie);
    t_event_release(&b.begins);
    t_event_release(&b.done);
    il_close(b.h);
}

/* A holder that dies in the middle leaves nothing, and nothing locked. */
G_TEST(a_holder_that_was_killed_leaves_nothing)
{
    struct t_proc zombie;
    struct heir   b = { .g = g };
    char          out[4096];

    make_table(g);
    t_proc_fork(&zombie, zombie_main, g);
    T_LINE(&zombie, "ready", G_LIMIT_MS, NULL);
    t_proc_signal(&zombie, SIGKILL);
    T_TRUE(t_proc_end(&zombie, G_LIMIT_MS));
    t_event_init(&b.begins);
    t_event_init(&b.done);
    b.h = t_ground_store(g);
    b.f = t_fence(b.h, t_take(b.h, "b", 60000));
    (void)heir_main(&b);
    if (b.status != IL_OK)
        T_FAIL("%s", b.err.message);
    T_STREQ(t_ground_ask(g, "SELECT who FROM t", out), "b");
    t_proc_release(&zombie);
    t_event_release(&b.begins);
    t_event_release(&b.done);
    il_close(b.h);
}

/* Where the store shares the database, guarded tables are told of the fence, too. */
G_TEST(a_guarded_table_takes_our_writes)
{
    il            *h = t_ground_store(g);
    il_guard      *c = t_ground_open(g, 0);
    il_guard_fence f = t_fence(h, t_take(h, "a", 30000));
    char           out[4096], table[128];
    il_error       err;

    if (g->is_shared) {
        (void)t_ground_ask(g, "CREATE TABLE guarded (id text, n int)", out);
        (void)snprintf(table, sizeof table, "%s.guarded", g->schema);
        struct il__table_guard change = { .table  = table,
                                          .key    = "pipeline:{id}",
                                          .tenant = "default" };
        if (il__handle_guard_table(h, &change, NULL, NULL, &err) != IL_OK)
            T_FAIL("%s", err.message);
        il_guard_tx *tx = t_begin(c, &f, false);
        t_exec(tx, "INSERT INTO guarded VALUES ('p', 1)");
        T_EQ(commit(tx, &err), IL_OK);
        tx = t_begin(c, &f, false);
        /* IL002: of another key */
        T_EQ(t_try(tx, "INSERT INTO guarded VALUES ('other', 1)", &err), IL_INVAL);
        il_guard_rollback(tx);
    }
    il_guard_close(c);
    il_close(h);
}

static il_status
begin_with(il_guard *c, const il_guard_fence *f, il_error *err)
{
    il_guard_tx_opts o  = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx     *tx = NULL;

    o.fences     = f;
    o.n_fences   = 1;
    il_status st = il_guard_begin(c, &o, &tx, err);
    il_guard_rollback(tx);
    return st;
}

/* Two stores in one database have the same key: each fence counts in its own store. */
G_TEST(two_stores_in_one_database)
{
    struct t_ground other = *g;
    char            sql[256], out[4096];
    il_error        err;

    if (!g->is_shared)
        return;
    t_path(other.store, "%s&schema=il2_%s", g->server, g->schema);
    il            *h = t_ground_store(g), *h2 = t_ground_store(&other);
    il_guard      *c        = t_ground_open(g, 0);
    il_guard_fence fences[] = { t_fence(h, t_take(h, "a", 30000)),
                                t_fence(h2, t_take(h2, "a", 30000)) };
    make_table(g);
    t_break(h2, fences[1].fence);
    il_guard_tx *tx = t_begin(c, &fences[0], false); /* the other store's lease does not matter */
    t_exec(tx, "INSERT INTO t VALUES ('first')");
    T_EQ(commit(tx, &err), IL_OK);
    T_EQ(begin_with(c, &fences[1], &err), IL_STALE);
    fences[1] = t_fence(h2, t_take(h2, "b", 30000));
    t_break(h, fences[0].fence);
    tx = t_begin(c, &fences[1], false);
    t_exec(tx, "INSERT INTO t VALUES ('second')");
    T_EQ(commit(tx, &err), IL_OK);
    T_EQ(begin_with(c, &fences[0], &err), IL_STALE);
    T_EQ(t_ground_count(g, COUNT), 2);
    il_guard_close(c);
    il_close(h);
    il_close(h2);
    (void)snprintf(sql, sizeof sql, "DROP SCHEMA il2_%s CASCADE", g->schema);
    (void)t_ground_ask(g, sql, out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(a_current_fence_commits),
        G_ROW(a_stale_fence_is_refused_at_the_begin),
        G_ROW(a_stale_fence_is_refused_at_the_commit),
        G_ROW(a_fence_of_another_tenant_is_not_ours),
        G_ROW(a_higher_fence_that_was_shown_keeps_a_lower_one_out),
        G_ROW(transactions_with_one_fence_are_side_by_side),
        G_ROW(a_fence_that_a_reader_showed_keeps_a_zombie_out),
        G_ROW(a_transaction_that_reads_does_not_write),
        G_ROW(a_later_writer_waits_for_the_one_before),
        G_ROW(a_later_reader_waits_for_the_one_before),
        G_ROW(waiting_has_a_limit),
        G_ROW(many_make_the_table_at_once),
        G_ROW(many_show_a_higher_fence_at_once),
        G_ROW(a_holder_that_was_stopped_cannot_commit),
        G_ROW(a_holder_that_was_killed_leaves_nothing),
        G_ROW(a_guarded_table_takes_our_writes),
        G_ROW(two_stores_in_one_database),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
