/*
 * routes_range.c: the routes of ranges: analytics, breakdowns and exports. Each loads its range on
 * a thread of the pool, which waits for the days that have to be built and prints the answer.
 */
#include <stdio.h>

#include "apps/usage/range_json.h"
#include "apps/usage/serve.h"
#include "base/clock.h"
#include "base/error.h"
#include "http/route.h"
#include "http/server.h"

struct range_work {
    struct usage_range_body in;
    usage_date              from, to;
    enum usage_by           by;
    bool                    compare;
    void (*print)(struct http_request *r); /* the answer, on the pool; r->out is its buffer */
    struct usage_range range, before;
    il_status          status;
    il_error           error;
    bool               too_large; /* the answer, or memory ran out */
    atomic_bool        gone;
};

static void
end_range(struct http_request *r)
{
    struct range_work *w = r->ended_cookie;

    usage_range_release(&w->range);
    usage_range_release(&w->before);
}

/* ---- loading --------------------------------------------------------------------------------- */

static void
on_gone(void *cookie)
{
    atomic_store(&((struct range_work *)cookie)->gone, true);
}

static bool
should_stop(void *cookie)
{
    return atomic_load(&((struct range_work *)cookie)->gone);
}

static void
load(struct http_request *r)
{
    struct range_work    *w   = r->ended_cookie;
    struct usage_app     *app = usage_app_of(r);
    struct usage_range_in in  = { .tenant      = r->caller->tenant,
                                  .from        = w->from,
                                  .to          = w->to,
                                  .by          = w->by,
                                  .build       = true,
                                  .until_ns    = r->began_ns + app->setup.wait_ms * IL__NS_PER_MS,
                                  .should_stop = should_stop,
                                  .cookie      = w };

    http_on_disconnect(r, on_gone, w);
    w->status = usage_range_load(app->usage, &in, &w->range, &w->error);
    if (w->status == IL_OK && w->compare) {
#ifndef IL_MUTANT_usage_comparison_builds
        in.build = false; /* the period before is only looked at */
#endif
        in.to     = w->from - 1;
        in.from   = in.to - (w->to - w->from);
        w->status = usage_range_load(app->usage, &in, &w->before, &w->error);
    }
    if (w->status == IL_OK && w->by != USAGE_BY_NONE)
        usage_parts_rank(&w->range.parts);
    http_on_disconnect(r, NULL, NULL);
    if (w->status != IL_OK)
        return;
    w->print(r);
    if (r->out.failed) {
        il__buf_release(&r->out);
        w->too_large = true;
    }
}

/* False: answered. */
static bool
is_loaded(struct http_request *r)
{
    const struct range_work *w = r->ended_cookie;

    if (w->status == IL_OK && !w->too_large)
        return true;
    if (w->too_large)
        http_fail(r, 422, "USAGE_ANSWER_TOO_LARGE", usage_http_app.name, NULL,
                  "the response, or one of its sums, is too large; request fewer days");
    else if (w->status == IL_LIMIT)
        http_fail(r, 422, "USAGE_ANSWER_TOO_LARGE", usage_http_app.name, NULL, "%s",
                  w->error.message);
    else
        http_fail(r, il_status_http(w->status), il_status_name(w->status), usage_http_app.name,
                  NULL, "%s",
                  il_status_http(w->status) < 500 ? w->error.message : il_status_text(w->status));
    return false;
}

static void
say(struct http_request *r)
{
    if (is_loaded(r))
        http_answer(r, 200);
}

/* NULL: answered. */
static struct range_work *
new_work(struct http_request *r)
{
    if (!usage_require_served(r))
        return NULL;
    struct range_work *w = http_calloc(r, sizeof *w);
    if (w == NULL)
        return NULL;
    w->by           = USAGE_BY_NONE;
    r->ended        = end_range;
    r->ended_cookie = w;
    return w;
}

/* Load the range, if the request is good (`taken`); a bad one does not count against the rate. */
static void
begin(struct http_request *r, struct range_work *w, bool taken, http_fn *then)
{
    if (taken && usage_take_range(r, w->in.start, w->in.end, &w->from, &w->to))
        http_pool(r, load, then);
    else if (r->route->bucket != NULL)
        http_bucket_refund(r);
}

/* ---- POST /analytics ------------------------------------------------------------------------- */

static void
print_analytics(struct http_request *r)
{
    const struct range_work *w = r->ended_cookie;

    usage_print_analytics(&r->out, &w->range, &w->before);
}

void
usage_http_analytics(struct http_request *r)
{
    struct range_work *w = new_work(r);

    if (w == NULL)
        return;
    w->compare = true;
    w->print   = print_analytics;
    begin(r, w, http_take_body(r, &w->in), say);
}

/* ---- POST /by-user, /by-model, /by-provider -------------------------------------------------- */

static void
print_parts(struct http_request *r)
{
    const struct range_work *w     = r->ended_cookie;
    size_t                   limit = w->in.limit != 0 ? w->in.limit : USAGE_PAGE_DEFAULT;

    usage_print_parts(&r->out, &w->range, w->in.cursor, limit);
}

static void
breakdown(struct http_request *r, enum usage_by by)
{
    struct range_work *w = new_work(r);

    if (w == NULL || !http_take_body(r, &w->in))
        return;
    w->by    = by;
    w->print = print_parts;
    if (w->in.cursor != NULL && !usage_cursor_is_valid(w->in.cursor))
        http_fail(r, 400, il_status_name(IL_INVAL), usage_http_app.name, NULL,
                  "field 'cursor': invalid");
    else
        begin(r, w, true, say);
}

void
usage_http_by_user(struct http_request *r)
{
    breakdown(r, USAGE_BY_USER);
}

void
usage_http_by_model(struct http_request *r)
{
    breakdown(r, USAGE_BY_MODEL);
}

void
usage_http_by_provider(struct http_request *r)
{
    breakdown(r, USAGE_BY_PROVIDER);
}

/* ---- GET /export ----------------------------------------------------------------------------- */

/* A file has no place for the days that are not part of its sums. */
static void
add_count(struct http_request *r, const char *name, enum usage_state state)
{
    const struct range_work *w    = r->ended_cookie;
    char                    *text = http_alloc(r, 16);

    if (text == NULL)
        return;
    (void)snprintf(text, 16, "%zu", usage_count_days_in(&w->range, state));
    http_header(r, name, text);
}

static void
print_export(struct http_request *r)
{
    const struct range_work *w = r->ended_cookie;

    if (w->in.format == USAGE_JSON)
        usage_print_export(&r->out, &w->range, w->by);
    else
        usage_print_csv(&r->out, &w->range, w->by);
}

static void
say_export(struct http_request *r)
{
    const struct range_work *w = r->ended_cookie;

    if (!is_loaded(r))
        return;
    if (w->in.format == USAGE_CSV) {
        r->content_type = "text/csv; charset=utf-8";
        http_header(r, "Content-Disposition", "attachment; filename=\"usage.csv\"");
        add_count(r, "X-Usage-Stale-Days", USAGE_STALE);
        add_count(r, "X-Usage-Missing-Days", USAGE_MISSING);
        add_count(r, "X-Usage-Pending-Days", USAGE_PENDING);
    }
    http_answer(r, 200);
}

void
usage_http_export(struct http_request *r)
{
    struct range_work *w = new_work(r);

    if (w == NULL)
        return;
    bool taken = http_take_query(r, &w->in);
    w->by      = w->in.by == 0 ? USAGE_BY_NONE : (enum usage_by)(w->in.by - 1);
    w->print   = print_export;
    begin(r, w, taken, say_export);
}
