/*
 * ingestions.c: runs of ingestions in one process: what is written and shown, what is fetched
 * again, conflicts, timeouts, failures, and programs that know only advisory locks.
 */
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "harness/postgres.h"
#include "ingest/runs.h"

/* The advisory lock of event:00000000-0000-0000-0000-000000000000 in other programs. */
#define NIL_EVENT "00000000-0000-0000-0000-000000000000"
#define NIL_LOCK "339352178"

#define EVENT(...) ((struct ingest_start){ .kind = INGEST_RUN_EVENT, __VA_ARGS__ })

/* A test `static void name(g, e)` on a small site. */
#define I_TEST(name)                                                                       \
    static void name(struct t_ground_of_runs *g, struct t_engine_of_runs *e);              \
    static void name##_run(void **state UNUSED)                                            \
    {                                                                                      \
        struct t_ground_of_runs g;                                                         \
        struct t_engine_of_runs e;                                                         \
        struct site_serve       how = t_site_small();                                      \
        t_runs_make(&g, &how);                                                             \
        t_engine_open(&e, &g, (struct ingest_options){ .point = at_point, .slow_ms = 1 }); \
        name(&g, &e);                                                                      \
        t_engine_close(&e);                                                                \
        t_runs_release(&g);                                                                \
    }                                                                                      \
    static void name(struct t_ground_of_runs *g UNUSED, struct t_engine_of_runs *e)
#define I_ROW(name) cmocka_unit_test(name##_run)

/* A run stops at the points of this name, until it is told to go on. */
static struct {
    const char    *where;
    struct t_event there, go_on;
} gate;

static void
at_point(void *cookie UNUSED, const char *where)
{
    if (gate.where == NULL || strcmp(where, gate.where) != 0)
        return;
    gate.where = NULL;
    t_event_add(&gate.there);
    T_WAIT(&gate.go_on, 1, T_LIMIT_MS);
}

static void
gate_close(const char *where)
{
    t_event_init(&gate.there);
    t_event_init(&gate.go_on);
    gate.where = where;
}

static void
gate_open(void)
{
    t_event_add(&gate.go_on);
}

static json_int_t
number(const json_t *o, const char *a, const char *b)
{
    const json_t *at = json_object_get(json_object_get(o, a), b);

    return json_is_integer(at) ? json_integer_value(at) : -1;
}

static bool
has_stage(const json_t *run, const char *stage)
{
    return json_object_get(json_object_get(run, "stages"), stage) != NULL;
}

/* ---- what is done ---------------------------------------------------------------------------- */

I_TEST(an_event_is_ingested_once)
{
    json_t *run = t_run_to(e, EVENT(0), "COMPLETED");
    char    out[4096];

    T_STREQ(t_text(run, "result", "status"), "updated");
    T_STREQ(t_text(run, "result", "ingest_depth"), "laps_full");
    T_EQ(number(run, "result", "races_ingested"), 3);
    T_TRUE(number(run, "result", "laps_ingested") > 0);
    for (size_t i = 0; i <= INGEST_STAGE_finalize; i++) {
        if (!has_stage(run, il__ingest_stages[i]))
            T_FAIL("no stage %s", il__ingest_stages[i]);
    }
    const json_t *laps = json_object_get(
        json_object_get(json_object_get(json_object_get(run, "stages"), "ingest_laps"), "rows"),
        "laps");
    T_EQ(json_integer_value(json_object_get(laps, "inserted")),
         number(run, "result", "laps_ingested"));
    T_EQ(t_leases(e), 0);
    T_EQ(e->n[INGEST_NOTE_LOCKED], 2); /* source_event, then event */
    T_EQ(e->n[INGEST_NOTE_RELEASED], 2);
    T_EQ(e->n[INGEST_NOTE_UNRELEASED], 0);
    T_TRUE(e->n[INGEST_NOTE_SLOW] > 0); /* longer than slow_ms */
    json_decref(run);
    char *before = t_dump(e->tables), *ids = t_dump_ids(e->tables);
    /* nothing new: no race page is fetched */
    run = t_run_to(e, EVENT(0), "COMPLETED");
    T_STREQ(t_text(run, "result", "status"), "already_complete");
    T_TRUE(!has_stage(run, "fetch_race_pages"));
    T_EQ(number(run, "result", "races_ingested"), 3);
    json_decref(run);
    /* force fetches everything, and finds the same */
    run = t_run_to(e, EVENT(.force = true), "COMPLETED");
    T_STREQ(t_text(run, "result", "status"), "updated");
    T_TRUE(has_stage(run, "fetch_race_pages"));
    json_decref(run);
    char *after = t_dump(e->tables), *ids_after = t_dump_ids(e->tables);
    t_same_lines("again", after, before);
    t_same_lines("ids again", ids_after, ids);
    T_STREQ(t_sql(e->tables, "SELECT count(*) FROM events WHERE ingest_depth = 'laps_full'", out),
            "1");
    free(before);
    free(after);
    free(ids);
    free(ids_after);
}

I_TEST(two_events_in_parallel)
{
    char    id[2][IL_ID_BYTES_MAX + 1];
    json_t *run;

    gate_close("race"); /* the first is at work */
    T_EQ(t_trigger(e, EVENT(0), id[0]), IL_OK);
    T_WAIT(&gate.there, 1, T_LIMIT_MS);
    run = t_run_to(e, EVENT(.source_event_id = "100001"), "COMPLETED");
    T_STREQ(t_text(run, "result", "source_event_id"), "100001");
    json_decref(run);
    gate_open();
    run = t_await_run(e, id[0]);
    T_STREQ(t_text(run, "status", NULL), "COMPLETED");
    json_decref(run);
}

/* The five events of a track. */
static void
await_items(struct t_engine_of_runs *e, const json_t *items)
{
    T_EQ(json_array_size(items), 5);
    for (size_t i = 0; i < 5; i++) {
        const char *id  = json_string_value(json_object_get(json_array_get(items, i), "job_id"));
        json_t     *one = t_await_run(e, id);
        T_STREQ(t_text(one, "status", NULL), "COMPLETED");
        json_decref(one);
    }
}

I_TEST(lists_and_recent_events)
{
    char    out[4096];
    json_t *run = t_run_to(e, (struct ingest_start){ .kind = INGEST_RUN_TRACKS }, "COMPLETED");

    T_STREQ(t_sql(e->tables, "SELECT count(*) FROM tracks", out), "4");
    json_decref(run);
    run = t_run_to(e, (struct ingest_start){ .kind = INGEST_RUN_EVENTS, .track_slug = T_SLUG },
                   "COMPLETED");
    T_STREQ(t_sql(e->tables, "SELECT count(*) FROM events", out), "5");
    json_decref(run);
    run = t_run_to(e,
                   (struct ingest_start){
                       .kind = INGEST_RUN_RECENT, .tracks = T_SLUG, .days = INGEST_DAYS_MAX },
                   "COMPLETED");
    await_items(e, json_object_get(json_object_get(run, "result"), "items"));
    json_decref(run);
    T_STREQ(t_sql(e->tables, "SELECT count(*) FROM events WHERE ingest_depth = 'laps_full'", out),
            "5");
}

/* A track that cannot be read does not keep the others from being refreshed. */
I_TEST(one_bad_track)
{
    json_t       *run     = t_run_to(e,
                                     (struct ingest_start){ .kind   = INGEST_RUN_RECENT,
                                                            .tracks = "nowhere," T_SLUG,
                                                            .days   = INGEST_DAYS_MAX },
                                     "FAILED");
    const json_t *details = json_object_get(json_object_get(run, "error"), "details");
    const json_t *failed  = json_object_get(details, "failed");

    T_STREQ(t_text(run, "error", "code"), "CONNECTOR_HTTP_ERROR");
    T_TRUE(strstr(t_text(run, "error", "message"), "1 of 2 tracks failed; first: nowhere: GET ") !=
           NULL);
    T_EQ(json_integer_value(json_object_get(details, "failed_tracks")), 1);
    T_EQ(json_array_size(failed), 1);
    T_STREQ(t_text(json_array_get(failed, 0), "track_slug", NULL), "nowhere");
    await_items(e, json_object_get(details, "items"));
    json_decref(run);
}

/* ---- answers to triggers --------------------------------------------------------------------- */

static enum ingest_answer
answer(struct t_engine_of_runs *e, il_status status, unsigned flags, const il_run_info *run)
{
    const il_run_info *shown;
    il_run_info        runs[1];
    il_op              op = { .type = IL_OP_RUN_START, .tenant = T_DEFAULT, .status = status };

    op.key        = INGEST_PREFIX INGEST_SOURCE ":" T_EVENT;
    op.in.run.id  = "own";
    op.out.flags  = flags;
    op.out.n_runs = run != NULL;
    op.out.runs   = runs;
    if (run != NULL)
        runs[0] = *run;
    enum ingest_answer a = il__ingest_answer(il__ingest_work(e->in), &op, &shown);
    T_EQ(shown == (run != NULL ? runs : NULL), true);
    return a;
}

I_TEST(every_answer_to_a_trigger)
{
    static const struct {
        il_status          status;
        unsigned           flags;
        const char        *run; /* NULL: none */
        enum ingest_answer answer;
    } rows[] = {
        { IL_OK, 0, "own", INGEST_TRIGGER_STARTED },
        { IL_OK, 0, NULL, INGEST_TRIGGER_FAILED },
        { IL_DUPLICATE, 0, "other", INGEST_TRIGGER_JOINED },
        { IL_DUPLICATE, 0, "own", INGEST_TRIGGER_STARTED }, /* sent twice */
        { IL_STATE, 0, "own", INGEST_TRIGGER_STARTED },
        { IL_STATE, 0, "other", INGEST_TRIGGER_FAILED },
        { IL_HELD, 0, "other", INGEST_TRIGGER_HELD },
        { IL_HELD, 0, NULL, INGEST_TRIGGER_HELD }, /* by something that is no run */
        { IL_LIMIT, IL_OUT_MINUTE_LIMIT, NULL, INGEST_TRIGGER_LIMITED },
        { IL_LIMIT, IL_OUT_HOUR_LIMIT, NULL, INGEST_TRIGGER_LIMITED },
        { IL_LIMIT, 0, NULL, INGEST_TRIGGER_FAILED }, /* the line is full */
        { IL_STORE, 0, NULL, INGEST_TRIGGER_FAILED },
    };
    int64_t now_ms = il__clock_wall_ms();

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        il_run_info run = { .id = rows[i].run, .holder = "", .created_at_ms = now_ms };
        run.state       = rows[i].status == IL_STATE ? IL_RUN_COMPLETED : IL_RUN_PENDING;
        T_EQ(answer(e, rows[i].status, rows[i].flags, rows[i].run != NULL ? &run : NULL),
             rows[i].answer);
    }
}

/* A server that executes ingestions holds this; see apps/work/presence.c. */
static il_lease *
serve_ingestions(struct t_engine_of_runs *e)
{
    il_acquire_opts o     = IL_ACQUIRE_OPTS_INIT;
    il_lease       *lease = NULL;

    o.tenant = il__ingest_kind.presence;
    o.mode   = IL_MODE_SHARED;
    T_EQ(il_acquire(e->h, "serving", &o, &lease, NULL), IL_OK);
    return lease;
}

/* The process that has triggered it dies before it executes it: whoever joins it does, unless it
 * only waits for room on a server. */
I_TEST(an_abandoned_run_is_executed)
{
    struct ingest_start s   = { .kind            = INGEST_RUN_EVENT,
                                .tenant          = T_DEFAULT,
                                .id              = "abandoned",
                                .type            = "cli",
                                .source_event_id = T_EVENT,
                                .track_slug      = T_SLUG };
    il_op               op  = { .type = IL_OP_NONE };
    void               *mem = NULL;

    T_EQ(il__ingest_start_op(&s, &mem, &op, NULL), IL_OK);
    T_EQ(il_apply(e->h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    il_run_info run = op.out.runs[0];
    T_EQ(il__ingest_adopt(e->in, &run), false); /* somebody may be about to */
    run.created_at_ms -= 11000;
    il_lease *server = serve_ingestions(e);
    T_EQ(il__ingest_adopt(e->in, &run), false);
    T_EQ(il_lease_release(server, NULL), IL_OK);
    il_lease_free(server);
    T_EQ(il__ingest_adopt(e->in, &run), true);
    json_t *shown = t_await_run(e, s.id);
    T_STREQ(t_text(shown, "status", NULL), "COMPLETED");
    json_decref(shown);
    T_EQ(il__ingest_adopt(e->in, &run), true); /* the store refuses to execute it again */
    il_op_release(&op);
    il__arena_free(&mem);
}

/* ---- conflicts ------------------------------------------------------------------------------- */

I_TEST(a_second_trigger_is_told)
{
    char id[IL_ID_BYTES_MAX + 1], other[IL_ID_BYTES_MAX + 1];

    gate_close("race");
    T_EQ(t_trigger(e, EVENT(0), id), IL_OK);
    T_WAIT(&gate.there, 1, T_LIMIT_MS);
    T_EQ(t_trigger(e, EVENT(.force = true), other), IL_HELD);
    T_STREQ(other, id); /* whose run it is */
    T_EQ(t_trigger(e, EVENT(.policy = IL_POLICY_SKIP), other), IL_DUPLICATE);
    T_STREQ(other, id);
    T_EQ(t_trigger(e, EVENT(.policy = IL_POLICY_QUEUE), other), IL_OK); /* a place in line */
    T_TRUE(strcmp(other, id) != 0);
    gate_open();
    json_t *run = t_await_run(e, id);
    T_STREQ(t_text(run, "result", "status"), "updated");
    json_decref(run);
    run = t_await_run(e, other);
    T_STREQ(t_text(run, "result", "status"), "already_complete");
    json_decref(run);
}

static il_lease *
hold_event(struct t_engine_of_runs *e, const char *event_id)
{
    il_lease *lease = NULL;
    char      key[200];
    il_error  err;

    (void)snprintf(key, sizeof key, "event:%s", event_id);
    T_EQ(il_acquire(e->h, key, NULL, &lease, &err), IL_OK);
    return lease;
}

I_TEST(a_held_event_is_refused_or_waited_for)
{
    char    id[IL_ID_BYTES_MAX + 1];
    json_t *run = t_run_to(e, EVENT(.event_id = NIL_EVENT), "COMPLETED");

    json_decref(run);
    il_lease *lease = hold_event(e, NIL_EVENT);
    run             = t_run_to(e, EVENT(.force = true), "FAILED");
    T_STREQ(t_text(run, "error", "code"), "INGESTION_IN_PROGRESS");
    const json_t *details = json_object_get(json_object_get(run, "error"), "details");
    T_STREQ(t_text(details, "hint", NULL), "ingestion_running");
    T_STREQ(t_text(details, "holder", NULL), il_lease_holder(lease));
    T_TRUE(json_is_integer(json_object_get(details, "age_ms")));
    T_STREQ(t_text(run, "stage", NULL), "await_event_lock");
    json_decref(run);
    T_EQ(t_trigger(e, EVENT(.force = true, .wait = true), id), IL_OK);
    T_TRUE(work_is_stopping(il__ingest_work(e->in)) == false);
    T_EQ(il_lease_release(lease, NULL), IL_OK);
    il_lease_free(lease);
    run = t_await_run(e, id);
    T_STREQ(t_text(run, "status", NULL), "COMPLETED");
    json_decref(run);
    T_EQ(t_leases(e), 0);
}

I_TEST(hints_of_conflicts)
{
    il_run_info   run = { .id = "r", .stage = "ingest_laps 3/60", .holder = "h", .ttl_ms = 30000 };
    il_lease_info lease = { .holder = "l", .ttl_ms = 30000, .age_ms = 7 };
    void         *mem   = NULL;

    run.state        = IL_RUN_RUNNING;
    run.remaining_ms = 10001; /* renewed less than two thirds of the TTL ago */
    T_TRUE(strstr(il__ingest_conflict(&run, NULL, false, &mem), "\"ingestion_running\"") != NULL);
    run.remaining_ms = 9999;
    T_TRUE(strstr(il__ingest_conflict(&run, NULL, false, &mem), "\"stale_lock_suspected\"") !=
           NULL);
    lease.renewed_ms = 20000;
    T_STREQ(il__ingest_conflict(&run, &lease, false, &mem),
            "{\"run_id\":\"r\",\"stage\":\"ingest_laps\",\"holder\":\"l\",\"age_ms\":7,\"hint\":"
            "\"ingestion_running\"}");
    lease.renewed_ms = 20001;
    T_TRUE(strstr(il__ingest_conflict(NULL, &lease, false, &mem), "\"stale_lock_suspected\"") !=
           NULL);
    T_TRUE(strstr(il__ingest_conflict(NULL, NULL, true, &mem), "\"foreign_lock\"") != NULL);
    AUTO_BUF struct il__buf text = { 0 };
    il__buf_init(&text, 500);
    lease.age_ms = 23916;
    il__ingest_conflict_text("ingest:tracks", &run, &lease, &text);
    T_STREQ(il__buf_str(&text), "ingest:tracks is already running: run r, held by l, for 24 s, at "
                                "ingest_laps 3/60 (stale_lock_suspected)");
    il__arena_free(&mem);
    T_TRUE(e != NULL);
}

/* A run that the store ended has lost its lease; one that was refused a thread has not. */
I_TEST(codes_of_runs_without_one)
{
    static const struct {
        const char  *error, *code;
        il_run_state state;
    } rows[] = {
        { "lease expired - worker may have crashed", "LEASE_LOST", IL_RUN_FAILED },
        { "broken: stuck", "LEASE_LOST", IL_RUN_FAILED },
        { "its lease was released before it was finished", "LEASE_LOST", IL_RUN_FAILED },
        { "cannot start a thread", "PERSISTENCE_ERROR", IL_RUN_FAILED },
        { "no page today", "CANCELLED", IL_RUN_CANCELLED },
        { "no progress", "INGESTION_TIMEOUT", IL_RUN_TIMEOUT },
        { "PAGE_FORMAT: no table", "PAGE_FORMAT", IL_RUN_FAILED },
    };
    void *mem = NULL;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        il_run_info           run = { .id    = "r",
                                      .key   = "ingest:tracks",
                                      .meta  = "{}",
                                      .stage = "",
                                      .state = rows[i].state,
                                      .error = rows[i].error };
        struct ingest_run_out out;
        run.tenant = T_DEFAULT;
        T_TRUE(il__ingest_run_show(&run, &mem, &out));
        json_t *error = json_loads(out.error, 0, NULL);
        T_STREQ(t_text(error, "code", NULL), rows[i].code);
        json_decref(error);
    }
    il__arena_free(&mem);
    T_TRUE(e != NULL);
}

/* ---- stops ----------------------------------------------------------------------------------- */

I_TEST(a_lost_lease_stops_the_work)
{
    char id[IL_ID_BYTES_MAX + 1];

    json_decref(t_run_to(e, EVENT(.event_id = NIL_EVENT), "COMPLETED"));
    char *before = t_dump(e->tables);
    gate_close("race");
    T_EQ(t_trigger(e, EVENT(.force = true), id), IL_OK);
    T_WAIT(&gate.there, 1, T_LIMIT_MS);
    il_op op = { .type = IL_OP_NONE };
    T_EQ(il_get(e->h, "event:" NIL_EVENT, &op, NULL), IL_OK);
    T_EQ(il_break(e->h, "event:" NIL_EVENT, op.out.items[0].fence, "stuck", IL_BREAK_NOW, NULL),
         IL_OK);
    il_op_release(&op);
    gate_open();
    json_t *run = t_await_run(e, id);
    T_STREQ(t_text(run, "status", NULL), "FAILED");
    T_STREQ(t_text(run, "error", "code"), "LEASE_LOST");
    json_decref(run);
    char *after = t_dump(e->tables);
    t_same_lines("after the break", after, before);
    free(before);
    free(after);
}

I_TEST(a_cancelled_run_gives_everything_back)
{
    char id[IL_ID_BYTES_MAX + 1];

    gate_close("race");
    T_EQ(t_trigger(e, EVENT(0), id), IL_OK);
    T_WAIT(&gate.there, 1, T_LIMIT_MS);
    T_EQ(il_run_cancel(e->h, id, "not now", NULL), IL_OK);
    gate_open();
    json_t *run = t_await_run(e, id);
    T_TRUE(strcmp(t_text(run, "status", NULL), "CANCELLED") == 0 ||
           strcmp(t_text(run, "status", NULL), "COMPLETED") == 0); /* it was done before it knew */
    json_decref(run);
    T_EQ(t_leases(e), 0);
    json_decref(t_run_to(e, EVENT(0), "COMPLETED"));
}

/* A site that does not answer: the transfer is interrupted. */
static void
a_stalled_transfer_times_out(void **state UNUSED)
{
    struct t_ground_of_runs g;
    struct t_engine_of_runs e;
    struct site_serve       how = t_site_small();

    how.delay_ms = 600000;
    t_runs_make(&g, &how);
    t_engine_open(&e, &g, (struct ingest_options){ .stall_ms = 300, .runs_max = 1 });
    json_t *run = t_run_to(&e, EVENT(0), "TIMEOUT");
    T_STREQ(t_text(run, "error", "code"), "INGESTION_TIMEOUT");
    const json_t *details = json_object_get(json_object_get(run, "error"), "details");
    T_STREQ(t_text(details, "stage", NULL), "fetch_event_page");
    json_decref(run);
    T_EQ(t_leases(&e), 0);
    t_engine_close(&e);
    T_EQ(e.last.status, INGEST_TIMEOUT);
    T_EQ(e.last.stage, INGEST_STAGE_fetch_event_page);
    t_runs_release(&g);
}

/* Whoever waits for an event that another one ingests has not stalled. */
static void
a_wait_for_an_event_is_no_stall(void **state UNUSED)
{
    struct t_ground_of_runs g;
    struct t_engine_of_runs e;
    struct site_serve       how = t_site_small();
    struct t_event          never;
    char                    id[IL_ID_BYTES_MAX + 1];

    t_runs_make(&g, &how);
    t_engine_open(&e, &g, (struct ingest_options){ .stall_ms = 2000, .runs_max = 1 });
    json_decref(t_run_to(&e, EVENT(.event_id = NIL_EVENT), "COMPLETED"));
    il_lease *lease = hold_event(&e, NIL_EVENT);
    T_EQ(t_trigger(&e, EVENT(.force = true, .wait = true), id), IL_OK);
    t_event_init(&never);
    T_TRUE(!t_event_wait(&never, 1, 2500)); /* longer than it may stall */
    t_event_release(&never);
    T_EQ(il_lease_release(lease, NULL), IL_OK);
    il_lease_free(lease);
    json_t *run = t_await_run(&e, id);
    T_STREQ(t_text(run, "status", NULL), "COMPLETED");
    json_decref(run);
    t_engine_close(&e);
    t_runs_release(&g);
}

/* A row that somebody else has locked: the statement is interrupted, and nothing of it stays. */
static void
a_stalled_statement_times_out(void **state UNUSED)
{
    struct t_ground_of_runs g;
    struct t_engine_of_runs e;
    struct site_serve       how = t_site_small();
    il_guard_tx            *tx  = NULL;
    il_error                err;

    t_runs_make(&g, &how);
    t_engine_open(&e, &g, (struct ingest_options){ .stall_ms = 700, .runs_max = 1 });
    json_decref(t_run_to(&e, EVENT(.event_id = NIL_EVENT), "COMPLETED"));
    char *before = t_dump(e.tables);
    T_EQ(il_guard_begin(e.tables, NULL, &tx, &err), IL_OK);
    il_guard_query q = { .sql = "UPDATE events SET name = name" };
    T_EQ(il_guard_exec(tx, &q, NULL, &err), IL_OK);
    json_t *run = t_run_to(&e, EVENT(.force = true), "TIMEOUT");
    T_STREQ(t_text(run, "error", "code"), "INGESTION_TIMEOUT");
    const json_t *details = json_object_get(json_object_get(run, "error"), "details");
    T_STREQ(t_text(details, "event_id", NULL), NIL_EVENT);
    T_STREQ(t_text(details, "stage", NULL), "persist_event");
    json_decref(run);
    T_EQ(t_leases(&e), 0);
    il_guard_rollback(tx);
    char *after = t_dump(e.tables);
    t_same_lines("after the timeout", after, before);
    free(before);
    free(after);
    t_engine_close(&e);
    t_runs_release(&g);
}

/* ---- failures of the site -------------------------------------------------------------------- */

/* A race that cannot be read is reported; the others are written, and the event keeps its depth. */
static void
a_failed_race_keeps_the_depth(void **state UNUSED)
{
    struct t_ground_of_runs g;
    struct t_engine_of_runs e;
    struct site_serve       how = t_site_small();
    char                    out[4096];

    how.fail_every = 5; /* robots, event, entries, race, race: one in another type */
    how.fail_how   = SITE_FAIL_TYPE;
    t_runs_make(&g, &how);
    t_engine_open(&e, &g, (struct ingest_options){ .fetch.permits = 1 });
    json_t *run = t_run_to(&e, EVENT(0), "FAILED");
    T_STREQ(t_text(run, "error", "code"), "CONNECTOR_HTTP_ERROR");
    const json_t *details = json_object_get(json_object_get(run, "error"), "details");
    T_EQ(json_integer_value(json_object_get(details, "failed_races")), 1);
    json_decref(run);
    T_STREQ(t_sql(e.tables, "SELECT count(*) FROM races", out), "2");
    T_STREQ(t_sql(e.tables, "SELECT ingest_depth FROM events", out), "none");
    T_EQ(t_leases(&e), 0);
    t_engine_close(&e);
    t_runs_release(&g);
}

/* What an ingestion left out because a race failed is fetched by the next one. */
static void
a_failed_race_is_made_up_for(void **state UNUSED)
{
    struct t_ground_of_runs g;
    struct t_engine_of_runs e;
    struct site_serve       how = t_site_small();
    char                    out[4096], before[4096], digest[200];

    /* robots, event, entries and three races; then another revision, whose second race fails */
    how.change_every = 7;
    how.fail_every   = 10;
    how.fail_how     = SITE_FAIL_TYPE;
    t_runs_make(&g, &how);
    t_engine_open(&e, &g, (struct ingest_options){ .fetch.permits = 1 });
    json_decref(t_run_to(&e, EVENT(0), "COMPLETED"));
    json_t *run = t_run_to(&e, EVENT(0), "FAILED");
    T_STREQ(t_text(run, "error", "code"), "CONNECTOR_HTTP_ERROR");
    const json_t *failed =
        json_object_get(json_object_get(json_object_get(run, "error"), "details"), "failed");
    (void)snprintf(digest, sizeof digest, "SELECT digest FROM races WHERE source_race_id = '%.40s'",
                   t_text(json_array_get(failed, 0), "source_race_id", NULL));
    json_decref(run);
    T_TRUE(strlen(t_sql(e.tables, digest, before)) > 1);
    T_STREQ(t_sql(e.tables, "SELECT ingest_depth FROM events", out), "laps_full");
    run = t_run_to(&e, EVENT(0), "COMPLETED");
    T_STREQ(t_text(run, "result", "status"), "updated");
    json_decref(run);
    T_TRUE(strcmp(t_sql(e.tables, digest, out), before) != 0);
    t_engine_close(&e);
    t_runs_release(&g);
}

/* The site changes between two reads: what is new is written, what is gone is removed. */
static void
changed_results_overwrite(void **state UNUSED)
{
    struct t_ground_of_runs g;
    struct t_engine_of_runs e;
    struct site_serve       how = t_site_small();

    how.change_every = 7; /* after robots, event, entries and three races */
    t_runs_make(&g, &how);
    t_engine_open(&e, &g, (struct ingest_options){ .fetch.permits = 1 });
    json_decref(t_run_to(&e, EVENT(0), "COMPLETED"));
    char   *before = t_dump(e.tables);
    json_t *run    = t_run_to(&e, EVENT(0), "COMPLETED");
    T_STREQ(t_text(run, "result", "status"), "updated");
    json_decref(run);
    char *after = t_dump(e.tables);
    T_TRUE(strcmp(before, after) != 0);
    free(before);
    free(after);
    t_engine_close(&e);
    t_runs_release(&g);
}

/* ---- programs that know only advisory locks -------------------------------------------------- */

I_TEST(advisory_locks_exclude_each_other)
{
    char    id[IL_ID_BYTES_MAX + 1], out[T_PG_TEXT_BYTES];
    int64_t lock = 339352178;

    if (!g->rig.is_postgres)
        return;
    /* they hold it: our run fails, or waits */
    il_advisory *theirs = NULL;
    T_EQ(il_guard_advisory_take_id(e->tables, lock, &theirs, NULL), IL_OK);
    json_t *run = t_run_to(e, EVENT(.event_id = NIL_EVENT), "FAILED");
    T_STREQ(t_text(run, "error", "code"), "INGESTION_IN_PROGRESS");
    T_STREQ(t_text(json_object_get(json_object_get(run, "error"), "details"), "hint", NULL),
            "foreign_lock");
    json_decref(run);
    /* another tenant has another event of that name */
    json_decref(t_run_to(e, EVENT(.event_id = NIL_EVENT, .tenant = T_TENANT), "COMPLETED"));
    T_EQ(t_trigger(e, EVENT(.event_id = NIL_EVENT, .wait = true), id), IL_OK);
    il_advisory_release(theirs);
    run = t_await_run(e, id);
    T_STREQ(t_text(run, "status", NULL), "COMPLETED");
    json_decref(run);
    /* we hold it: they are refused, until the run has ended */
    gate_close("race");
    T_EQ(t_trigger(e, EVENT(.force = true), id), IL_OK);
    T_WAIT(&gate.there, 1, T_LIMIT_MS);
    T_EQ(il_guard_advisory_take_id(e->tables, lock, &theirs, NULL), IL_HELD);
    gate_open();
    json_decref(t_await_run(e, id));
    T_EQ(il_guard_advisory_take_id(e->tables, lock, &theirs, NULL), IL_OK);
    il_advisory_release(theirs);
    /* its connection is lost: the run stops */
    gate_close("race");
    T_EQ(t_trigger(e, EVENT(.force = true), id), IL_OK);
    T_WAIT(&gate.there, 1, T_LIMIT_MS);
    T_STREQ(t_postgres_ask(
                g->rig.server,
                "SELECT count(pg_terminate_backend(pid))::text FROM pg_locks WHERE locktype = "
                "'advisory' AND objid = " NIL_LOCK,
                out),
            "1");
    T_TRUE(!t_event_wait(&gate.go_on, 1, 1500)); /* the watch looks once a second */
    gate_open();
    run = t_await_run(e, id);
    T_STREQ(t_text(run, "status", NULL), "FAILED");
    T_STREQ(t_text(run, "error", "code"), "LEASE_LOST");
    json_decref(run);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        I_ROW(an_event_is_ingested_once),
        I_ROW(two_events_in_parallel),
        I_ROW(lists_and_recent_events),
        I_ROW(one_bad_track),
        I_ROW(every_answer_to_a_trigger),
        I_ROW(an_abandoned_run_is_executed),
        I_ROW(a_second_trigger_is_told),
        I_ROW(a_held_event_is_refused_or_waited_for),
        I_ROW(hints_of_conflicts),
        I_ROW(codes_of_runs_without_one),
        I_ROW(a_lost_lease_stops_the_work),
        I_ROW(a_cancelled_run_gives_everything_back),
        cmocka_unit_test(a_stalled_transfer_times_out),
        cmocka_unit_test(a_stalled_statement_times_out),
        cmocka_unit_test(a_wait_for_an_event_is_no_stall),
        cmocka_unit_test(a_failed_race_keeps_the_depth),
        cmocka_unit_test(a_failed_race_is_made_up_for),
        cmocka_unit_test(changed_results_overwrite),
        I_ROW(advisory_locks_exclude_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
