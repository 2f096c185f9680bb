/*
 * status.c: the server's own state: / (browsers are redirected to the admin page), /health, /ready,
 * /openapi.json, GET /status.
 */
#include "base/clock.h"
#include "http/handler.h"
#include "http/limits.h"
#include "http/server.h"
#include "http/ui.h"

/* /ready caches its result for a second, since anyone may call it */
#define READY_NS (1000 * (int64_t)IL__NS_PER_MS)

static const char name[] = "interlock";

void
http_root_get(struct http_request *r)
{
    struct http_status s = { .name = name, .version = il_version() };

    if (!http_ui_redirect(r))
        http_say(r, 200, &http_out_root, &s);
}

void
http_health_get(struct http_request *r)
{
    struct http_status s = { .store = "ok" };

    http_say(r, 200, &http_out_health, &s);
}

void
http_openapi_get(struct http_request *r)
{
    const char *text = r->server->openapi;

    if (text == NULL)
        text = r->server->openapi = http_openapi(r->server->o->apps, r->server->o->n_apps);
    if (text == NULL) {
        http_fail_nomem(r);
        return;
    }
    il__buf_adds(&r->out, text);
    http_answer(r, 200);
}

/* ---- ready ----------------------------------------------------------------------------------- */

struct pinging {
    il_status status;
    il_error  error;
};

static void
ping(struct http_request *r)
{
    struct pinging *p = r->state;

    p->status = il__data_ping(r->server->data, &p->error);
}

static void
say_ready(struct http_request *r)
{
    struct http_status s = { .store = "ok", .data = "ok", .is = HTTP_IS_TRUE };

    http_say(r, 200, &http_out_ready, &s);
}

static void
pinged(struct http_request *r)
{
    struct pinging *p = r->state;

    if (p->status != IL_OK) {
        http_retry_after(r, 1000);
        http_fail(r, 503, il_status_name(p->status), "data", NULL, "data store: %s",
                  il_status_text(p->status));
        return;
    }
    r->server->ready_ns = il__clock_boot_ns();
    say_ready(r);
}

/* The store has answered, or http_fail_call() has. */
static void
store_asked(struct http_request *r)
{
    if (r->ops->status != IL_OK)
        http_fail_op(r, r->ops, "store");
    else
        http_errand(r, ping, pinged);
}

void
http_ready_get(struct http_request *r)
{
    struct pinging *p = http_calloc(r, sizeof *p);

    if (p == NULL)
        return;
    if (r->server->stopping) {
        http_fail(r, 503, "SHUTTING_DOWN", "request", NULL, "the server is shutting down");
        return;
    }
    if (r->server->ready_ns != 0 && il__clock_boot_ns() - r->server->ready_ns < READY_NS &&
        !r->server->store_down) {
        say_ready(r);
        return;
    }
    r->state = p;
    r->op    = (il_op){ .type = IL_OP_CRON_LIST, .tenant = "default", .in.list = { .limit = 1 } };
    http_do_own(r, &r->op, 0, store_asked);
}

/* ---- status ---------------------------------------------------------------------------------- */

/* "postgres" of postgres://…; no other part of a URL is ever shown. */
static const char *
engine_of(const char *url)
{
    static const char *const known[] = { "memory", "sqlite", "postgres", "redis" };

    for (size_t i = 0; url != NULL && i < ARRAY_LEN(known); i++) {
        if (strncmp(url, known[i], strlen(known[i])) == 0)
            return known[i];
    }
    return "other";
}

static void
add_queue(il_queue_info *sums, const il_queue_info *q)
{
    sums->n_scheduled += q->n_scheduled;
    sums->n_ready += q->n_ready;
    sums->n_running += q->n_running;
    sums->n_failed += q->n_failed;
    sums->n_workers += q->n_workers;
    sums->oldest_ms = MAX(sums->oldest_ms, q->oldest_ms);
}

static void
queues_asked(struct http_request *r)
{
    const struct http_server *server = r->server;
    struct http_status        s      = {
                    .name        = name,
                    .version     = il_version(),
                    .engine      = engine_of(server->o->store_url),
                    .tenant      = r->caller->tenant,
                    .now_ms      = il__clock_wall_ms(),
                    .uptime_ms   = (il__clock_boot_ns() - server->began_ns) / IL__NS_PER_MS,
                    .store       = "ok",
                    .data        = "ok",
                    .connections = server->conns.n_open,
                    .requests    = server->n_requests,
                    .waiters     = http_limits_waiters(server),
                    .streams     = http_limits_streams(server),
                    .is          = HTTP_IS_TRUE,
    };

    if (r->ops->status != IL_OK) {
        http_fail_op(r, r->ops, NULL);
        return;
    }
    s.n_queues = r->ops->out.n_queues;
    for (size_t i = 0; i < r->ops->out.n_queues; i++)
        add_queue(&s.sums, &r->ops->out.queues[i]);
    http_say(r, 200, &http_out_status, &s);
}

void
http_status_get(struct http_request *r)
{
    r->op = (il_op){ .type = IL_OP_QUEUE_LIST, .in.list = { .limit = IL_PAGE_ITEMS_MAX } };
    http_do_ops(r, &r->op, 1, 0, queues_asked);
}
