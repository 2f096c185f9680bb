/*
 * app.c: the routes of the toy app, and its table. Each section uses one part of struct http_app.
 *
 *   /toy/read, /toy/write    need a grant
 *   /toy/limited             has a rate bucket
 *   /toy/measure             changes its metrics and logs, from a thread of the pool
 *   /toy/flood               logs many lines at once
 *   /toy/hold, /toy/release  keep a thread of the pool busy
 *   /toy/list                a streamed list
 *   /toy/rows, /toy/lock,
 *   /toy/query               guarded transactions (rows.c)
 *   /toy/runs                a run in the background (runs.c)
 *   /toy/greetings/{name}    settings (settings.c)
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "http/bucket.h"
#include "http/handler.h"
#include "http/list_stream.h"
#include "tables.h"
#include "toy.h"
#include "wire/table.h"

/* ---- inputs and answers ---------------------------------------------------------------------- */

#define STRUCT struct toy_in
static const struct wire_field in_fields[] = {
    BOOL("refund", 0, flags, TOY_REFUND, "give the token back"),
    BOOL("stubborn", 0, flags, TOY_STUBBORN, "wait beyond the deadline"),
    BOOL("idle", 0, flags, TOY_IDLE, "a millisecond passes between two items"),
    BOOL("slow", 0, flags, TOY_SLOW, "hold the rows for some milliseconds"),
    BOOL("break", 0, flags, TOY_BREAK, "violate a constraint"),
    F("n", n, UINT32, 0, "how many"),
    F("fail_at", fail_at, UINT32, 0, "fail before this item; 0 = never"),
};
static OBJECT(toy_in, "ToyIn", in_fields, 0, "Inputs of the toy");
#undef STRUCT

struct toy_out {
    const char *text;
    uint64_t    n;
};
#define STRUCT struct toy_out
static const struct wire_field out_fields[] = {
    F("text", text, TEXT, 0, "what happened"),
    F("n", n, UINT64, WIRE_NOT_NULL, "a number"),
};
static OBJECT(toy_out, "Toy", out_fields, 0, "An answer of the toy");
#undef STRUCT

struct toy_in *
toy_take(struct http_request *r)
{
    struct toy_in *in = http_calloc(r, sizeof *in);

    if (in == NULL)
        return NULL;
    r->state = in;
    return http_take_query(r, in) ? in : NULL;
}

void
toy_say(struct http_request *r, const char *text, uint64_t n)
{
    http_say(r, 200, &toy_out, &(struct toy_out){ text, n });
}

/* ---- grants ---------------------------------------------------------------------------------- */

static void
say_ok(struct http_request *r)
{
    toy_say(r, "ok", 0);
}

/* ---- a bucket -------------------------------------------------------------------------------- */

static const struct http_bucket bucket = { .name = "toys", .tokens = 2, .period_ms = 3600 * 1000 };

static void
limited(struct http_request *r)
{
    const struct toy_in *in = toy_take(r);

    if (in == NULL)
        return;
    if ((in->flags & TOY_REFUND) != 0)
        http_bucket_refund(r);
    toy_say(r, "ok", 0);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static const char *const outcomes[] = { "released", "gone", "deadline" };
enum outcome {
    RELEASED,
    GONE,
    DEADLINE
};

static const char *const ends[] = { "cancelled", "other" };

static const struct http_app_metric metrics[] = {
    [TOY_METRIC_PLAYS]   = { HTTP_METRIC_counter, "toy_plays_total", "plays", NULL, NULL, 0 },
    [TOY_METRIC_HOLDING] = { HTTP_METRIC_gauge, "toy_holding", "running holds", NULL, NULL, 0 },
    [TOY_METRIC_PLAY_SECONDS] = { HTTP_METRIC_histogram, "toy_play_seconds", "time of a play", NULL,
                                  NULL, 0 },
    [TOY_METRIC_HOLDS]    = { HTTP_METRIC_counter, "toy_holds_total", "holds that ended", "outcome",
                              outcomes, ARRAY_LEN(outcomes) },
    [TOY_METRIC_LAST]     = { HTTP_METRIC_gauge, "toy_last", "the last number", NULL, NULL, 0 },
    [TOY_METRIC_STOPPED]  = { HTTP_METRIC_counter, "toy_lists_stopped_total",
                              "lists that nobody wanted to the end", NULL, NULL, 0 },
    [TOY_METRIC_TICKS]    = { HTTP_METRIC_counter, "toy_ticks_total", "ticks of the server", NULL,
                              NULL, 0 },
    [TOY_METRIC_QUERYING] = { HTTP_METRIC_gauge, "toy_querying", "queries without end", NULL, NULL,
                              0 },
    [TOY_METRIC_QUERIES]  = { HTTP_METRIC_counter, "toy_queries_total", "queries that ended", "how",
                              ends, ARRAY_LEN(ends) },
    [TOY_METRIC_RUNS] = { HTTP_METRIC_counter, "toy_runs_counted_total", "counted by runs", NULL,
                          NULL, 0 },
};

/* ---- log lines ------------------------------------------------------------------------------- */

static const struct http_app_event events[] = {
    [TOY_EVENT_PLAYED]   = { HTTP_LOG_INFO, "toy.played", "somebody played" },
    [TOY_EVENT_FLOOD]    = { HTTP_LOG_INFO, "toy.flood", "one of many lines" },
    [TOY_EVENT_STOPPING] = { HTTP_LOG_INFO, "toy.stopping", "the server stops" },
};

static void
do_measure(struct http_request *r)
{
    const struct toy_in *in = r->state;

    http_app_count(r->server, &toy_http_app, TOY_METRIC_PLAYS, 0, in->n);
    http_app_gauge(r->server, &toy_http_app, TOY_METRIC_LAST, 0, in->n);
    http_app_observe(r->server, &toy_http_app, TOY_METRIC_PLAY_SECONDS, 0,
                     2000 * (int64_t)IL__NS_PER_MS);
    http_app_log(r->server, &toy_http_app, TOY_EVENT_PLAYED,
                 HTTP_LOG_TEXT("tenant_id", "toy \"land\""), HTTP_LOG_TEXT("missing", NULL),
                 HTTP_LOG_INT("plays", in->n), HTTP_LOG_MS("took_ms", 1500 * INT64_C(1000)));
}

static void
measure(struct http_request *r)
{
    if (toy_take(r) != NULL)
        http_pool(r, do_measure, say_ok);
}

/* On the loop: none of the lines is written before all were sent. */
static void
flood(struct http_request *r)
{
    const struct toy_in *in = toy_take(r);

    for (uint32_t i = 0; in != NULL && i < in->n; i++)
        http_app_log(r->server, &toy_http_app, TOY_EVENT_FLOOD, HTTP_LOG_INT("line", i));
    if (in != NULL)
        toy_say(r, "ok", in->n);
}

/* ---- the pool -------------------------------------------------------------------------------- */

static void
set_fd(int fd)
{
    uint64_t one = 1;

    CHECK(write(fd, &one, sizeof one) == (ssize_t)sizeof one);
}

static void
on_gone(void *cookie)
{
    set_fd(*(int *)cookie);
}

/* Waits as a query does: for its end, for the client to go, or until the deadline. */
static enum outcome
hold_until(struct http_request *r, int gate_fd, bool stubborn)
{
    int           gone_fd = eventfd(0, EFD_CLOEXEC);
    struct pollfd fds[]   = { { .fd = gate_fd, .events = POLLIN },
                              { .fd = gone_fd, .events = POLLIN } };
    int           n;

    CHECK(gone_fd >= 0);
    http_on_disconnect(r, on_gone, &gone_fd);
    do
        n = poll(fds, ARRAY_LEN(fds), stubborn ? -1 : (int)http_request_left_ms(r));
    while (n < 0 && errno == EINTR);
    http_on_disconnect(r, NULL, NULL);
    (void)close(gone_fd);
    if (n == 0)
        return DEADLINE;
    return (fds[1].revents & POLLIN) != 0 ? GONE : RELEASED;
}

static void
do_hold(struct http_request *r)
{
    struct toy_in *in  = r->state;
    struct toy    *toy = toy_of(r);

    http_app_count(r->server, &toy_http_app, TOY_METRIC_HOLDING, 0, 1);
    enum outcome outcome = hold_until(r, toy->gate_fd, (in->flags & TOY_STUBBORN) != 0);
    http_app_count(r->server, &toy_http_app, TOY_METRIC_HOLDING, 0, -1);
    http_app_count(r->server, &toy_http_app, TOY_METRIC_HOLDS, (size_t)outcome, 1);
    in->left_ms = http_request_left_ms(r);
    in->outcome = outcomes[outcome];
}

static void
held(struct http_request *r)
{
    const struct toy_in *in = r->state;

    toy_say(r, in->outcome, (uint64_t)in->left_ms);
}

static void
hold(struct http_request *r)
{
    if (toy_take(r) != NULL)
        http_pool(r, do_hold, held);
}

static void
release(struct http_request *r)
{
    set_fd(toy_of(r)->gate_fd);
    toy_say(r, "ok", 0);
}

/* ---- a streamed list ------------------------------------------------------------------------- */

static il_status
produce(struct http_request *r, struct http_list *list)
{
    const struct toy_in *in = r->state;
    char                 text[201];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (uint32_t i = 0; i < in->n; i++) {
        if (in->fail_at > 0 && i + 1 == in->fail_at)
            return IL_STORE;
        if ((in->flags & TOY_IDLE) != 0)
            (void)poll(NULL, 0, 1);
        if (!http_list_add(list, &(struct toy_out){ text, i })) {
            http_app_count(r->server, &toy_http_app, TOY_METRIC_STOPPED, 0, 1);
            return IL_CANCELLED;
        }
    }
    if (in->n == 7)
        http_list_next(list, "8");
    return IL_OK;
}

static void
not_produced(struct http_request *r)
{
    http_fail(r, 503, "TOY_BROKEN", toy_http_app.name, NULL, "the list cannot be read");
}

static void
list(struct http_request *r)
{
    if (toy_take(r) != NULL)
        http_say_list(r, &toy_out, produce, not_produced);
}

/* ---- the app --------------------------------------------------------------------------------- */

static const struct http_app_error errors[] = {
    { "TOY_BROKEN", 503, IL_STORE, "the toy is broken" },
    { "TOY_NOT_FOUND", 404, IL_NOT_FOUND, "nobody to greet" },
    { "TOY_REFUSED", 409, IL_STATE, "the tables refuse it" },
};

static const struct http_route routes[] = {
    { .method     = "GET",
      .path       = "/toy/read",
      .permission = HTTP_ACCESS(admin, NONE),
      .grant      = "admin:toy",
      .id         = "toy_read",
      .fn         = say_ok,
      .answer     = &toy_out,
      .summary    = "Needs admin:toy" },
    { .method     = "POST",
      .path       = "/toy/write",
      .permission = HTTP_ACCESS(admin, NONE),
      .grant      = "admin:toy:write",
      .id         = "toy_write",
      .fn         = say_ok,
      .answer     = &toy_out,
      .summary    = "Needs admin:toy:write" },
    { .method     = "POST",
      .path       = "/toy/limited",
      .permission = HTTP_ACCESS(write, NONE),
      .id         = "toy_limited",
      .fn         = limited,
      .query      = &toy_in,
      .answer     = &toy_out,
      .flags      = HTTP_ONCE,
      .bucket     = &bucket,
      .summary    = "Twice an hour" },
    { .method     = "POST",
      .path       = "/toy/measure",
      .permission = HTTP_ACCESS(write, NONE),
      .id         = "toy_measure",
      .fn         = measure,
      .query      = &toy_in,
      .answer     = &toy_out,
      .summary    = "Counts and logs" },
    { .method     = "POST",
      .path       = "/toy/flood",
      .permission = HTTP_ACCESS(write, NONE),
      .id         = "toy_flood",
      .fn         = flood,
      .query      = &toy_in,
      .answer     = &toy_out,
      .summary    = "Logs n lines" },
    { .method     = "POST",
      .path       = "/toy/hold",
      .permission = HTTP_ACCESS(write, NONE),
      .id         = "toy_hold",
      .fn         = hold,
      .query      = &toy_in,
      .answer     = &toy_out,
      .summary    = "Keeps a thread until it is released" },
    { .method     = "POST",
      .path       = "/toy/release",
      .permission = HTTP_ACCESS(write, NONE),
      .id         = "toy_release",
      .fn         = release,
      .answer     = &toy_out,
      .summary    = "Releases all, now and later" },
    { .method     = "GET",
      .path       = "/toy/list",
      .permission = HTTP_ACCESS(read, NONE),
      .id         = "toy_list",
      .fn         = list,
      .query      = &toy_in,
      .answer     = &toy_out,
      .flags      = HTTP_PAGE,
      .summary    = "Lists n items" },
    { .method     = "POST",
      .path       = "/toy/rows",
      .permission = HTTP_ACCESS(write, NONE),
      .id         = "toy_rows",
      .fn         = toy_rows,
      .query      = &toy_in,
      .answer     = &toy_out,
      .summary    = "Creates n courses" },
    { .method     = "POST",
      .path       = "/toy/lock",
      .permission = HTTP_ACCESS(write, NONE),
      .id         = "toy_lock",
      .fn         = toy_lock,
      .query      = &toy_in,
      .answer     = &toy_out,
      .summary    = "Locks n courses" },
    { .method     = "POST",
      .path       = "/toy/query",
      .permission = HTTP_ACCESS(write, NONE),
      .id         = "toy_query",
      .fn         = toy_query,
      .query      = &toy_in,
      .answer     = &toy_out,
      .summary    = "Queries without end" },
    { .method     = "POST",
      .path       = "/toy/runs",
      .permission = HTTP_ACCESS(write, NONE),
      .id         = "toy_run",
      .fn         = toy_run,
      .query      = &toy_in,
      .answer     = &toy_out,
      .summary    = "Starts a run that counts n" },
    { .method     = "GET",
      .path       = "/toy/greetings/{name}",
      .permission = HTTP_ACCESS(read, NONE),
      .id         = "toy_greet",
      .fn         = toy_greet,
      .answer     = &toy_greeting_out,
      .summary    = "Greet" },
};

const struct http_app toy_http_app = {
    .name          = "toy",
    .run_class     = TOY_CLASS,
    .routes        = routes,
    .n_routes      = ARRAY_LEN(routes),
    .errors        = errors,
    .n_errors      = ARRAY_LEN(errors),
    .metrics       = metrics,
    .n_metrics     = ARRAY_LEN(metrics),
    .events        = events,
    .n_events      = ARRAY_LEN(events),
    .tables        = TOY_VERSION == 1 ? &t_toy : &t_toy_next,
    .invariants    = t_toy_invariants,
    .n_invariants  = T_TOY_INVARIANTS,
    .pipelines     = t_toy_pipelines,
    .n_pipelines   = T_TOY_PIPELINES,
    .open          = toy_open,
    .in_use        = toy_in_use,
    .start         = toy_start,
    .stop          = toy_stop,
    .close         = toy_close,
    .reload        = toy_reload,
    .print_metrics = toy_print_metrics,
    .tick          = toy_tick,
};
