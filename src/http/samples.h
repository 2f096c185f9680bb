/*
 * samples.h: an hour of samples of each tenant, kept in memory for charts (GET /samples). Used on
 * the loop only.
 *
 * A tenant is sampled every HTTP_SAMPLE_MS from its first request until it made none for an hour.
 * A sample has what the server counted since the previous one, and what the store has now: one page
 * of locks and runs, so that its cost does not grow with their number. While the store cannot be
 * reached there are no samples.
 */
#ifndef IL_HTTP_SAMPLES_H
#define IL_HTTP_SAMPLES_H

#include "http/http.h"

#define HTTP_SAMPLE_MS 10000
#define HTTP_SAMPLES_KEPT 360       /* an hour */
#define HTTP_SAMPLED_TENANTS_MAX 20 /* others have no samples */

struct http_sample {
    int64_t  at_ms;       /* wall clock */
    uint64_t locks, runs; /* counted up to 1,000 */
    uint64_t jobs_ready, jobs_running, jobs_failed;
    uint64_t acquires, conflicts, cache_hits, cache_misses, requests; /* since the previous one */
};
struct http_samples_shown {
    int64_t                   interval_ms;
    const struct http_sample *samples;
    size_t                    n;
};
extern const struct wire_object http_out_samples;

il_status http_samples_open(struct http_server *s, il_error *reterr) MUST_USE;
void      http_samples_close(struct http_server *s);
void      http_samples_tick(struct http_server *s, int64_t now_ns);

/* The sample of a tenant that is being filled, to be counted in; never NULL: that of nobody if the
 * tenant has none. */
struct http_sample *http_sample_of(struct http_server *s, const char *tenant);
/* A request of the tenant has arrived. */
void http_samples_request(struct http_server *s, const char *tenant);

#endif
