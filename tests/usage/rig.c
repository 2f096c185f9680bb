/* rig.c: see rig.h. */
#include "usage/rig.h"

#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/parse.h"

/* A server's store is one that was emptied; tables beside it are those of the test before. */
static void
empty_tables(const struct rig *r)
{
    struct tables_place *place  = NULL;
    il_guard            *tables = NULL;
    il_guard_tx         *tx     = NULL;
    il_error             err;

    T_OK(il__tables_place_open(r->url, NULL, false, &place, &err), &err);
    T_OK(il__tables_open(&usage_tables, place, NULL, &tables, &err), &err);
    T_OK(il_guard_begin(tables, NULL, &tx, &err), &err);
    T_OK(il_guard_exec(tx, &(il_guard_query){ .sql = "DELETE FROM daily_usage_cache" }, NULL, &err),
         &err);
    T_OK(il_guard_commit(tx, &err), &err);
    il_guard_close(tables);
    il__tables_place_close(place);
}

void
rig_make(struct rig *r)
{
    const char *name = getenv("IL_TEST_USAGE");

    *r = (struct rig){ .engine = t_engine_find(name != NULL ? name : "sqlite") };
    t_tmp_make(r->dir);
    t_engine_make(r->engine, r->dir, r->other, r->url);
    r->is_postgres = strncmp(r->url, "postgres", 8) == 0;
    if (r->is_postgres)
        empty_tables(r);
    if (strncmp(r->url, "redis", 5) == 0)
        (void)snprintf(r->data, sizeof r->data, "sqlite:%s/data.db", r->dir);
}

void
rig_release(struct rig *r)
{
    t_engine_forget(r->engine, r->other, r->url);
    t_tmp_remove(r->dir);
}

/* ---- a process ------------------------------------------------------------------------------- */

static int64_t
now_of(void *cookie)
{
    return atomic_load(&((struct node *)cookie)->now_ms);
}

static void
note_of(void *cookie, const struct usage_note *note)
{
    atomic_fetch_add(&((struct node *)cookie)->notes[note->event], 1);
}

void
rig_take(sem_t *s)
{
    struct timespec until;

    /* not sem_clockwait(), which ThreadSanitizer does not know */
    CHECK(clock_gettime(CLOCK_REALTIME, &until) == 0);
    until.tv_sec += RIG_LIMIT_MS / 1000;
    if (sem_timedwait(s, &until) != 0)
        T_FAIL("nothing happened within %d ms", RIG_LIMIT_MS);
}

static void
phase_of(void *cookie, enum usage_phase phase, bool refresh UNUSED)
{
    struct node *n = cookie;

    if (atomic_load(&n->stop_at) != (int)phase)
        return;
    CHECK(sem_post(&n->reached) == 0);
    rig_take(&n->go);
}

void
node_set_time(struct node *n, const char *time)
{
    int64_t ms;

    CHECK(il__time_parse(time, &ms));
    atomic_store(&n->now_ms, ms);
}

void
node_init(struct node *n, const struct rig *r)
{
    *n = (struct node){
        .rig  = r,
        .from = { .type = USAGE_SOURCE_generator, .timeout_ms = RIG_LIMIT_MS },
        .opts = { .life          = { .current_ttl_ms = MINUTES(5) },
                  .grace_minutes = 5,
                  .wait_ms       = RIG_WAIT_MS,
                  .lease_ms      = RIG_LEASE_MS,
                  .n_threads     = 4,
                  .now_ms        = now_of,
                  .note          = note_of,
                  .phase         = phase_of },
    };
    atomic_init(&n->stop_at, -1);
    CHECK(sem_init(&n->reached, 0, 0) == 0 && sem_init(&n->go, 0, 0) == 0);
    node_set_time(n, "2025-03-01T12:00:00Z");
}

void
node_open(struct node *n)
{
    const struct rig *r = n->rig;
    il_error          err;

    n->opts.cookie = n;
    T_OK(il_open(r->url, NULL, &n->h, &err), &err);
    T_OK(il__tables_place_open(r->url, r->data[0] != '\0' ? r->data : NULL, false, &n->place, &err),
         &err);
    T_OK(il__tables_open(&usage_tables, n->place, NULL, &n->tables, &err), &err);
    T_OK(usage_source_open(&n->from, &n->source, &err), &err);
    n->opts.h      = n->h;
    n->opts.tables = n->tables;
    n->opts.source = n->source;
    T_OK(usage_open(&n->opts, &n->usage, &err), &err);
}

void
node_close(struct node *n)
{
    usage_close(n->usage);
    usage_source_close(n->source);
    il_guard_close(n->tables);
    il__tables_place_close(n->place);
    il_close(n->h);
    CHECK(sem_destroy(&n->reached) == 0 && sem_destroy(&n->go) == 0);
}

/* ---- asking ---------------------------------------------------------------------------------- */

usage_date
rig_date(const char *text)
{
    usage_date date;

    CHECK(usage_date_parse(text, &date));
    return date;
}

static void
asked(struct usage_waiter *w, struct usage_result *result)
{
    struct asking *a = container_of(w, struct asking, waiter);

    a->result = *result;
    CHECK(sem_post(&a->done) == 0);
}

void
asking_begin(struct asking *a, struct node *n, const char *tenant, const char *date,
             enum usage_way way)
{
    il_error err;

    *a = (struct asking){ .waiter = { .done = asked } };
    CHECK(sem_init(&a->done, 0, 0) == 0);
    T_OK(usage_join(n->usage, tenant, rig_date(date), way, &a->waiter, &err), &err);
}

struct usage_result
asking_end(struct asking *a)
{
    rig_take(&a->done);
    CHECK(sem_destroy(&a->done) == 0);
    return a->result;
}

struct usage_result
node_ask(struct node *n, const char *tenant, const char *date, enum usage_way way)
{
    struct asking a;

    asking_begin(&a, n, tenant, date, way);
    return asking_end(&a);
}

void
rig_drop(struct usage_result *r)
{
    usage_copy_unref(r->copy);
    r->copy = NULL;
}

int64_t
node_must(struct node *n, const char *date, enum usage_way way, bool hit)
{
    struct usage_result r = node_ask(n, "default", date, way);

    if (r.status != IL_OK)
        T_FAIL("%s: %s: %s", date, il_status_name(r.status), r.text);
    CHECK(r.copy != NULL && r.hit == hit);
    int64_t updated_ms = r.copy->updated_ms;
    rig_drop(&r);
    return updated_ms;
}

struct usage_counts
node_counts(const struct node *n)
{
    struct usage_counts c;

    usage_counts(n->usage, &c);
    return c;
}

bool
node_row(struct node *n, const char *tenant, const char *date, struct usage_row *ret)
{
    il_error  err;
    il_status st = usage_row_get(n->tables, tenant, rig_date(date), ret, &err);

    if (st == IL_NOT_FOUND)
        return false;
    T_OK(st, &err);
    usage_row_release(ret);
    return true;
}

struct first {
    char  *out;
    size_t size;
};

static int
keep_first(void *cookie, const il_guard_row *row)
{
    const struct first *f = cookie;

    (void)snprintf(f->out, f->size, "%s", (const char *)row->values[0].data);
    return 0;
}

void
node_sql(struct node *n, const char *sql, const char *tenant, char *out, size_t size)
{
    struct first         f      = { out, size };
    const il_guard_value values = il_guard_text(tenant);
    const il_guard_query q      = { .sql      = sql,
                                    .values   = &values,
                                    .n_values = tenant != NULL ? 1 : 0,
                                    .flags    = IL_GUARD_AS_TEXT,
                                    .each     = keep_first,
                                    .cookie   = &f };
    il_guard_tx         *tx     = NULL;
    il_error             err;

    out[0] = '\0';
    T_OK(il_guard_begin(n->tables, NULL, &tx, &err), &err);
    T_OK(il_guard_exec(tx, &q, NULL, &err), &err);
    T_OK(il_guard_commit(tx, &err), &err);
}

bool
node_is_locked(struct node *n, const char *date)
{
    char  key[USAGE_KEY_BYTES];
    il_op op = { 0 };

    (void)snprintf(key, sizeof key, USAGE_KEY "%s", date);
    il_status st = il_get(n->h, key, &op, NULL);
    CHECK(st == IL_OK || st == IL_NOT_HELD);
    il_op_release(&op);
    return st == IL_OK;
}

void
node_until(struct node *n, bool (*check)(struct node *n), const char *what)
{
    int64_t until_ns = il__clock_boot_ns() + RIG_LIMIT_MS * INT64_C(1000000);

    while (!check(n)) {
        if (il__clock_boot_ns() > until_ns)
            T_FAIL("%s does not happen within %d ms", what, RIG_LIMIT_MS);
        (void)poll(NULL, 0, 5);
    }
}
