/*
 * metrics.c: the server's own counters. See metrics.h; metrics_internal.h lists the related files.
 */
#include "http/metrics.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "http/metrics_internal.h"
#include "http/route.h"
#include "http/samples.h"
#include "http/server.h"

const double http_took_bounds[HTTP_BOUNDS] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                               0.1,    0.25,  0.5,    1,     2.5,  5,     10 };
const double http_lock_bounds[HTTP_BOUNDS] = { 0.001, 0.005, 0.025, 0.1, 0.5, 1,    2.5,
                                               5,     10,    30,    60,  300, 1800, 7200 };

il_status
http_metrics_open(struct http_server *s, il_error *reterr)
{
    static char          other[] = "other";
    struct http_metrics *m       = il__calloc(1, sizeof *m);

    if (m != NULL)
        m->routes = il__calloc(http_n_routes + 1, sizeof *m->routes);
    if (m == NULL || m->routes == NULL) {
        il__free(m);
        return il__error_nomem(reterr);
    }
    s->metrics       = m;
    m->server        = s;
    m->started_ms    = il__clock_wall_ms();
    m->other.tenant  = other;
    m->other.name    = other;
    m->seen.store_up = m->seen.data_up = true; /* assume up, since it was opened */
    return http_app_metrics_open(m, reterr);
}

void
http_metrics_close(struct http_server *s)
{
    struct http_metrics *m = s->metrics;

    if (m == NULL)
        return;
    http_gather_close(m);
    http_app_metrics_close(m);
    for (size_t i = 0; i < m->pipelines.size; i++)
        il__free(m->pipelines.slots[i].item);
    il__map_release(&m->pipelines);
    il__free(m->routes);
    il__free(m);
    s->metrics = NULL;
}

void
http_count(struct http_server *s, enum http_counter counter, int64_t n)
{
    if (s->metrics != NULL)
        s->metrics->counts[counter] += n;
}

/* ---- requests -------------------------------------------------------------------------------- */

void
http_metrics_request(struct http_request *r)
{
    struct http_metrics     *m     = r->server->metrics;
    size_t                   i     = r->route != NULL ? http_route_index(r->route) : http_n_routes;
    struct http_route_stats *stats = &m->routes[i];
    int class                      = r->status / 100;

    stats->classes[class >= 1 && class <= 5 ? class : 0]++;
    m->counts[HTTP_COUNT_bytes_in] += (int64_t)r->n_bytes;
    m->counts[HTTP_COUNT_bytes_out] += (int64_t)r->bytes_out;
    /* Time spent in ?wait or in a stream says nothing about the server's speed. */
    if (!r->streams)
        http_histogram_add(&stats->took, http_took_bounds,
                           (double)MAX(il__clock_boot_ns() - r->began_ns - r->waited_ns, 0) / 1e9);
}

/* ---- pipelines ------------------------------------------------------------------------------- */

const char *
http_pipeline_name(const char *key)
{
    static const char prefix[] = "pipeline:";

    return key != NULL && strncmp(key, prefix, sizeof prefix - 1) == 0 ? key + sizeof prefix - 1
                                                                       : NULL;
}

static struct http_pipeline *
add_pipeline(struct http_metrics *m, const char *tenant, const char *name, uint64_t hash)
{
    size_t n_tenant = strlen(tenant) + 1, n_name = strlen(name) + 1;

    struct http_pipeline *p =
        m->pipelines.n < HTTP_PIPELINES_MAX ? il__calloc(1, sizeof *p + n_tenant + n_name) : NULL;
    if (p == NULL || !il__map_reserve(&m->pipelines)) {
        il__free(p);
        m->other_used = true;
        return &m->other;
    }
    char *at  = (char *)(p + 1);
    p->tenant = il__put(&at, tenant, n_tenant);
    p->name   = il__put(&at, name, n_name);
    il__map_add(&m->pipelines, hash, p);
    return p;
}

struct http_pipeline *
http_pipeline_of(struct http_metrics *m, const char *tenant, const char *key)
{
    const char           *name = http_pipeline_name(key);
    struct http_pipeline *p;

    if (name == NULL)
        return NULL;
    uint64_t hash =
        il__hash_mix(il__hash_bytes(tenant, strlen(tenant)), il__hash_bytes(name, strlen(name)));
    size_t i = il__map_start(&m->pipelines, hash);
    while ((p = il__map_next(&m->pipelines, hash, &i)) != NULL &&
           (strcmp(p->name, name) != 0 || strcmp(p->tenant, tenant) != 0))
        i++;
    if (p != NULL)
        return p;
    enum http_known known =
        m->known != NULL ? m->known(m->known_cookie, tenant, name, NULL) : HTTP_KNOWN;
    if (known == HTTP_KNOWN)
        return add_pipeline(m, tenant, name, hash);
    m->other_used = m->other_used || known == HTTP_KNOWN_NOT;
    return known == HTTP_KNOWN_NOT ? &m->other : NULL;
}

void
http_metrics_pipelines(struct http_server *s, http_known_fn *fn, void *cookie)
{
    s->metrics->known        = fn;
    s->metrics->known_cookie = cookie;
}

void
http_metrics_lock_attempt(struct http_metrics *m, const char *tenant, const char *key,
                          enum http_result result, double wait)
{
    struct http_pipeline *p = http_pipeline_of(m, tenant, key);

    m->acquisitions[result]++;
    if (result == HTTP_RESULT_success)
        http_sample_of(m->server, tenant)->acquires++;
    else if (result == HTTP_RESULT_conflict)
        http_sample_of(m->server, tenant)->conflicts++;
    http_histogram_add(&m->wait, http_lock_bounds, wait);
    if (p == NULL)
        return;
    p->acquisitions[result]++;
    http_histogram_add(&p->wait, http_lock_bounds, wait);
}

void
http_metrics_lock(struct http_server *s, enum http_lock_seen what, const char *tenant,
                  const char *key, int64_t wait_ms, int64_t hold_ms)
{
    struct http_metrics *m = s->metrics;

    if (m == NULL)
        return;
    if (what <= HTTP_LOCK_FAILED) {
        static const enum http_result results[] = { HTTP_RESULT_success, HTTP_RESULT_conflict,
                                                    HTTP_RESULT_error };
        http_metrics_lock_attempt(m, tenant, key, results[what], (double)MAX(wait_ms, 0) / 1e3);
        return;
    }
    struct http_pipeline *p = http_pipeline_of(m, tenant, key);
    if (p != NULL)
        p->expirations += what == HTTP_LOCK_EXPIRED;
    if (hold_ms < 0)
        return;
    http_histogram_add(&m->hold, http_lock_bounds, (double)hold_ms / 1e3);
    if (p != NULL)
        http_histogram_add(&p->hold, http_lock_bounds, (double)hold_ms / 1e3);
}
