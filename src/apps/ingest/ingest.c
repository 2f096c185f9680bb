/*
 * ingest.c: opens and closes ingestions, builds the ops of triggers and judges their answers; see
 * ingest.h.
 */
#include <stdio.h>

#include "apps/ingest/ingest_internal.h"
#include "apps/ingest/persist_internal.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"

#define TENANTS_MAX 100000
#define LEASE_MS 30000
#define GRACE_MS 5000
#define QUEUE_MAX 100
/* A run that waits for longer without a holder may have lost its executor. */
#define ABANDONED_MS 10000

const char *const il__ingest_stages[INGEST_STAGE_COUNT] = {
#define X(id, label, from, to) #id,
#include "apps/ingest/stages.def"
#undef X
};
const char *const il__ingest_stage_labels[INGEST_STAGE_COUNT] = {
#define X(id, label, from, to) label,
#include "apps/ingest/stages.def"
#undef X
};
const char *const il__ingest_statuses[INGEST_STATUS_COUNT] = {
    [INGEST_COMPLETED] = "completed",     [INGEST_FAILED] = "failed",
    [INGEST_TIMEOUT] = "timeout",         [INGEST_CANCELLED] = "cancelled",
    [INGEST_INTERRUPTED] = "interrupted", [INGEST_LOST] = "lost",
};

void
il__ingest_note(struct ingest *in, const struct ingest_note *note)
{
    if (in->o.note != NULL)
        in->o.note(in->o.cookie, note);
}

/* ---- tenants --------------------------------------------------------------------------------- */

void
il__ingest_tenants_read(struct ingest *in)
{
    void        *mem = NULL;
    const char **ids = NULL;
    size_t       n = 0, at = 0;
    il_error     err = { .message = "" };
    il_status    st  = il__data_tenant_ids(in->o.data, TENANTS_MAX, &mem, &ids, &n, &err);

    while (at < n && strcmp(ids[at], INGEST_TENANT) < 0)
        at++;
    if (st == IL_OK && (at == n || strcmp(ids[at], INGEST_TENANT) != 0)) {
        /* runs of a command need no row for it */
        if (il__arena_append(&mem, &ids, &n, sizeof *ids) != NULL) {
            memmove(ids + at + 1, ids + at, (n - 1 - at) * sizeof *ids);
            ids[at] = INGEST_TENANT;
        } else {
            st = il__error_nomem(&err);
        }
    }
    if (st == IL_OK) {
        il__mutex_lock(&in->mutex);
        void *before    = in->tenants_mem;
        in->tenants_mem = mem;
        in->tenants     = ids;
        in->n_tenants   = n;
        il__mutex_unlock(&in->mutex);
        mem = before;
    } else if (in->work != NULL) { /* the old ones stay */
        work_trouble(in->work, "cannot list the tenants", &err);
    }
    il__arena_free(&mem);
}

/* ---- open and close -------------------------------------------------------------------------- */

static il_status
read_schedule(struct ingest *in, il_error *reterr)
{
    const char *text = in->o.schedule;
    il_error    why  = { .message = "" };

    if (text == NULL || text[0] == '\0')
        return IL_OK;
    in->scheduled = true;
    il_status st  = il__cron_parse(text, &in->schedule, &why);
    if (st == IL_OK)
        st = il__zone_get("UTC", &in->utc, &why);
    return st == IL_OK ? IL_OK : il__error_set(reterr, st, "ingest.schedule: %s", why.message);
}

static il_status
start_work(struct ingest *in, il_error *reterr)
{
    struct work_options o  = { .kind           = &il__ingest_kind,
                               .cookie         = in,
                               .h              = in->o.h,
                               .data           = in->o.data,
                               .mode           = in->o.mode,
                               .lease_ms       = LEASE_MS,
                               .grace_ms       = GRACE_MS,
                               .shutdown_ms    = in->o.shutdown_ms,
                               .keep_ms        = INGEST_KEEP_MS,
                               .runs_max       = in->o.runs_max,
                               .alert_permille = 1000 };
    il_status           st = work_open(&o, &in->work, reterr);

    return st == IL_OK ? work_start(in->work, reterr) : st;
}

il_status
il__ingest_open(const struct ingest_options *o, struct ingest **ret, il_error *reterr)
{
    struct ingest *in = il__calloc(1, sizeof *in);

    if (in == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for ingestions");
    in->o = *o;
    il__mutex_init(&in->mutex, IL__MUTEX_ingest);
    if (in->o.slow_ms == 0)
        in->o.slow_ms = INGEST_SLOW_MS;
    bool chosen  = o->tracks != NULL && o->tracks[0] != '\0';
    in->tracks   = chosen ? il__strdup(o->tracks) : NULL;
    il_status st = chosen && in->tracks == NULL
                       ? il__error_set(reterr, IL_NOMEM, "out of memory for ingestions")
                       : read_schedule(in, reterr);
    if (st == IL_OK)
        st = il__liverc_load(reterr);
    if (st == IL_OK)
        st = il__fetcher_open(o->h, &o->fetch, &in->fetcher, reterr);
    if (st == IL_OK)
        il__ingest_tenants_read(in);
    if (st == IL_OK)
        st = start_work(in, reterr);
    if (st != IL_OK) {
        il__ingest_close(in);
        return st;
    }
    *ret = in;
    return IL_OK;
}

void
il__ingest_stop(struct ingest *in)
{
    work_stop(in->work);
}

void
il__ingest_close(struct ingest *in)
{
    if (in == NULL)
        return;
    work_close(in->work);
    for (size_t i = 0; i < in->n_spare; i++)
        il_guard_close(in->spare[i]);
    il__fetcher_close(in->fetcher);
    il__arena_free(&in->tenants_mem);
    il__mutex_destroy(&in->mutex);
    il__free(in->tracks);
    il__free(in);
}

struct work *
il__ingest_work(struct ingest *in)
{
    return in->work;
}

/* ---- triggers -------------------------------------------------------------------------------- */

il_status
il__ingest_depth_check(const char *depth, il_error *reterr)
{
    if (depth == NULL || strcmp(depth, il__ingest_depths[INGEST_LAPS_FULL]) == 0)
        return IL_OK;
    if (strcmp(depth, il__ingest_depths[INGEST_NONE]) == 0)
        return il__error_set(reterr, IL_STATE, "invalid depth 'none'; use laps_full");
    return il__error_set(reterr, IL_INVAL, "unknown depth '%.40s'; the only one is '%s'", depth,
                         il__ingest_depths[INGEST_LAPS_FULL]);
}

bool
il__ingest_are_slugs(const char *tracks)
{
    char slug[ADDRESS_SLUG_BYTES_MAX + 1];

    for (const char *at = tracks; *at != '\0';) {
        size_t n = strcspn(at, ",");
        if (n >= sizeof slug)
            return false;
        (void)snprintf(slug, sizeof slug, "%.*s", (int)n, at);
        if (!il__address_is_slug(slug))
            return false;
        at += n + (at[n] == ',');
    }
    return strlen(tracks) <= INGEST_TRACKS_TEXT_BYTES_MAX;
}

static il_status
check_start(const struct ingest_start *s, il_error *reterr)
{
    bool needs_id   = s->kind == INGEST_RUN_EVENT;
    bool needs_slug = s->kind == INGEST_RUN_EVENT || s->kind == INGEST_RUN_EVENTS;

    if (needs_id && (s->source_event_id == NULL || !il__address_is_id(s->source_event_id)))
        return il__error_set(reterr, IL_INVAL, "source_event_id '%.80s' is not a number",
                             s->source_event_id != NULL ? s->source_event_id : "");
    if (needs_slug && (s->track_slug == NULL || !il__address_is_slug(s->track_slug)))
        return il__error_set(reterr, IL_INVAL, "'%.80s' is not a track slug",
                             s->track_slug != NULL ? s->track_slug : "");
    if (s->tracks != NULL && !il__ingest_are_slugs(s->tracks))
        return il__error_set(reterr, IL_INVAL,
                             "tracks '%.80s': expected track slugs, separated by commas",
                             s->tracks);
    if (s->event_id != NULL && !il__ingest_is_id(s->event_id, INGEST_EVENT_ID_BYTES_MAX))
        return il__error_set(reterr, IL_INVAL,
                             "event_id '%.80s': expected 1 to %d of A-Z a-z 0-9 . _ -", s->event_id,
                             INGEST_EVENT_ID_BYTES_MAX);
    return IL_OK;
}

static void
name_of(const struct ingest_start *s, char name[INGEST_RUN_NAME_BYTES_MAX + 1])
{
    const char *id     = s->kind == INGEST_RUN_EVENT    ? s->source_event_id
                         : s->kind == INGEST_RUN_EVENTS ? s->track_slug
                                                        : "";
    const char *before = s->kind == INGEST_RUN_EVENT    ? INGEST_SOURCE ":"
                         : s->kind == INGEST_RUN_EVENTS ? "events:"
                         : s->kind == INGEST_RUN_TRACKS ? "tracks"
                                                        : "recent";

    (void)snprintf(name, INGEST_RUN_NAME_BYTES_MAX + 1, "%s%s", before, id);
}

il_status
il__ingest_start_op(const struct ingest_start *s, void **mem, il_op *op, il_error *reterr)
{
    char      name[INGEST_RUN_NAME_BYTES_MAX + 1];
    il_status st = check_start(s, reterr);

    if (st != IL_OK)
        return st;
    json_t *parameters =
        json_pack("{s:s*, s:s*, s:s*, s:s*, s:i, s:b, s:b}", "source_event_id", s->source_event_id,
                  "track_slug", s->track_slug, "event_id", s->event_id, "tracks", s->tracks, "days",
                  (int)s->days, "force", s->force ? 1 : 0, "wait", s->wait ? 1 : 0);
    if (parameters == NULL)
        return il__error_set(reterr, IL_INVAL, "event_id is not UTF-8"); /* or out of memory */
    name_of(s, name);
    st = work_start_op(
        &(struct work_start){ .tenant     = s->tenant,
                              .class      = INGEST_CLASS,
                              .name       = name,
                              .id         = s->id,
                              .by         = s->by,
                              .type       = s->type,
                              .parameters = parameters,
                              .policy     = s->policy,
                              .queue_max  = QUEUE_MAX,
                              .minute_max = s->minute_max,
                              .hour_max   = s->hour_max,
                              .keep_ms    = s->keep_ms != 0 ? s->keep_ms : INGEST_KEEP_MS },
        mem, op, reterr);
    json_decref(parameters);
    return st;
}

/* ---- their answers --------------------------------------------------------------------------- */

static enum ingest_answer
answer_of(const il_op *op, const il_run_info *run)
{
    /* The run was created by this very trigger, repeated because its answer was lost. */
    bool own = run != NULL && strcmp(run->id, op->in.run.id) == 0;

    switch (op->status) {
    case IL_OK:
        return run != NULL ? INGEST_TRIGGER_STARTED : INGEST_TRIGGER_FAILED;
    case IL_DUPLICATE:
        return own           ? INGEST_TRIGGER_STARTED
               : run != NULL ? INGEST_TRIGGER_JOINED
                             : INGEST_TRIGGER_FAILED;
    case IL_STATE:
        return own ? INGEST_TRIGGER_STARTED : INGEST_TRIGGER_FAILED;
    case IL_HELD:
        return INGEST_TRIGGER_HELD;
    case IL_LIMIT:
        return (op->out.flags & (IL_OUT_MINUTE_LIMIT | IL_OUT_HOUR_LIMIT)) != 0
                   ? INGEST_TRIGGER_LIMITED
                   : INGEST_TRIGGER_FAILED;
    default:
        return INGEST_TRIGGER_FAILED;
    }
}

static bool
is_abandoned(const il_run_info *run)
{
    return run->state == IL_RUN_PENDING && run->holder[0] == '\0' &&
           il__clock_wall_ms() - run->created_at_ms > ABANDONED_MS;
}

enum ingest_answer
il__ingest_answer(struct work *w, const il_op *op, const il_run_info **ret_run)
{
    const il_run_info *run    = op->out.n_runs > 0 ? &op->out.runs[0] : NULL;
    enum ingest_answer answer = answer_of(op, run);

    if (answer == INGEST_TRIGGER_STARTED && run->state <= IL_RUN_RUNNING)
        work_slot_created(w, op->tenant, run->id, op->key + strlen(INGEST_PREFIX));
    *ret_run = run;
    return answer;
}

bool
il__ingest_adopt(struct ingest *in, const il_run_info *run)
{
    if (!is_abandoned(run))
        return false;
#ifndef IL_MUTANT_ingest_queued_adopted
    if (work_is_served(in->o.h, &il__ingest_kind))
        return false;
#endif
    work_slot_created(in->work, run->tenant, run->id, run->key + strlen(INGEST_PREFIX));
    return true;
}
