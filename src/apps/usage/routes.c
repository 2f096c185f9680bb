/*
 * routes.c: the route table, and the handlers for one day. See serve.h.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/usage/range_json.h"
#include "apps/usage/serve.h"
#include "base/clock.h"
#include "base/error.h"
#include "http/audit.h"
#include "http/bucket.h"
#include "http/server.h"

#define RETRY_MS 1000 /* for a day that is being built */

/* ---- dates ----------------------------------------------------------------------------------- */

static void PRINTF_LIKE(3, 4)
    refuse(struct http_request *r, const char *field, const char *fmt, ...)
{
    char    why[160];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    http_fail(r, 400, il_status_name(IL_INVAL), usage_http_app.name, NULL, "field '%s': %s", field,
              why);
}

static bool
take_date(struct http_request *r, const char *field, const char *text, usage_date *ret)
{
    usage_date today = usage_date_of(usage_now_ms(usage_app_of(r)->usage));
    char       now[IL__DATE_TEXT_BYTES];

    if (!usage_date_parse(text, ret)) {
        refuse(r, field, "expected a date such as 2026-01-15");
        return false;
    }
    if (*ret > today) {
        refuse(r, field, "%s is in the future; today is %s (UTC)", text, il__date_text(today, now));
        return false;
    }
    return true;
}

bool
usage_take_range(struct http_request *r, const char *start, const char *end, usage_date *from,
                 usage_date *to)
{
    AUTO_BUF struct il__buf details = { 0 };

    if (!take_date(r, "startDate", start, from) || !take_date(r, "endDate", end, to))
        return false;
    if (*from > *to) {
        refuse(r, "startDate", "%s is after endDate, %s", start, end);
        return false;
    }
    if (*to - *from < USAGE_DAYS_MAX)
        return true;
    il__buf_init(&details, 4096);
    usage_print_too_large(&details, *from, *to);
    http_fail(r, 400, "USAGE_RANGE_TOO_LARGE", usage_http_app.name, il__buf_str(&details),
              "the range has %d days, more than the maximum of %d", (int)(*to - *from) + 1,
              USAGE_DAYS_MAX);
    return false;
}

/* ---- a day ----------------------------------------------------------------------------------- */

/* A request for a day: held while it is built. In r->mem: end_day() takes it out of all lists. */
struct usage_held {
    struct http_request *r;
    struct usage_app    *app;
    usage_date           date;
    char                 text[IL__DATE_TEXT_BYTES], key[USAGE_KEY_BYTES];
    bool                 force, reads;
    uint64_t             token; /* of the marker, before the row was read; 0 = none */
    struct usage_copy   *old;   /* the row, if it is stale */
    int64_t              until_ns;
    struct usage_waiter  waiter;
    struct usage_result  result;
    struct usage_held   *next, *next_landed;
    bool                 held;   /* in app->held */
    bool                 landed; /* `result` is its flight's; under app->mutex */
    /* Sharing a read; on the loop. */
    bool               reading;  /* in app->reading: a thread reads its row */
    bool               has_read; /* `result` is that of the read */
    struct usage_held *readers;  /* those who wait for that read */
    struct usage_held *reader;   /* whose read this one waits for; NULL = none */
};

static void
unlink_held(struct usage_held **at, const struct usage_held *h)
{
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
}

/* It reads no more: with its result, or without one if the request ended before; then the others
 * have to read for themselves. */
static void
stop_reading(struct usage_held *h)
{
    h->reading = false;
    unlink_held(&h->app->reading, h);
    while (h->readers != NULL) {
        struct usage_held *other = h->readers;
        h->readers               = other->next;
        other->reader            = NULL;
        other->has_read          = h->has_read;
        if (h->has_read) {
            other->result = h->result;
            if (h->result.copy != NULL)
                usage_copy_ref(h->result.copy);
        }
        if (other->r->in_errand) /* else the server is closing and has dropped it */
            http_errand_resume(other->r);
    }
}

static void
let_go(struct usage_held *h)
{
    unlink_held(&h->app->held, h);
    h->held = false;
}

/* The server is closing and has dropped the request: its flight must not reach it any more. */
static void
leave_flight(struct usage_held *h)
{
    struct usage_app   *app = h->app;
    struct usage_held **at  = &app->landed;

    let_go(h);
    if (usage_leave(app->usage, &h->waiter, NULL))
        return;
    il__mutex_lock(&app->mutex);
    while (!h->landed) /* a thread of the cache is about to call landed() */
        (void)il__cond_wait(&app->landing, &app->mutex, -1);
    while (*at != h)
        at = &(*at)->next_landed;
    *at = h->next_landed;
    il__mutex_unlock(&app->mutex);
}

static void
end_day(struct http_request *r)
{
    struct usage_held *h = r->ended_cookie;

    if (h->held)
        leave_flight(h);
    if (h->reader != NULL)
        unlink_held(&h->reader->readers, h);
    if (h->reading)
        stop_reading(h);
    usage_copy_unref(h->result.copy);
    usage_copy_unref(h->old);
}

static void
say_copy(struct http_request *r, const struct usage_copy *c, bool stale, const char *why)
{
    usage_copy_print(&r->out, c, stale, why);
    http_answer(r, 200);
}

static void
say_failed(struct http_request *r)
{
    const struct usage_held *h = r->ended_cookie;

    switch (h->result.status) {
    case IL_TIMEOUT:
    case IL_LIMIT:
    case IL_CANCELLED:
        http_retry_after(r, RETRY_MS);
        http_fail(r, 503, "USAGE_BUILDING", usage_http_app.name, NULL, "%s: %s", h->text,
                  h->result.text);
        return;
    case IL_STATE:
        http_fail(r, 502, "USAGE_SOURCE_FAILED", usage_http_app.name, NULL, "%s: %s", h->text,
                  h->result.text);
        return;
    case IL_NOT_FOUND:
        http_fail(r, 404, "USAGE_DAY_NOT_FOUND", usage_http_app.name, NULL, "%s is not stored",
                  h->text);
        return;
    default:
        http_fail(r, il_status_http(h->result.status), il_status_name(h->result.status),
                  usage_http_app.name, NULL, "%s: %s", h->text, il_status_text(h->result.status));
    }
}

static void
say_day(struct http_request *r)
{
    struct usage_held *h = r->ended_cookie;

    if (h->result.copy == NULL && h->result.status != IL_OK)
        h->result.copy = TAKE(h->old);
    if (h->result.copy == NULL)
        say_failed(r);
    else
        say_copy(r, h->result.copy, h->result.status != IL_OK, h->result.text);
}

/* A forced build is an administrative action. */
static void
answer_day(struct http_request *r)
{
    const struct usage_held *h = r->ended_cookie;

    if (h->force)
        http_audit(r,
                   &(struct http_action){ .action  = "usage.refresh",
                                          .what    = h->key,
                                          .outcome = il_status_name(h->result.status) },
                   say_day);
    else
        say_day(r);
}

/* ---- holding requests ------------------------------------------------------------------------ */

static void
resume(struct usage_held *h)
{
    let_go(h);
    http_errand_resume(h->r); /* h may be gone now */
}

/* On the loop: those whose flights have landed. */
static void
resume_landed(struct http_server *s UNUSED, void *cookie)
{
    struct usage_app *app = cookie;

    il__mutex_lock(&app->mutex);
    struct usage_held *h = TAKE(app->landed);
    il__mutex_unlock(&app->mutex);
    while (h != NULL) {
        struct usage_held *next = h->next_landed;
        resume(h);
        h = next;
    }
}

/* On a thread of the cache: for the loop, which is notified once for many; with the mutex, so that
 * no notice is still to come once the last of `landed` has ended and the app is closed. */
static void
landed(struct usage_waiter *w, struct usage_result *result)
{
    struct usage_held *h   = container_of(w, struct usage_held, waiter);
    struct usage_app  *app = h->app;

    h->result = *result;
    il__mutex_lock(&app->mutex);
    if (app->landed == NULL)
        IGNORE(http_post(app->server, resume_landed, app)); /* else the next tick finds them */
    h->landed      = true;
    h->next_landed = app->landed;
    app->landed    = h;
    CHECK(pthread_cond_signal(&app->landing) == 0);
    il__mutex_unlock(&app->mutex);
}

void
usage_held_tick(struct usage_app *app, int64_t now_ns)
{
    struct usage_held *next;

    resume_landed(app->server, app);
    for (struct usage_held *h = app->held; h != NULL; h = next) {
        next = h->next;
        if (now_ns < h->until_ns || !usage_leave(app->usage, &h->waiter, &h->result.copy))
            continue;
        h->result.status = IL_TIMEOUT;
        (void)snprintf(h->result.text, sizeof h->result.text,
                       "the day is still being built; try again later");
        resume(h);
    }
}

/* Wait for the day. */
static void
hold(struct http_request *r)
{
    struct usage_held *h   = r->ended_cookie;
    struct usage_app  *app = h->app;
    il_error           err;

    h->until_ns = r->began_ns + app->setup.wait_ms * IL__NS_PER_MS;
    h->waiter   = (struct usage_waiter){ .done = landed, .urgent = true, .silent = h->force };
    h->next     = app->held;
    h->held     = true;
    app->held   = h;
    http_errand_hold(r, answer_day);
    il_status st = usage_join(app->usage, r->caller->tenant, h->date,
                              h->force ? USAGE_FORCE : USAGE_TAKE, &h->waiter, &err);
    if (st == IL_OK)
        return;
    h->result.status = st;
    (void)snprintf(h->result.text, sizeof h->result.text, "%s", err.message);
    resume(h);
}

/* ---- GET /days/{date} ------------------------------------------------------------------------ */

/* On a thread of the pool: a stored day is answered however many days are being built. */
static void
read_day(struct http_request *r)
{
    struct usage_held *h = r->ended_cookie;
    struct usage_row   row;
    il_error           err = { .message = "" };

    h->result.status =
        usage_row_get(usage_tables_of(h->app->usage), r->caller->tenant, h->date, &row, &err);
    if (h->result.status != IL_OK)
        return;
    h->result.copy = usage_copy_new(r->caller->tenant, &row, h->token);
    usage_row_release(&row);
    if (h->result.copy == NULL)
        h->result.status = IL_NOMEM;
}

/* ?build=no: only reads. */
static void
say_read(struct http_request *r, bool hit)
{
    struct usage_held *h = r->ended_cookie;

    usage_count(h->app->usage, hit ? USAGE_COUNT_hits : USAGE_COUNT_misses);
    if (h->result.copy != NULL)
        say_copy(r, h->result.copy, !hit, hit ? NULL : "the stored figures are out of date");
    else
        say_failed(r);
}

static void
answer_read(struct http_request *r)
{
    struct usage_held *h    = r->ended_cookie;
    struct usage      *u    = h->app->usage;
    struct usage_copy *copy = h->result.copy;
    bool               hit  = copy != NULL && usage_copy_is_fresh(u, copy);

    if (h->reads) {
        say_read(r, hit);
    } else if (hit) {
        usage_copy_hit(u, copy);
        usage_copy_keep(u, copy);
        if (h->token == 0) /* the row has no marker: that is added behind the answer */
            IGNORE(usage_join(u, r->caller->tenant, h->date, USAGE_TAKE, NULL, NULL));
        say_copy(r, copy, false, NULL);
    } else {
        h->old    = TAKE(h->result.copy);
        h->result = (struct usage_result){ .status = IL_OK };
        hold(r);
    }
}

static void
did_read(struct http_request *r)
{
    struct usage_held *h = r->ended_cookie;

    h->has_read = true;
    stop_reading(h);
    answer_read(r);
}

static void share_read(struct http_request *r);

static void
did_share(struct http_request *r)
{
    const struct usage_held *h = r->ended_cookie;

    if (h->has_read)
        answer_read(r);
    else
        share_read(r);
}

/*
 * Requests for one day share a read of its row, so that a crowd needs one thread of the pool and
 * not all of them. Only with the same token: a row that was written since the read began has
 * another one as soon as its writer says so, and whoever has seen that reads again.
 */
static void
share_read(struct http_request *r)
{
    struct usage_held *h     = r->ended_cookie;
    struct usage_held *first = h->app->reading;

    while (first != NULL && !(first->date == h->date && first->token == h->token &&
                              strcmp(first->r->caller->tenant, r->caller->tenant) == 0))
        first = first->next;
    if (first != NULL) {
        h->reader      = first;
        h->next        = first->readers;
        first->readers = h;
        http_errand_hold(r, did_share);
        return;
    }
    http_pool(r, read_day, did_read);
    if (!r->pooled)
        return; /* refused, and answered */
    h->reading      = true;
    h->next         = h->app->reading;
    h->app->reading = h;
}

/* The marker is known: with a copy of that version, the day is answered at once. */
static void
looked(struct http_request *r)
{
    struct usage_held *h = r->ended_cookie;
    struct usage      *u = h->app->usage;
    bool hit = r->ops[0].status == IL_HIT && (r->ops[0].out.flags & IL_OUT_NEGATIVE) == 0;

    h->token       = hit ? r->ops[0].out.fence : 0;
    h->result.copy = usage_copy_find(u, r->caller->tenant, h->date, h->token);
    if (h->result.copy != NULL && usage_copy_is_fresh(u, h->result.copy)) {
        if (h->reads)
            usage_count(u, USAGE_COUNT_hits);
        else
            usage_copy_hit(u, h->result.copy);
        say_copy(r, h->result.copy, false, NULL);
        return;
    }
    usage_copy_unref(h->result.copy);
    h->result.copy = NULL;
    share_read(r);
}

/* NULL: answered. */
static struct usage_held *
new_held(struct http_request *r, usage_date date)
{
    struct usage_held *h = http_calloc(r, sizeof *h);

    if (h == NULL)
        return NULL;
    *h              = (struct usage_held){ .r = r, .app = usage_app_of(r), .date = date };
    r->ended        = end_day;
    r->ended_cookie = h;
    (void)snprintf(h->key, sizeof h->key, USAGE_KEY "%s", il__date_text(date, h->text));
    return h;
}

void
usage_http_day(struct http_request *r)
{
    struct usage_day_in in = { 0 };
    usage_date          date;

    if (!usage_require_served(r) || !http_take_query(r, &in) ||
        !take_date(r, "date", r->args[0], &date))
        return;
    struct usage_held *h = new_held(r, date);
    if (h == NULL)
        return;
    h->reads = in.build == USAGE_BUILD_NO;
    r->op    = (il_op){ .type = IL_OP_CACHE_GET, .key = h->key };
    http_do_ops(r, &r->op, 1, 0, looked);
}

/* ---- POST /refresh-today --------------------------------------------------------------------- */

void
usage_http_refresh(struct http_request *r)
{
    if (!usage_require_served(r))
        return;
    struct usage_held *h = new_held(r, usage_date_of(usage_now_ms(usage_app_of(r)->usage)));
    if (h == NULL)
        return;
    h->force = true;
    hold(r);
}

/* ---- GET /cache/metrics ---------------------------------------------------------------------- */

void
usage_http_metrics(struct http_request *r)
{
    const struct usage_app *app = usage_app_of(r);
    struct usage_rates      out = { .counts = { 0 } };

    if (app->usage != NULL)
        usage_counts(app->usage, &out.counts);
    out.hit_rate        = usage_rate(out.counts.hits, out.counts.misses);
    out.contention_rate = usage_rate(out.counts.locks_held, out.counts.locks);
    http_say(r, 200, &usage_out_metrics, &out);
}
