/*
 * timeline.c: records a run's stages, counts, result and error, while it is executed and at its
 * end. Stages are steps of the history (data/history.h). The stage at which a run ended has its
 * result, or its error.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/ingest/ingest_internal.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"

#define FAILED_MAX 20 /* parts that are named in the error; all are counted */

static const struct {
    int32_t from, to;
} percents[INGEST_STAGE_COUNT] = {
#define X(id, label, from, to) { from, to },
#include "apps/ingest/stages.def"
#undef X
};

/* ---- rows ------------------------------------------------------------------------------------ */

json_t *
il__ingestion_rows(const struct ingest_totals *t)
{
    json_t *rows = json_object();

    for (size_t i = 0; i < INGEST_TABLE_COUNT && rows != NULL; i++) {
        const struct ingest_counts *c = &t->of[i];
        if (c->n_inserted + c->n_updated + c->n_unchanged + c->n_removed == 0)
            continue;
        json_t *one = json_pack("{s:I, s:I, s:I, s:I}", "inserted", (json_int_t)c->n_inserted,
                                "updated", (json_int_t)c->n_updated, "unchanged",
                                (json_int_t)c->n_unchanged, "removed", (json_int_t)c->n_removed);
        if (json_object_set_new(rows, il__ingest_table_names[i], one) != 0) {
            json_decref(rows);
            rows = NULL;
        }
    }
    return rows;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* `more` (consumed, may be NULL) is added to the details. */
static void
record(struct ingestion *g, enum ingest_stage stage, const char *state, const char *error,
       json_t *more)
{
    const struct stage_record *s    = &g->stages[stage];
    json_t                    *rows = il__ingestion_rows(&s->rows);
    json_t *details = json_pack("{s:O*}", "rows", json_object_size(rows) > 0 ? rows : NULL);

    if (details != NULL && more != NULL)
        (void)json_object_update(details, more); /* without memory it has less to say */
    char *text = details != NULL ? json_dumps(details, JSON_COMPACT) : NULL;
    work_record_step(work_recorder(g->run->work),
                     &(struct il__data_step){ .tenant        = g->run->tenant,
                                              .run           = g->run->id,
                                              .n             = (uint32_t)stage,
                                              .attempt       = 1,
                                              .step          = il__ingest_stages[stage],
                                              .type          = "stage",
                                              .state         = state,
                                              .started_at_ms = s->started_at_ms,
                                              .ended_at_ms   = s->ended_at_ms,
                                              .exit_code     = -1,
                                              .error         = error,
                                              .out           = "",
                                              .err           = "",
                                              .details       = text != NULL ? text : "" });
    free(text); /* NOLINT: jansson allocated it */
    json_decref(rows);
    json_decref(details);
    json_decref(more);
}

void
il__ingestion_stage(struct ingestion *g, enum ingest_stage stage)
{
    struct stage_record *s = &g->stages[stage];

    if (g->stage != INGEST_STAGE_COUNT && g->stage != stage)
        il__ingestion_stage_end(g, g->stage);
    g->stage = stage;
    if (s->started_at_ms == 0) {
        s->started_at_ms = il__clock_wall_ms();
        s->started_ns    = il__clock_boot_ns();
        record(g, stage, "RUNNING", "", NULL);
    }
    work_run_stage(g->run, il__ingest_stages[stage], percents[stage].from);
}

static void
close_stage(struct stage_record *s)
{
    s->ended_at_ms = il__clock_wall_ms();
    s->ended_ns    = il__clock_boot_ns();
}

void
il__ingestion_stage_end(struct ingestion *g, enum ingest_stage stage)
{
    struct stage_record *s = &g->stages[stage];
    char                 took[IL__DURATION_TEXT_BYTES];

    if (s->started_at_ms == 0 || s->ended_at_ms != 0)
        return;
    close_stage(s);
    record(g, stage, "COMPLETED", "", NULL);
    work_run_say(g->run, "%s: %s", il__ingest_stages[stage],
                 il__duration_text((s->ended_ns - s->started_ns) / IL__NS_PER_MS, took));
}

void
il__ingestion_progress(struct ingestion *g, size_t n_done, size_t n_total)
{
    char    text[100];
    int32_t from = percents[g->stage].from, to = percents[g->stage].to;

    (void)snprintf(text, sizeof text, "%s %zu/%zu", il__ingest_stages[g->stage], n_done, n_total);
    work_run_stage(g->run, text,
                   from + (int32_t)((size_t)(to - from) * n_done / MAX(n_total, (size_t)1)));
}

/* ---- failures -------------------------------------------------------------------------------- */

void
il__ingestion_fail(struct ingestion *g, const char *code, json_t *details, const char *fmt, ...)
{
    char    text[WORK_TEXT_BYTES];
    va_list ap;

    int n = snprintf(text, sizeof text, "%s: ", code);
    va_start(ap, fmt);
    (void)vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    va_end(ap);
    if (g->code == NULL && !work_run_should_stop(g->run)) {
        g->code    = code;
        g->details = details != NULL ? json_dumps(details, JSON_COMPACT) : NULL;
    }
    json_decref(details);
    work_run_fail(g->run, false, text);
}

void
il__ingestion_fail_call(struct ingestion *g, il_status st, const il_error *err)
{
    if (st == IL_CANCELLED)
        return; /* the run knows why */
    if (st == IL_STALE || st == IL_LOST)
        il__ingestion_fail(g, il_status_name(IL_LOST), NULL, "a lease was lost: %s", err->message);
    else
        il__ingestion_fail(g, il__ingest_code(st), NULL, "%s", err->message);
}

bool
il__ingestion_is_partial(il_status st)
{
    return st == IL_INVAL || st == IL_UNIQUE || st == IL_CHECK || st == IL_FOREIGN_KEY ||
           st == IL_NOT_FOUND;
}

void
il__ingestion_part_failed(struct ingestion *g, struct failures *f, const char *name, const char *id,
                          const char *code, const char *text)
{
    if (f->n++ == 0) {
        f->code = code;
        (void)snprintf(f->text, sizeof f->text, "%.80s: %.400s", id, text);
        f->list = json_array();
    }
    work_run_say(g->run, "%s %s failed: %s: %s", name, id, code, text);
    if (f->list != NULL && json_array_size(f->list) < FAILED_MAX) /* without memory, it says less */
        (void)json_array_append_new(
            f->list, json_pack("{s:s, s:s, s:s}", name, id, "code", code, "message", text));
}

/* ---- the end --------------------------------------------------------------------------------- */

static enum ingest_status
status_of(enum work_reason reason, bool done)
{
    static const enum ingest_status statuses[] = {
        [WORK_GO]        = INGEST_FAILED,
        [WORK_FAILED]    = INGEST_FAILED,
        [WORK_CANCELLED] = INGEST_CANCELLED,
        [WORK_TIMEOUT]   = INGEST_TIMEOUT,
        [WORK_SHUTDOWN]  = INGEST_INTERRUPTED,
        [WORK_LOST]      = INGEST_LOST,
    };

    return done ? INGEST_COMPLETED : statuses[reason];
}

/* {"code", "details"}: the message is that of the run, and so is the code if it has none here. */
static json_t *
error_of(struct ingestion *g, enum ingest_status status)
{
    const char *code    = g->code;
    json_t     *details = g->details != NULL ? json_loads(g->details, 0, NULL) : json_object();

    if (status == INGEST_TIMEOUT)
        code = "INGESTION_TIMEOUT";
    else if (status == INGEST_LOST)
        code = il_status_name(IL_LOST);
    else if (status != INGEST_FAILED)
        code = il_status_name(IL_CANCELLED);
    if (details != NULL) {
        if (g->event_id[0] != '\0')
            (void)json_object_set_new(details, "event_id", json_string(g->event_id));
        if (json_object_get(details, "stage") == NULL) /* else that of whoever is in the way */
            (void)json_object_set_new(details, "stage", json_string(il__ingest_stages[g->stage]));
    }
    return json_pack("{s:{s:s*, s:o?}}", "error", "code", code, "details", details);
}

void
il__ingestion_conclude(struct ingestion *g, bool done)
{
    static const char *const states[INGEST_STATUS_COUNT] = { "COMPLETED", "FAILED",      "TIMEOUT",
                                                             "CANCELLED", "INTERRUPTED", "FAILED" };
    char                     text[WORK_TEXT_BYTES];

    if (g->stage == INGEST_STAGE_COUNT)
        il__ingestion_stage(g, INGEST_STAGE_fetch_event_page); /* it never got that far */
    g->status = status_of(work_run_reason(g->run, text), done);
    for (size_t i = 0; i < INGEST_STAGE_COUNT; i++) {
        struct stage_record *s = &g->stages[i];
        if (i == (size_t)g->stage || s->started_at_ms == 0 || s->ended_at_ms != 0)
            continue;
        close_stage(s); /* one of two that overlap */
        record(g, (enum ingest_stage)i, states[g->status], "", NULL);
    }
    close_stage(&g->stages[g->stage]);
    record(g, g->stage, states[g->status], done ? "" : text,
           done ? json_pack("{s:O*}", "result", g->result) : error_of(g, g->status));
}

void
il__ingestion_ended(struct ingestion *g)
{
    int64_t first_ns = INT64_MAX;
    char    text[WORK_TEXT_BYTES];

    for (size_t i = 0; i < INGEST_STAGE_COUNT; i++) {
        if (g->stages[i].started_at_ms != 0)
            first_ns = MIN(first_ns, g->stages[i].started_ns);
    }
    (void)work_run_reason(g->run, text);
    il__ingest_note(g->in,
                    &(struct ingest_note){ .type     = INGEST_NOTE_ENDED,
                                           .tenant   = g->run->tenant,
                                           .run      = g->run->id,
                                           .name     = g->run->plan.name,
                                           .event_id = g->event_id[0] != '\0' ? g->event_id : NULL,
                                           .text     = text[0] != '\0' ? text : NULL,
                                           .stage    = g->stage,
                                           .status   = g->status,
                                           .duration_ns = il__clock_boot_ns() - first_ns });
}
