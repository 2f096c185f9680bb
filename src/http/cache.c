/*
 * cache.c: the cache with single flight: look up, build, fill; drop; statistics.
 *
 * 200 {hit: true}: a value. 202 {lead: true, token, holder}: the caller builds the value. 202
 * {wait: true, token}: another caller is building it and this caller's wait has timed out; it may
 * call again with this token.
 */
#include "http/handler.h"

static void
looked_up(struct http_request *r)
{
    const il_op     *op  = r->ops;
    const il_op_out *out = &op->out;
    bool             hit = op->status == IL_HIT || op->status == IL_STALE_HIT;
    bool             led = op->status == IL_LEAD;

    if (!hit && !led && op->status != IL_WAIT) {
        http_fail_op(r, op, NULL);
        return;
    }
    struct http_cached c = {
        .key          = op->key,
        .holder       = led ? op->holder : "",
        .token        = hit ? 0 : out->fence,
        .value        = out->value,
        .value_bytes  = out->value_bytes,
        .code         = out->code,
        .age_ms       = out->age_ms,
        .remaining_ms = out->remaining_ms,
        .is = (hit ? HTTP_IS_TRUE : 0U) | (op->status == IL_STALE_HIT ? HTTP_IS_STALE : 0U) |
              (led ? HTTP_IS_LEAD : 0U) | (op->status == IL_WAIT ? HTTP_IS_WAIT : 0U) |
              ((out->flags & IL_OUT_NEGATIVE) != 0 ? HTTP_IS_NEGATIVE : 0U) |
              ((out->flags & IL_OUT_EARLY) != 0 ? HTTP_IS_EARLY : 0U),
    };
    http_say(r, il_status_http(op->status), &http_out_cached, &c);
}

void
http_cache_lookup(struct http_request *r)
{
    http_do(r, looked_up);
}

void
http_cache_get(struct http_request *r)
{
    http_do(r, looked_up);
}

void
http_cache_done(struct http_request *r)
{
    struct http_cached c = { .key = r->ops->key, .is = HTTP_IS_TRUE };

    http_say(r, 200, &http_out_filled, &c);
}

void
http_cache_counted(struct http_request *r)
{
    struct http_counted c = { .cache = r->ops->out.cache, .next = r->ops->out.next };

    http_say(r, 200, &http_out_counted, &c);
}
