/*
 * run_view.c: rebuilds the view of a run from the store and the history, for the routes and for
 * commands. The rules of reading are in timeline.c.
 */
#include <inttypes.h>
#include <stdio.h>

#include <jansson.h>

#include "apps/ingest/ingest.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"

static const char *
keep(void **mem, json_t *value)
{
    char       *text = value != NULL ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    const char *copy = text != NULL ? il__arena_strdup(mem, text) : NULL;

    free(text); /* NOLINT: jansson allocated it */
    json_decref(value);
    return copy;
}

/* ---- conflicts ------------------------------------------------------------------------------- */

/* Two thirds of the TTL without a renewal: a living holder renews after one third. */
static bool
is_stale(const il_run_info *run, const il_lease_info *lease)
{
    if (lease != NULL)
        return 3 * lease->renewed_ms > 2 * lease->ttl_ms;
    return run != NULL && run->state == IL_RUN_RUNNING && 3 * run->remaining_ms < run->ttl_ms;
}

/* The word of a stage: "ingest_laps" of "ingest_laps 12/60". */
static size_t
n_word(const char *stage)
{
    return strcspn(stage, " ");
}

static const char *
hint_of(const il_run_info *run, const il_lease_info *lease, bool foreign)
{
    if (foreign)
        return INGEST_HINT_FOREIGN;
    return is_stale(run, lease) ? INGEST_HINT_STALE : INGEST_HINT_RUNNING;
}

const char *
il__ingest_conflict(const il_run_info *run, const il_lease_info *lease, bool foreign, void **mem)
{
    const char *stage  = run != NULL ? run->stage : "";
    const char *holder = lease != NULL ? lease->holder : run != NULL ? run->holder : NULL;
    int64_t     age_ms = -1;

    if (lease != NULL)
        age_ms = lease->age_ms;
    else if (run != NULL)
        age_ms = il__clock_wall_ms() -
                 (run->started_at_ms != 0 ? run->started_at_ms : run->created_at_ms);
    return keep(mem, json_pack("{s:s?, s:o, s:s?, s:o, s:s}", "run_id",
                               run != NULL ? run->id : NULL, "stage",
                               stage[0] != '\0' ? json_stringn(stage, n_word(stage)) : json_null(),
                               "holder", holder != NULL && holder[0] != '\0' ? holder : NULL,
                               "age_ms", age_ms >= 0 ? json_integer(age_ms) : json_null(), "hint",
                               hint_of(run, lease, foreign)));
}

/* "24 s", "5 min": for people, so without the milliseconds. */
static void
add_age(struct il__buf *out, int64_t ms)
{
    int64_t s = (MAX(ms, 0) + 500) / 1000;

    if (s < 120)
        il__buf_addf(out, "%" PRId64 " s", s);
    else
        il__buf_addf(out, "%" PRId64 " min", s / 60);
}

void
il__ingest_conflict_text(const char *key, const il_run_info *run, const il_lease_info *lease,
                         struct il__buf *out)
{
    const char *holder = lease != NULL ? lease->holder : run != NULL ? run->holder : "";
    int64_t     since  = run == NULL               ? 0
                         : run->started_at_ms != 0 ? run->started_at_ms
                                                   : run->created_at_ms;
    int64_t     age_ms = lease != NULL ? lease->age_ms : il__clock_wall_ms() - since;

    il__buf_addf(out, "%s is already running", key);
    if (run != NULL)
        il__buf_addf(out, ": run %s", run->id);
    if (holder[0] != '\0')
        il__buf_addf(out, ", held by %s", holder);
    if (run != NULL || lease != NULL) {
        il__buf_adds(out, ", for ");
        add_age(out, age_ms);
    }
    if (run != NULL)
        il__buf_addf(out, ", %s%s", run->stage[0] != '\0' ? "at " : "",
                     run->stage[0] != '\0' ? run->stage : "waiting to be executed");
    il__buf_addf(out, " (%s)", hint_of(run, lease, false));
}

/* ---- a run ----------------------------------------------------------------------------------- */

bool
il__ingest_is_run(const il_run_info *run)
{
    return strncmp(run->key, INGEST_PREFIX, strlen(INGEST_PREFIX)) == 0;
}

static enum ingest_stage
stage_named(const char *text, size_t n)
{
    size_t i = 0;

    while (i < INGEST_STAGE_COUNT &&
           (strlen(il__ingest_stages[i]) != n || strncmp(il__ingest_stages[i], text, n) != 0))
        i++;
    return (enum ingest_stage)i;
}

/* "ingest_laps 12/60" */
static void
read_stage(const char *text, struct ingest_run_out *ret)
{
    enum ingest_stage stage = stage_named(text, n_word(text));
    int64_t           done, total;

    if (stage == INGEST_STAGE_COUNT)
        return;
    ret->stage       = il__ingest_stages[stage];
    ret->stage_label = il__ingest_stage_labels[stage];
    if (sscanf(text + n_word(text), "%" SCNd64 "/%" SCNd64, &done, &total) == 2) {
        ret->progress.done  = done;
        ret->progress.total = total;
    }
}

static const char *
text_of(void **mem, const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? il__arena_strdup(mem, text) : NULL;
}

/* The store ended the run: it expired, or was broken or released by others. */
static bool
lost_its_lease(const char *error)
{
    static const char broken[] = "broken: ";

    return strstr(error, WORK_CRASHED) != NULL || strncmp(error, broken, strlen(broken)) == 0 ||
           strstr(error, "lease was released") != NULL;
}

/* The code of a run that has none of its own. */
static const char *
code_of(const il_run_info *run)
{
    if (run->state == IL_RUN_TIMEOUT)
        return "INGESTION_TIMEOUT";
    if (run->state != IL_RUN_FAILED)
        return il_status_name(IL_CANCELLED);
    return lost_its_lease(run->error) ? il_status_name(IL_LOST) : "PERSISTENCE_ERROR";
}

/* The message of a run that failed, and the code in front of it. */
static const char *
error_of(const il_run_info *run, json_t *error, void **mem)
{
    const char *text    = run->error;
    const char *colon   = strstr(text, ": ");
    size_t      n       = colon != NULL ? (size_t)(colon - text) : 0;
    bool        coded   = n > 0 && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == n;
    const char *known   = json_string_value(json_object_get(error, "code"));
    json_t     *details = json_object_get(error, "details");
    json_t     *code    = known != NULL ? json_string(known)
                          : coded       ? json_stringn(text, n)
                                        : json_string(code_of(run));

    return keep(mem, json_pack("{s:o, s:s, s:O?}", "code", code, "message",
                               coded ? text + n + 2 : text, "details", details));
}

static bool
has_failed(const il_run_info *run)
{
    return run->state > IL_RUN_RUNNING && run->state != IL_RUN_COMPLETED;
}

bool
il__ingest_run_show(const il_run_info *run, void **mem, struct ingest_run_out *ret)
{
    const char              *name    = run->key + strlen(INGEST_PREFIX);
    struct ingest_subject   *s       = il__ingest_subject(run->tenant, name);
    static const char *const kinds[] = { [INGEST_RUN_EVENT]  = "event",
                                         [INGEST_RUN_TRACKS] = "tracks",
                                         [INGEST_RUN_EVENTS] = "events",
                                         [INGEST_RUN_RECENT] = "recent" };

    if (s == NULL)
        return false; /* out of memory: no other names are started */
    *ret = (struct ingest_run_out){ .id            = run->id,
                                    .kind          = kinds[s->kind],
                                    .tenant        = run->tenant,
                                    .status        = il_run_state_name(run->state),
                                    .trigger       = run->trigger,
                                    .by            = run->by,
                                    .progress      = { run->progress, -1, -1 },
                                    .position      = run->position,
                                    .cancelling    = run->cancelled,
                                    .created_at_ms = run->created_at_ms,
                                    .started_at_ms = run->started_at_ms,
                                    .ended_at_ms   = run->ended_at_ms,
                                    .duration_ms   = -1 };
    il__ingest_subject_drop(s);
    if (run->started_at_ms != 0)
        ret->duration_ms = MAX((run->ended_at_ms != 0 ? run->ended_at_ms : il__clock_wall_ms()) -
                                   run->started_at_ms,
                               0);
    read_stage(run->stage, ret);
    json_t *meta         = json_loads(run->meta, 0, NULL);
    json_t *p            = json_object_get(meta, "parameters");
    ret->event_id        = text_of(mem, p, "event_id");
    ret->source_event_id = text_of(mem, p, "source_event_id");
    ret->track_slug      = text_of(mem, p, "track_slug");
    json_decref(meta);
    if (has_failed(run) && (ret->error = error_of(run, NULL, mem)) == NULL)
        return false;
    return true;
}

/* ---- the history ----------------------------------------------------------------------------- */

struct stages {
    void                 **mem;
    const il_run_info     *run;
    struct ingest_run_out *ret;
    bool                   failed;
};

static void
take_details(struct stages *s, struct ingest_stage_out *stage, const char *text)
{
    json_t *details = json_loads(text, 0, NULL);
    json_t *result  = json_object_get(details, "result");
    json_t *error   = json_object_get(details, "error");
    json_t *rows    = json_object_get(details, "rows");

    if (rows != NULL)
        stage->details = keep(s->mem, json_incref(rows));
    if (result != NULL) {
        s->ret->result = keep(s->mem, json_incref(result));
        const char *id = text_of(s->mem, result, "event_id");
        if (id != NULL)
            s->ret->event_id = id;
    }
    if (error != NULL && has_failed(s->run)) {
        s->ret->error  = error_of(s->run, error, s->mem);
        const char *id = text_of(s->mem, json_object_get(error, "details"), "event_id");
        if (id != NULL)
            s->ret->event_id = id;
        s->failed |= s->ret->error == NULL;
    }
    json_decref(details);
}

static void
take_stage(void *cookie, const struct il__data_step *step)
{
    struct stages    *s    = cookie;
    enum ingest_stage name = stage_named(step->step, strlen(step->step));

    if (name == INGEST_STAGE_COUNT || s->ret->n_stages == INGEST_STAGE_COUNT)
        return; /* written by a newer version */
    struct ingest_stage_out *to = &s->ret->stages[s->ret->n_stages++];
    *to                         = (struct ingest_stage_out){
                                .stage         = il__ingest_stages[name],
                                .label         = il__ingest_stage_labels[name],
                                .status        = il__arena_strdup(s->mem, step->state),
                                .started_at_ms = step->started_at_ms,
                                .ended_at_ms   = step->ended_at_ms,
                                .duration_ms =
            step->ended_at_ms != 0 ? MAX(step->ended_at_ms - step->started_at_ms, 0) : -1,
    };
    s->failed |= to->status == NULL;
    if (step->details[0] != '\0')
        take_details(s, to, step->details);
    /* The store forgets the stage of a run that has ended; the last one that began tells it. */
    if (s->run->state > IL_RUN_RUNNING) {
        s->ret->stage       = to->stage;
        s->ret->stage_label = to->label;
    }
}

il_status
il__ingest_run_history(struct il__data *data, const il_run_info *run, void **mem,
                       struct ingest_run_out *ret, il_error *reterr)
{
    struct stages s = { .mem = mem, .run = run, .ret = ret };

    ret->stages = il__arena_alloc(mem, INGEST_STAGE_COUNT * sizeof *ret->stages);
    if (ret->stages == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a run");
    il_status st =
        il__data_history_steps(data, run->tenant, run->id, false, take_stage, &s, reterr);
    if (st == IL_OK && s.failed)
        st = il__error_set(reterr, IL_NOMEM, "out of memory for a run");
    return st;
}
