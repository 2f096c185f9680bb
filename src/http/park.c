/* park.c: parked requests, which wait only for a time to come. */
#include "base/clock.h"
#include "http/limits.h"
#include "http/server.h"

static void
unpark(struct http_request *r)
{
    int64_t ns = il__clock_boot_ns() - r->park_began_ns;

    il__heap_remove(&r->server->parked, &r->park);
    r->parked = false;
    r->waited_ns += ns;
    r->parked_ns += ns;
    http_limits_end(r);
}

void
http_park(struct http_request *r, int64_t ms, http_fn *then)
{
    CHECK(!r->in_call && !r->in_errand && !r->answered && !r->parked);
    if (http_request_cut_off(r) || !http_limits_wait(r))
        return;
    r->parked        = true;
    r->park_then     = then;
    r->park_began_ns = il__clock_boot_ns();
    r->park          = (struct il__heap_node){ .at = r->park_began_ns + ms * IL__NS_PER_MS };
    il__heap_add(&r->server->parked, &r->park);
    if (r->c->hung_up)
        http_request_abandon(r);
}

void
http_parked_drop(struct http_request *r)
{
    if (!r->parked)
        return;
    unpark(r);
    if (!http_request_cut_off(r))
        http_fail(r, il_status_http(IL_CANCELLED), il_status_name(IL_CANCELLED), "request", NULL,
                  "the client disconnected");
}

int64_t
http_parked_tick(struct http_server *s)
{
    int64_t now_ns = s->stopping ? INT64_MAX : s->now_ns;

    while (il__heap_due(&s->parked, now_ns)) {
        struct http_request *r = container_of(s->parked.first, struct http_request, park);
        unpark(r);
        r->park_then(r);
    }
    return s->parked.first != NULL ? s->parked.first->at : INT64_MAX;
}
