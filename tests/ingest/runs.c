/*
 * runs.c: ingestions as runs; see runs.h.
 */
#include "ingest/runs.h"

#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "data/history.h"

void
t_runs_make(struct t_ground_of_runs *g, const struct site_serve *how)
{
    const char *store = getenv("IL_TEST_STORE");

    *g = (struct t_ground_of_runs){ .engine = store != NULL ? t_engine_find(store) : NULL };
    t_site_start(&g->site, how);
    t_rig_make(&g->rig);
    if (g->engine != NULL)
        t_engine_make(g->engine, g->rig.dir, g->other, g->store);
    else
        t_path(g->store, "%s", g->rig.url);
}

void
t_runs_release(struct t_ground_of_runs *g)
{
    if (g->engine != NULL)
        t_engine_forget(g->engine, g->other, g->store);
    t_site_stop(&g->site);
    t_rig_release(&g->rig);
}

/* ---- an engine ------------------------------------------------------------------------------- */

static void
note(void *cookie, const struct ingest_note *n)
{
    struct t_engine_of_runs *e = cookie;

    T_EQ(pthread_mutex_lock(&e->mutex), 0);
    e->n[n->type]++;
    if (n->type == INGEST_NOTE_ENDED) {
        e->last = *n;
        (void)snprintf(e->event_id, sizeof e->event_id, "%s",
                       n->event_id != NULL ? n->event_id : "");
    }
    T_EQ(pthread_mutex_unlock(&e->mutex), 0);
}

void
t_engine_open(struct t_engine_of_runs *e, const struct t_ground_of_runs *g, struct ingest_options o)
{
    const char          *data_url = g->engine != NULL ? g->rig.url : NULL;
    struct il__data_open d = { .store_url = g->store, .no_keys = true }; /* a file's is beside it */
    il_error             err = { .message = "" };

    if (g->engine != NULL && g->engine->server != NULL)
        d.data_url = data_url;
    *e = (struct t_engine_of_runs){ .h = NULL };
    T_EQ(pthread_mutex_init(&e->mutex, NULL), 0);
    if (il_open(g->store, NULL, &e->h, &err) != IL_OK ||
        il__data_open(&d, &e->data, &err) != IL_OK ||
        il__tables_place_open(g->store, data_url, false, &e->place, &err) != IL_OK ||
        il__tables_open(&il__ingest_tables, e->place, NULL, &e->tables, &err) != IL_OK)
        T_FAIL("%s", err.message);
    o.h             = e->h;
    o.data          = e->data;
    o.place         = e->place;
    o.mode          = WORK_HERE;
    o.fetch.base    = g->site.base;
    o.fetch.permits = o.fetch.permits != 0 ? o.fetch.permits : 2;
    if (o.fetch.backoff_ms == 0)
        o.fetch.backoff_ms = 1;
    o.stall_ms = o.stall_ms != 0 ? o.stall_ms : T_LIMIT_MS;
    o.max_ms   = o.max_ms != 0 ? o.max_ms : T_LIMIT_MS;
    o.runs_max = o.runs_max != 0 ? o.runs_max : 4;
    o.note     = o.note != NULL ? o.note : note;
    o.cookie   = o.cookie != NULL ? o.cookie : e;
    if (il__ingest_open(&o, &e->in, &err) != IL_OK)
        T_FAIL("%s", err.message);
}

void
t_engine_close(struct t_engine_of_runs *e)
{
    il__ingest_stop(e->in);
    il__ingest_close(e->in);
    il_guard_close(e->tables);
    il__tables_place_close(e->place);
    il__data_close(e->data);
    il_close(e->h);
    T_EQ(pthread_mutex_destroy(&e->mutex), 0);
}

/* ---- runs ------------------------------------------------------------------------------------ */

il_status
t_trigger(struct t_engine_of_runs *e, struct ingest_start s, char id[IL_ID_BYTES_MAX + 1])
{
    il_op    op  = { .type = IL_OP_NONE };
    void    *mem = NULL;
    char     uuid[37];
    il_error err = { .message = "" };

    T_EQ(il_uuid(uuid), IL_OK);
    s.id     = uuid;
    s.tenant = s.tenant != NULL ? s.tenant : T_DEFAULT;
    s.by     = "test";
    s.type   = "cli";
    if (s.kind == INGEST_RUN_EVENT && s.source_event_id == NULL)
        s.source_event_id = T_EVENT;
    if (s.kind == INGEST_RUN_EVENT && s.track_slug == NULL)
        s.track_slug = T_SLUG;
    if (s.policy == IL_POLICY_JOIN)
        s.policy = IL_POLICY_REJECT;
    if (il__ingest_start_op(&s, &mem, &op, &err) != IL_OK)
        T_FAIL("%s", err.message);
    if (il_apply(e->h, &op, 1, &err) != IL_OK)
        T_FAIL("%s", err.message);
    il_status st = op.status;
    (void)snprintf(id, IL_ID_BYTES_MAX + 1, "%s", op.out.n_runs > 0 ? op.out.runs[0].id : "");
    const il_run_info *run;
    (void)il__ingest_answer(il__ingest_work(e->in), &op, &run);
    il_op_release(&op);
    il__arena_free(&mem);
    return st;
}

/* What the run shows, as the parts of it that tests look at. */
static json_t *
view(struct t_engine_of_runs *e, const il_run_info *run)
{
    struct ingest_run_out out;
    void                 *mem = NULL;
    il_error              err = { .message = "" };

    T_TRUE(il__ingest_run_show(run, &mem, &out));
    if (il__ingest_run_history(e->data, run, &mem, &out, &err) != IL_OK)
        T_FAIL("%s", err.message);
    json_t *stages = json_object();
    for (size_t i = 0; i < out.n_stages; i++)
        T_EQ(json_object_set_new(stages, out.stages[i].stage,
                                 json_pack("{s:s, s:I, s:o?}", "status", out.stages[i].status, "ms",
                                           (json_int_t)out.stages[i].duration_ms, "rows",
                                           out.stages[i].details != NULL
                                               ? json_loads(out.stages[i].details, 0, NULL)
                                               : NULL)),
             0);
    json_t *all = json_pack("{s:s, s:s?, s:s?, s:o, s:o?, s:o?}", "status", out.status, "stage",
                            out.stage, "event_id", out.event_id, "stages", stages, "result",
                            out.result != NULL ? json_loads(out.result, 0, NULL) : NULL, "error",
                            out.error != NULL ? json_loads(out.error, 0, NULL) : NULL);
    T_TRUE(all != NULL);
    il__arena_free(&mem);
    return all;
}

json_t *
t_await_run(struct t_engine_of_runs *e, const char *id)
{
    return t_await_run_of(e, NULL, id);
}

json_t *
t_await_run_of(struct t_engine_of_runs *e, const char *tenant, const char *id)
{
    il_op   op    = { .type = IL_OP_RUN_GET, .tenant = tenant, .in.run = { .id = id } };
    int64_t until = il__clock_boot_ns() + (int64_t)T_LIMIT_MS * IL__NS_PER_MS;

    for (;;) {
        il_op_release(&op);
        T_EQ(il_apply(e->h, &op, 1, NULL), IL_OK);
        T_EQ(op.status, IL_OK);
        if (op.out.runs[0].state > IL_RUN_RUNNING)
            break;
        if (il__clock_boot_ns() > until)
            T_FAIL("run %s has not ended: %s", id, op.out.runs[0].stage);
        IGNORE(il_wait(e->h, &op, 1000)); /* or nothing has changed */
    }
    json_t *all = view(e, &op.out.runs[0]);
    il_op_release(&op);
    return all;
}

json_t *
t_run_to(struct t_engine_of_runs *e, struct ingest_start s, const char *status)
{
    char id[IL_ID_BYTES_MAX + 1];

    T_EQ(t_trigger(e, s, id), IL_OK);
    json_t *run = t_await_run_of(e, s.tenant, id);
    if (strcmp(t_text(run, "status", NULL), status) != 0)
        T_FAIL("expected %s: %s", status, json_dumps(run, 0));
    return run;
}

const char *
t_text(const json_t *o, const char *a, const char *b)
{
    const json_t *at = json_object_get(o, a);

    if (b != NULL)
        at = json_object_get(at, b);
    return json_is_string(at) ? json_string_value(at) : "";
}

/* ---- leases ---------------------------------------------------------------------------------- */

static const char *const tenants[] = { T_DEFAULT, T_TENANT, FETCH_TENANT };

size_t
t_leases(struct t_engine_of_runs *e)
{
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(tenants); i++) {
        il_op op = { .type = IL_OP_LIST, .tenant = tenants[i] };
        T_EQ(il_apply(e->h, &op, 1, NULL), IL_OK);
        for (size_t k = 0; k < op.out.n_items; k++)
            n += strncmp(op.out.items[k].key, INGEST_PREFIX, strlen(INGEST_PREFIX)) != 0;
        il_op_release(&op);
    }
    return n;
}

void
t_break_all(struct t_engine_of_runs *e)
{
    for (size_t i = 0; i < ARRAY_LEN(tenants); i++) {
        il_op op = { .type = IL_OP_LIST, .tenant = tenants[i] };
        T_EQ(il_apply(e->h, &op, 1, NULL), IL_OK);
        for (size_t k = 0; k < op.out.n_items; k++) {
            il_op b          = { .type   = IL_OP_BREAK,
                                 .flags  = IL_BREAK_NOW,
                                 .tenant = tenants[i],
                                 .key    = op.out.items[k].key,
                                 .fence  = op.out.items[k].fence };
            b.in.lock.reason = "its process is dead";
            T_EQ(il_apply(e->h, &b, 1, NULL), IL_OK);
            il_op_release(&b);
        }
        il_op_release(&op);
    }
}

/* ---- processes ------------------------------------------------------------------------------- */

struct stopping {
    const char *where;
    unsigned    n;
};

static void
at_point(void *cookie, const char *where)
{
    struct stopping *s = cookie;
    char             line[16];

    if ((s->where != NULL && strcmp(s->where, where) != 0) || s->n == 0 || --s->n > 0)
        return;
    (void)printf("at %s\n", where);
    (void)fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        _exit(3);
}

static void
ignore(void *cookie, const struct ingest_note *n)
{
    (void)cookie;
    (void)n;
}

static int
ingest_main(void *arg)
{
    const struct t_ingester *p = arg;
    struct stopping          s = { p->where, p->n };
    struct t_engine_of_runs  e;
    char                     id[IL_ID_BYTES_MAX + 1];

    t_engine_open(&e, p->g,
                  (struct ingest_options){ .point = at_point, .note = ignore, .cookie = &s });
    T_EQ(t_trigger(&e, (struct ingest_start){ .kind = INGEST_RUN_EVENT, .tenant = p->tenant }, id),
         IL_OK);
    json_t *run = t_await_run_of(&e, p->tenant, id);
    (void)printf("ended %s %s\n", t_text(run, "status", NULL), t_text(run, "error", "code"));
    json_decref(run);
    t_engine_close(&e);
    return 0;
}

void
t_ingester_start(struct t_ingester *p)
{
    t_proc_fork(&p->proc, ingest_main, p);
}
