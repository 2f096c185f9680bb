/*
 * routes_read.c: routes that read events, races, results and laps. Queries run on the pool.
 */
#include "apps/ingest/routes_read.h"

#include "apps/ingest/serve.h"
#include "apps/ingest/verify.h"
#include "base/error.h"
#include "http/admin.h"
#include "http/list_stream.h"
#include "http/server.h"

/* A request on its way through the pool. */
struct reading {
    struct ingest_events_in in;
    struct ingest_event_out event;
    struct ingest_race_out  race;
    il_status               status;
    il_error                error;
};

/* Did the database answer, but could not do it? If it could not be reached, has no room or took too
 * long, the same call may work later: those have codes of their own, as everywhere. */
static bool
is_persistence_error(il_status st)
{
    return il_status_http(st) == 500;
}

void
il__ingest_fail(struct http_request *r, const il_error *err)
{
    const char *code = il__ingest_code(err->status);

    if (err->status == IL_NOT_FOUND)
        http_fail(r, 404, code, ingest_http_app.name, NULL, "%s", err->message);
    else if (err->status == IL_INVAL)
        http_fail(r, 400, code, ingest_http_app.name, NULL, "%s", err->message);
    else if (strcmp(code, il__ingest_code(IL_UNIQUE)) == 0 || err->status == IL_STATE)
        http_fail(r, 409, code, ingest_http_app.name, NULL, "%s", err->message);
    else if (is_persistence_error(err->status))
        http_fail(r, 500, code, ingest_http_app.name, NULL, "cannot read or write the database");
    else
        http_fail_data(r, err);
}

/* NULL: answered. */
static struct reading *
begin(struct http_request *r)
{
    r->state = http_calloc(r, sizeof(struct reading));
    return r->state;
}

static void
failed(struct http_request *r)
{
    const struct reading *w = r->state;

    il__ingest_fail(r, &w->error);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static bool
add_event(void *cookie, const struct ingest_event_out *event)
{
    return http_list_add(cookie, event);
}

static il_status
produce_events(struct http_request *r, struct http_list *list)
{
    struct reading *w    = r->state;
    const char     *next = NULL;

    w->status = il__ingest_events_list(il__ingest_app_of(r)->tables, r->caller->tenant, &w->in,
                                       add_event, list, &r->mem, &next, &w->error);
    if (w->status == IL_OK && next != NULL)
        http_list_next(list, next);
    return w->status;
}

void
il__ingest_http_events_list(struct http_request *r)
{
    struct reading *w = begin(r);

    if (w == NULL || !http_take_query(r, &w->in))
        return;
    if (w->in.depth != NULL && w->in.depth[0] != '\0' &&
        il__ingest_depth(w->in.depth) == INGEST_DEPTH_COUNT) {
        (void)il__error_set(&w->error, IL_INVAL, "field 'depth': expected none or laps_full");
        failed(r);
        return;
    }
    http_say_list(r, &il__ingest_event_out, produce_events, failed);
}

static bool
add_lap(void *cookie, const struct ingest_lap_out *lap)
{
    return http_list_add(cookie, lap);
}

static il_status
produce_laps(struct http_request *r, struct http_list *list)
{
    struct reading *w = r->state;

    w->status = il__ingest_laps_list(il__ingest_app_of(r)->tables, r->caller->tenant, r->args[0],
                                     add_lap, list, &w->error);
    return w->status;
}

void
il__ingest_http_laps_list(struct http_request *r)
{
    if (begin(r) != NULL)
        http_say_list(r, &il__ingest_lap_out, produce_laps, failed);
}

static bool
add_verdict(void *cookie, const struct ingest_verdict *v)
{
    return http_list_add(cookie, v);
}

static il_status
produce_verdicts(struct http_request *r, struct http_list *list)
{
    struct reading *w = r->state;

    w->status = il__ingest_verify(il__ingest_app_of(r)->tables, r->caller->tenant, add_verdict,
                                  list, &w->error);
    return w->status;
}

void
il__ingest_http_verify(struct http_request *r)
{
    if (begin(r) != NULL)
        http_say_list(r, &il__ingest_verdict_out, produce_verdicts, failed);
}

/* ---- one ------------------------------------------------------------------------------------- */

static void
read_event(struct http_request *r)
{
    struct reading *w = r->state;

    w->status = il__ingest_event_get(il__ingest_app_of(r)->tables, r->caller->tenant, r->args[0],
                                     &r->mem, &w->event, &w->error);
}

static void
say_event(struct http_request *r)
{
    const struct reading *w = r->state;

    if (w->status == IL_OK)
        http_say(r, 200, &il__ingest_event_full_out, &w->event);
    else
        failed(r);
}

void
il__ingest_http_event_get(struct http_request *r)
{
    if (begin(r) != NULL)
        http_pool(r, read_event, say_event);
}

static void
read_race(struct http_request *r)
{
    struct reading *w = r->state;

    w->status = il__ingest_race_get(il__ingest_app_of(r)->tables, r->caller->tenant, r->args[0],
                                    &r->mem, &w->race, &w->error);
}

static void
say_race(struct http_request *r)
{
    const struct reading *w = r->state;

    if (w->status == IL_OK)
        http_say(r, 200, &il__ingest_race_full_out, &w->race);
    else
        failed(r);
}

void
il__ingest_http_race_get(struct http_request *r)
{
    if (begin(r) != NULL)
        http_pool(r, read_race, say_race);
}
