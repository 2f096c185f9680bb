/*
 * rows.h: for tests of row locks: a handle with ranks and an observer, targets, statuses inside
 * il_guard_try(), threads, and waits for a transaction that waits for another one.
 */
#ifndef T_GUARD_ROWS_H
#define T_GUARD_ROWS_H

#include <pthread.h>
#include <stdio.h>

#include "guard/ground.h"
#include "harness/clock.h"
#include "harness/event.h"

#define R_EVENTS_MAX 16

#define R_INT(n) il_guard_int(n)
#define R_TEXT(s) il_guard_text(s)
/* A row by one column. */
#define R_ROW(class_, in, column, is)                                         \
    (&(il_guard_target){ .entity = (class_),                                  \
                         .table  = (in),                                      \
                         .key    = (il_guard_column[]){ { (column), (is) } }, \
                         .n_key  = 1,                                         \
                         .place  = IL_GUARD_PLACE })
/* A row by two columns. */
#define R_ROW_2(class_, in, column_1, is_1, column_2, is_2)                              \
    (&(il_guard_target){                                                                 \
        .entity = (class_),                                                              \
        .table  = (in),                                                                  \
        .key    = (il_guard_column[]){ { (column_1), (is_1) }, { (column_2), (is_2) } }, \
        .n_key  = 2,                                                                     \
        .place  = IL_GUARD_PLACE })
#define R_USER(id) R_ROW("User", "users", "id", R_INT(id))
#define R_TERM(id) R_ROW("Term", "terms", "id", R_INT(id))

/* An event, copied. */
struct t_row_event {
    char             pipeline[32], caller[32], entity[32], table[32], key[64], place[128];
    char             constraint[64], tags[256];
    int64_t          wait_ns, hold_ns;
    unsigned         n_queries, n_attempt;
    il_guard_outcome outcome;
};

/* What the observer of a handle has seen. */
struct t_row_events {
    unsigned           n;
    struct t_row_event rows[R_EVENTS_MAX]; /* the first ones */
};

static inline void
t_row_observe(void *cookie, const il_guard_event *e)
{
    struct t_row_events *seen = cookie;

    if (seen->n < R_EVENTS_MAX) {
        struct t_row_event *r = &seen->rows[seen->n];
        *r                    = (struct t_row_event){ .wait_ns   = e->wait_ns,
                                                      .hold_ns   = e->hold_ns,
                                                      .n_queries = e->n_queries,
                                                      .n_attempt = e->n_attempt,
                                                      .outcome   = e->outcome };
        (void)snprintf(r->pipeline, sizeof r->pipeline, "%s", e->pipeline);
        (void)snprintf(r->caller, sizeof r->caller, "%s", e->caller);
        (void)snprintf(r->entity, sizeof r->entity, "%s", e->entity);
        (void)snprintf(r->table, sizeof r->table, "%s", e->table);
        (void)snprintf(r->key, sizeof r->key, "%s", e->key);
        (void)snprintf(r->place, sizeof r->place, "%s", e->place);
        (void)snprintf(r->constraint, sizeof r->constraint, "%s", e->constraint);
        for (size_t i = 0; i < e->n_tags; i++) {
            const il_guard_value *v = &e->tags[i].value;
            size_t                n = strlen(r->tags);
            if (v->type == IL_GUARD_INT)
                (void)snprintf(r->tags + n, sizeof r->tags - n, "%s=%lld|", e->tags[i].name,
                               (long long)v->integer);
            else
                (void)snprintf(r->tags + n, sizeof r->tags - n, "%s=%s|", e->tags[i].name,
                               v->data != NULL ? (const char *)v->data : "<null>");
        }
    }
    seen->n++;
}

/* Two classes of one rank, one before and one after them. */
static const il_guard_rank t_ranks[] = {
    { "Term", 10 }, { "License", 30 }, { "Seat", 30 }, { "User", 50 }, { "Note", 50 },
};

static inline il_guard *
t_rows_open(const struct t_ground *g, il_guard_opts *o, struct t_row_events *seen)
{
    il_guard_opts usual = IL_GUARD_OPTS_INIT;
    il_guard     *c     = NULL;
    il_error      err;

    if (o == NULL)
        o = &usual;
    o->ranks   = t_ranks;
    o->n_ranks = ARRAY_LEN(t_ranks);
    if (o->lock_timeout_ms == 0)
        o->lock_timeout_ms = G_LIMIT_MS;
    if (seen != NULL) {
        *seen      = (struct t_row_events){ 0 };
        o->observe = t_row_observe;
        o->cookie  = seen;
    }
    if (il_guard_open(g->url, o, &c, &err) != IL_OK)
        T_FAIL("%s: %s", g->url, err.message);
    return c;
}

static inline void
t_sql(const struct t_ground *g, const char *sql)
{
    char out[4096];

    (void)t_ground_ask(g, sql, out);
}

/* users 1..5, terms 1..3. */
static inline void
t_rows_make(const struct t_ground *g)
{
    t_sql(g, "CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT, balance BIGINT, "
             "small INTEGER, state TEXT, doc TEXT, "
             "CONSTRAINT users_email UNIQUE (email), "
             "CONSTRAINT users_balance CHECK (balance >= 0))");
    t_sql(g, "CREATE TABLE terms (id INTEGER PRIMARY KEY, code TEXT, total BIGINT)");
    t_sql(g, "INSERT INTO users (id, email, balance, small, state, doc) VALUES "
             "(1, 'a', 10, 1, 'new', '{}'), (2, 'b', 20, 1, 'new', '{}'), "
             "(3, 'c', 30, 1, NULL, '{}'), (4, 'd', NULL, NULL, 'old', NULL), "
             "(5, 'e', 50, 1, 'old', '{}')");
    t_sql(g, "INSERT INTO terms VALUES (1, 'x', 0), (2, 'x', 0), (3, 'z', 0)");
}

static inline void
t_commit(il_guard_tx *tx)
{
    il_error err;

    if (il_guard_commit(tx, &err) != IL_OK)
        T_FAIL("%s", err.message);
}

/* A call that must work; its last argument is `why`. */
#define R_RUN(call)                       \
    do {                                  \
        il_error  err_ = { .status = 0 }; \
        il_error *why  = &err_;           \
        if ((call) != IL_OK)              \
            T_FAIL("%s", err_.message);   \
    } while (0)

/* ---- threads --------------------------------------------------------------------------------- */

typedef il_status t_task_fn(void *cookie, il_error *err);

/* A call in a thread of its own. */
struct t_task {
    t_task_fn     *fn;
    void          *cookie;
    pthread_t      thread;
    struct t_event done;
    il_status      status;
    il_error       err;
};

static inline void *
t_task_main(void *arg)
{
    struct t_task *t = arg;

    t->status = t->fn(t->cookie, &t->err);
    t_event_add(&t->done);
    return NULL;
}

static inline void
t_task_start(struct t_task *t, t_task_fn *fn, void *cookie)
{
    *t = (struct t_task){ .fn = fn, .cookie = cookie };
    t_event_init(&t->done);
    T_EQ(pthread_create(&t->thread, NULL, t_task_main, t), 0);
}

static inline il_status
t_task_end(struct t_task *t)
{
    T_WAIT(&t->done, 1, G_LIMIT_MS);
    T_EQ(pthread_join(t->thread, NULL), 0);
    t_event_release(&t->done);
    return t->status;
}

/* ---- who waits for whom ---------------------------------------------------------------------- */

static inline int
t_take_pid(void *cookie, const il_guard_row *row)
{
    *(int64_t *)cookie = row->values[0].integer;
    return 0;
}

/* PostgreSQL: the server's process of a transaction. */
static inline int64_t
t_pid_of(il_guard_tx *tx)
{
    int64_t              pid = 0;
    const il_guard_query q   = { .sql    = "SELECT pg_backend_pid()",
                                 .each   = t_take_pid,
                                 .cookie = &pid };

    R_RUN(il_guard_exec(tx, &q, NULL, why));
    return pid;
}

/* PostgreSQL: wait until somebody waits for the transaction of this process. False: the task has
 * ended without that. */
static inline bool
t_is_waited_for(const struct t_ground *g, int64_t pid, struct t_task *task)
{
    char    sql[256];
    int64_t until_ms = t_real_ms() + G_LIMIT_MS;

    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM pg_stat_activity WHERE %lld = ANY (pg_blocking_pids(pid))",
                   (long long)pid);
    while (t_ground_count(g, sql) == 0) {
        if (t_event_count(&task->done) > 0)
            return false;
        if (t_real_ms() > until_ms)
            T_FAIL("nobody waits");
    }
    return true;
}

#endif
