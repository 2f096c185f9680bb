/*
 * routes_rebuild.c: POST /rebuild-cache, which starts a run.
 *
 * A tenant may start one in five minutes, whichever server it asks. A cached value of the store
 * counts that: whoever is elected to build it starts the run and fills it with its id; until it
 * expires, everybody else is refused. If the run does not start, the election is given up, and the
 * next caller is elected. Clients cannot name its key (http_app.keys).
 */
#include <stdio.h>

#include "apps/usage/serve.h"
#include "base/error.h"
#include "http/audit.h"
#include "http/server.h"

#define LIMIT_LEASE_MS 10000 /* a server that dies between the two ops holds it up this long */

struct starting {
    struct usage_rebuild what;
    const char          *id;
    uint64_t             token;
    il_op                start, limit; /* the run; the value that limits */
};

static void
end_start(struct http_request *r)
{
    struct starting *w = r->ended_cookie;

    il_op_release(&w->start);
    il_op_release(&w->limit);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void
say_started(struct http_request *r)
{
    const struct starting *w = r->ended_cookie;

    http_say(r, 202, &usage_out_run, &(struct usage_run_out){ w->id, "PENDING" });
}

static void
say_limited(struct http_request *r, int64_t retry_ms)
{
    char details[128];

    (void)snprintf(details, sizeof details,
                   "{\"quota\":\"usage rebuilds\",\"limit\":1,\"retry_after_ms\":%lld}",
                   (long long)retry_ms);
    http_retry_after(r, retry_ms);
    http_fail(r, 429, "RATE_LIMITED", usage_http_app.name, details,
              "usage rebuilds are limited to 1 per %d s per tenant", USAGE_REBUILD_MS / 1000);
}

static void
say_running(struct http_request *r)
{
    const struct starting *w = r->ended_cookie;
    char                   details[IL_ID_BYTES_MAX + 32];

    (void)snprintf(details, sizeof details, "{\"run_id\":\"%s\"}", w->start.out.runs[0].id);
    http_fail(r, 409, "USAGE_REBUILD_RUNNING", usage_http_app.name, details,
              "a rebuild of this tenant is running");
}

static void
say_start(struct http_request *r)
{
    const struct starting *w = r->ended_cookie;

    if (w->start.status == IL_OK)
        say_started(r);
    else if (w->start.status == IL_HELD && w->start.out.n_runs > 0)
        say_running(r);
    else
        http_fail_op(r, &w->start, usage_http_app.name);
}

/* ---- the three ops --------------------------------------------------------------------------- */

/* The limit is filled, or given up; the run is what counts. */
static void
limited(struct http_request *r)
{
    const struct starting *w = r->ended_cookie;

    http_audit(r,
               &(struct http_action){ .action  = "usage.rebuild",
                                      .what    = w->id,
                                      .outcome = il_status_name(w->start.status) },
               say_start);
}

static void
started(struct http_request *r)
{
    struct starting *w  = r->ended_cookie;
    bool             ok = w->start.status == IL_OK;

    if (ok)
        work_slot_created(usage_app_of(r)->work, r->caller->tenant, w->id, USAGE_REBUILD);
    il_op_release(&w->limit);
    w->limit = (il_op){ .type   = ok ? IL_OP_CACHE_FILL : IL_OP_CACHE_ABANDON,
                        .key    = USAGE_LIMIT_KEY,
                        .holder = w->id,
                        .fence  = w->token };
    if (ok) {
        w->limit.in.cache.value       = w->id;
        w->limit.in.cache.value_bytes = strlen(w->id);
        w->limit.in.cache.ttl_ms      = USAGE_REBUILD_MS;
#ifdef IL_MUTANT_usage_rebuilds_unlimited
        w->limit.in.cache.ttl_ms = 1;
#endif
    }
    http_do_ops(r, &w->limit, 1, 0, limited);
}

static void
looked(struct http_request *r)
{
    struct starting *w   = r->ended_cookie;
    il_error         err = { .message = "" };

    if (w->limit.status != IL_LEAD) { /* started before, or just now by another caller */
        say_limited(r, w->limit.status == IL_HIT ? w->limit.out.remaining_ms : USAGE_REBUILD_MS);
        return;
    }
    w->token = w->limit.out.fence;
    if (usage_rebuild_op(r->caller->tenant, w->id, r->caller->key_id, &w->what, &r->mem, &w->start,
                         &err) != IL_OK)
        http_fail_nomem(r);
    else
        http_do_ops(r, &w->start, 1, 0, started);
}

void
usage_http_rebuild(struct http_request *r)
{
    struct usage_range_body in = { .start = NULL };

    if (!usage_require_served(r) || !http_take_body(r, &in))
        return;
    struct starting *w = http_calloc(r, sizeof *w);
    if (w == NULL)
        return;
    *w              = (struct starting){ .what = { .force = in.force != 0 } };
    r->ended        = end_start;
    r->ended_cookie = w;
    if (!usage_take_range(r, in.start, in.end, &w->what.from, &w->what.to))
        return;
    w->id = http_new_id(r, 0);
    if (w->id == NULL)
        return;
    w->limit = (il_op){ .type = IL_OP_CACHE_LOOKUP, .key = USAGE_LIMIT_KEY, .holder = w->id };
    w->limit.in.cache.lease_ms = LIMIT_LEASE_MS;
    http_do_ops(r, &w->limit, 1, 0, looked);
}
