/* delay.c: delayed requests: they wait for a point in time, and for nothing else. */
#include "base/clock.h"
#include "http/limits.h"
#include "http/server.h"

static void
end_delay(struct http_request *r)
{
    int64_t ns = il__clock_boot_ns() - r->delay_began_ns;

    il__heap_remove(&r->server->delayed, &r->delay);
    r->delayed = false;
    r->waited_ns += ns;
    r->delayed_ns += ns;
    http_limits_end(r);
}

void
http_delay(struct http_request *r, int64_t ms, http_fn *then)
{
    CHECK(!r->in_call && !r->in_errand && !r->answered && !r->delayed);
    if (http_request_is_cut_off(r) || !http_limits_wait(r))
        return;
    r->delayed        = true;
    r->delay_then     = then;
    r->delay_began_ns = il__clock_boot_ns();
    r->delay          = (struct il__heap_node){ .at = r->delay_began_ns + ms * IL__NS_PER_MS };
    il__heap_add(&r->server->delayed, &r->delay);
    if (r->c->hung_up)
        http_request_abandon(r);
}

void
http_delayed_drop(struct http_request *r)
{
    if (!r->delayed)
        return;
    end_delay(r);
    if (!http_request_is_cut_off(r))
        http_fail(r, il_status_http(IL_CANCELLED), il_status_name(IL_CANCELLED), "request", NULL,
                  "the client disconnected");
}

int64_t
http_delayed_tick(struct http_server *s)
{
    int64_t now_ns = s->stopping ? INT64_MAX : s->now_ns;

    while (il__heap_due(&s->delayed, now_ns)) {
        struct http_request *r = container_of(s->delayed.first, struct http_request, delay);
        end_delay(r);
        r->delay_then(r);
    }
    return s->delayed.first != NULL ? s->delayed.first->at : INT64_MAX;
}
