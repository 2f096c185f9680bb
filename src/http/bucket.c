/* bucket.c: token buckets. See bucket.h. */
#include "http/bucket.h"

#include "base/clock.h"
#include "http/limits.h"
#include "http/metrics.h"
#include "http/route.h"

int64_t
http_bucket_look(int64_t full_ns, int64_t now_ns, int64_t span_ns, int64_t rate, int64_t burst,
                 int64_t *ret_full_ns)
{
    int64_t interval_ns = MAX(span_ns / rate, 1);

    burst        = MIN(burst, INT64_MAX / 2 / interval_ns);
    *ret_full_ns = MAX(full_ns, now_ns) + interval_ns;
    return *ret_full_ns - now_ns - burst * interval_ns;
}

/* The caller's row of a bucket; the number of different buckets is checked at start-up. */
static int64_t *
full_of(struct http_buckets *all, const struct http_bucket *kind)
{
    size_t i = 0;

    while (all->rows[i].kind != NULL && all->rows[i].kind != kind) {
        i++;
        CHECK(i < HTTP_BUCKETS_MAX);
    }
    all->rows[i].kind = kind;
    return &all->rows[i].full_ns;
}

static void
refuse(struct http_request *r, const struct http_bucket *b, int64_t wait_ns)
{
    AUTO_BUF struct il__buf details;
    int64_t                 wait_ms = (wait_ns + IL__NS_PER_MS - 1) / IL__NS_PER_MS;

    http_count(r->server, HTTP_COUNT_rate_limited, 1);
    il__buf_init(&details, 256);
    il__buf_addf(&details, "{\"quota\":\"%s\",\"limit\":%lld,\"retry_after_ms\":%lld}", b->name,
                 (long long)b->tokens, (long long)wait_ms);
    http_retry_after(r, wait_ms);
    http_fail(r, 429, "RATE_LIMITED", "request", il__buf_str(&details),
              "the tenant exceeded its limit for %s: %lld per %lld s", b->name,
              (long long)b->tokens, (long long)(b->period_ms / 1000));
}

bool
http_bucket_take(struct http_request *r)
{
    const struct http_bucket *b       = r->route->bucket;
    int64_t                  *full_ns = full_of(http_tenant_buckets(r->caller->limits), b);
    int64_t                   after_ns;
    int64_t wait_ns = http_bucket_look(*full_ns, il__clock_boot_ns(), b->period_ms * IL__NS_PER_MS,
                                       b->tokens, b->burst > 0 ? b->burst : b->tokens, &after_ns);

    if (wait_ns > 0) {
        refuse(r, b, wait_ns);
        return false;
    }
    *full_ns      = after_ns;
    r->took_token = true;
    return true;
}

void
http_bucket_refund(struct http_request *r)
{
    const struct http_bucket *b = r->route->bucket;

    if (!r->took_token)
        return;
    r->took_token = false;
    *full_of(http_tenant_buckets(r->caller->limits), b) -=
        MAX(b->period_ms * IL__NS_PER_MS / b->tokens, 1);
}

bool
http_buckets_full(const struct http_buckets *all, int64_t now_ns)
{
    for (size_t i = 0; i < HTTP_BUCKETS_MAX && all->rows[i].kind != NULL; i++) {
        if (all->rows[i].full_ns > now_ns)
            return false;
    }
    return true;
}
