/*
 * bucket.h: token buckets: the rate of a tenant's requests, and the rates of single routes of apps.
 * Per tenant and per server. Used on the loop only.
 *
 * A bucket is one number: the time at which it would be full again (the "theoretical arrival time"
 * of GCRA).
 */
#ifndef IL_HTTP_BUCKET_H
#define IL_HTTP_BUCKET_H

#include "http/http.h"

/* A rate that a route names (http_route.bucket); routes that name the same one share it. */
struct http_bucket {
    const char *name; /* details.quota of the refusal */
    int64_t     tokens, period_ms;
    int64_t     burst; /* that may be taken at once; 0 = tokens */
};

#define HTTP_BUCKETS_MAX 16 /* of all apps together */

/* The buckets of one tenant; zeroed at first. */
struct http_buckets {
    struct {
        const struct http_bucket *kind;
        int64_t                   full_ns;
    } rows[HTTP_BUCKETS_MAX];
};

/*
 * The state of a bucket after taking one more, with `rate` per `span_ns` and a burst of `burst`.
 * Returns the wait until then in ns; 0 or less: it may be taken now.
 */
int64_t http_bucket_look(int64_t full_ns, int64_t now_ns, int64_t span_ns, int64_t rate,
                         int64_t burst, int64_t *ret_full_ns);

/* Take a token of the bucket of r->route. False: answered with 429 RATE_LIMITED. */
bool http_bucket_take(struct http_request *r) MUST_USE;
/* Do all buckets hold what they can? Then they may be forgotten. */
bool http_buckets_full(const struct http_buckets *all, int64_t now_ns);

#endif
