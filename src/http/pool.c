/* pool.c: the pool: shares of tenants, the queue, deadlines, cancelling. See pool.h. */
#include "http/pool.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "http/errands.h"
#include "http/list_stream.h"
#include "http/metrics.h"
#include "http/server.h"
#include "http/threads.h"
#include "runtime/fair.h"

/* What a tenant uses of the pool; exists while that is not nothing. */
struct http_pool_share {
    struct http_pool_share *next;
    size_t                  n_busy, n_waiting;
    size_t                  n_places;                        /* of those that wait: requests */
    char                    tenant[IL_TENANT_BYTES_MAX + 1]; /* "" = the server itself */
};

struct http_pool {
    struct http_threads    *threads;
    struct http_pool_share *shares;
    struct http_pool_share  unnamed; /* for a tenant without memory for a share of its own */
    struct http_job        *busy;
    struct http_job        *waiting, **waiting_last; /* in order of arrival */
    size_t                  n_busy, n_waiting;
    size_t n_places; /* requests that wait; jobs without a deadline take no place */
    bool   stopped;
    /* Held while http_on_disconnect() changes whom to call, and while it is called. */
    struct il__mutex mutex;
};

il_status
http_pool_open(struct http_server *s, il_error *reterr)
{
    struct http_pool *p = il__calloc(1, sizeof *p);

    if (p == NULL)
        return il__error_nomem(reterr);
    p->waiting_last = &p->waiting;
    il__mutex_init(&p->mutex, IL__MUTEX_pool);
    s->pool = p;
    return http_threads_open(s, HTTP_POOL_THREADS_MAX, &p->threads, reterr);
}

size_t
http_pool_busy(const struct http_server *s)
{
    return s->pool->n_busy;
}

size_t
http_pool_waiting(const struct http_server *s)
{
    return s->pool->n_waiting;
}

/* ---- shares ---------------------------------------------------------------------------------- */

static struct http_pool_share *
share_of(struct http_pool *p, const char *tenant)
{
    struct http_pool_share *share = p->shares;

    while (share != NULL && strcmp(share->tenant, tenant) != 0)
        share = share->next;
    if (share != NULL)
        return share;
    share = il__calloc(1, sizeof *share);
    if (share == NULL)
        return &p->unnamed;
    (void)snprintf(share->tenant, sizeof share->tenant, "%s", tenant); /* checked names: it fits */
    share->next = p->shares;
    p->shares   = share;
    return share;
}

static void
tidy_share(struct http_pool *p, struct http_pool_share *share)
{
    struct http_pool_share **at = &p->shares;

    if (share->n_busy > 0 || share->n_waiting > 0 || share == &p->unnamed)
        return;
    while (*at != share)
        at = &(*at)->next;
    *at = share->next;
    il__free(share);
}

/* ---- the queue ------------------------------------------------------------------------------- */

static bool
may_start(const struct http_pool *p, const struct http_pool_share *share)
{
    return il__fair_may_take(share->n_busy, HTTP_POOL_THREADS_MAX - p->n_busy);
}

static void bring_back(struct http_item *item);

static void
start(struct http_server *s, struct http_job *job)
{
    struct http_pool *p = s->pool;

    job->share->n_busy++;
    p->n_busy++;
    job->next    = p->busy;
    p->busy      = job;
    job->item.fn = bring_back;
    http_threads_give(p->threads, job);
}

static void
wait(struct http_server *s, struct http_job *job)
{
    struct http_pool *p = s->pool;

    job->share->n_waiting++;
    p->n_waiting++;
    job->share->n_places += job->until_ns != 0;
    p->n_places += job->until_ns != 0;
    job->next        = NULL;
    *p->waiting_last = job;
    p->waiting_last  = &job->next;
}

static void
leave_queue(struct http_pool *p, struct http_job *job)
{
    struct http_job **at = &p->waiting;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    if (job->next == NULL)
        p->waiting_last = at;
    job->share->n_waiting--;
    p->n_waiting--;
    job->share->n_places -= job->until_ns != 0;
    p->n_places -= job->until_ns != 0;
}

/* Of the tenants that may have one more thread, the one that uses the fewest; of its jobs, the
 * oldest. NULL: none. */
static struct http_job *
choose(const struct http_pool *p)
{
    struct http_job *best = NULL;

    for (struct http_job *job = p->waiting; job != NULL; job = job->next) {
        if (may_start(p, job->share) && (best == NULL || job->share->n_busy < best->share->n_busy))
            best = job;
    }
    return best;
}

/* Answer a waiting request instead of running it. */
static void
refuse_waiting(struct http_server *s, struct http_job *job)
{
    struct http_request *r = container_of(job, struct http_request, job);

    leave_queue(s->pool, job);
    tidy_share(s->pool, job->share);
    r->in_errand = false;
    r->pooled    = false;
    if (http_request_is_cut_off(r))
        return;
    if (r->hung_up) {
        http_fail(r, il_status_http(IL_CANCELLED), il_status_name(IL_CANCELLED), "request", NULL,
                  "the client disconnected");
        return;
    }
    http_count(s, HTTP_COUNT_pool_expired, 1);
    http_retry_after(r, 1000);
    http_fail(r, 503, "SERVER_BUSY", "request", "{\"retry_after_ms\":1000}",
              "timed out waiting for a thread; nothing was done; try again");
}

static void
expire_waiting(struct http_server *s, int64_t now_ns)
{
    struct http_job *next;

    for (struct http_job *job = s->pool->waiting; job != NULL; job = next) {
        next = job->next;
        if (job->until_ns != 0 && job->until_ns <= now_ns)
            refuse_waiting(s, job);
    }
}

static void
start_waiting(struct http_server *s)
{
    struct http_job *job;

    if (s->pool->n_waiting == 0 || s->pool->stopped)
        return;
    expire_waiting(s, il__clock_boot_ns());
    while ((job = choose(s->pool)) != NULL) {
        leave_queue(s->pool, job);
        start(s, job);
    }
}

static void
bring_back(struct http_item *item)
{
    struct http_job    *job   = container_of(item, struct http_job, item);
    struct http_server *s     = job->server;
    struct http_pool   *p     = s->pool;
    struct http_job   **place = &p->busy;

    while (*place != job)
        place = &(*place)->next;
    *place = job->next;
    job->share->n_busy--;
    p->n_busy--;
    tidy_share(p, job->share);
    start_waiting(s);
    job->then(job);
}

void
http_pool_tick(struct http_server *s)
{
    expire_waiting(s, s->now_ns);
}

void
http_pool_send(struct http_server *s, struct http_job *job)
{
    CHECK(job->then != NULL); /* returns the thread */
    job->server = s;
    job->share  = share_of(s->pool, http_job_tenant(job));
    if (may_start(s->pool, job->share))
        start(s, job);
    else
        wait(s, job);
}

/* ---- requests -------------------------------------------------------------------------------- */

int64_t
http_request_deadline_ns(const struct http_request *r)
{
    int64_t cut_ns = atomic_load(&r->cut_ns);

    return cut_ns != 0 ? cut_ns : r->began_ns + r->server->o->request_ms * IL__NS_PER_MS;
}

int64_t
http_request_left_ms(const struct http_request *r)
{
    int64_t left_ns = http_request_deadline_ns(r) - il__clock_boot_ns();

    return MAX(left_ns / IL__NS_PER_MS, 1);
}

void
http_pool(struct http_request *r, http_fn *work, http_fn *then)
{
    struct http_server *s      = r->server;
    struct http_pool   *p      = s->pool;
    size_t              n_free = HTTP_POOL_WAITING_MAX - MIN(p->n_places, HTTP_POOL_WAITING_MAX);

    if (http_request_is_cut_off(r))
        return;
    struct http_pool_share *share = share_of(p, r->caller != NULL ? r->caller->tenant : "");
    if (!may_start(p, share) && !il__fair_may_take(share->n_places, n_free)) {
        tidy_share(p, share);
        http_count(s, HTTP_COUNT_pool_refused, 1);
        http_retry_after(r, 1000);
        http_fail(r, 503, "SERVER_BUSY", "request", "{\"retry_after_ms\":1000}",
                  "too many requests of this tenant are waiting for a thread; try again later");
        return;
    }
    http_errand_set_up(r, work, then);
    r->pooled        = true;
    int64_t until_ns = http_request_deadline_ns(r);
    if (s->stopping)
        until_ns = MIN(until_ns, s->stop_by_ns);
    atomic_store(&r->cut_ns, until_ns);
    r->job.until_ns = until_ns;
    http_pool_send(s, &r->job);
    if (r->c->hung_up)
        http_request_abandon(r);
}

/* The mutex orders this with http_on_disconnect(): a function that is registered before the client
 * has gone is called by the loop, a later one at once; and none is called after it was replaced. */
static void
cancel(struct http_request *r)
{
    atomic_store(&r->cut_ns, il__clock_boot_ns());
    if (r->list != NULL)
        http_list_client_left(r);
    il__mutex_lock(&r->server->pool->mutex);
    r->cancelled = true;
    if (r->disconnect_fn != NULL)
        r->disconnect_fn(r->disconnect_cookie);
    il__mutex_unlock(&r->server->pool->mutex);
}

void
http_on_disconnect(struct http_request *r, void (*fn)(void *cookie), void *cookie)
{
    il__mutex_lock(&r->server->pool->mutex);
    r->disconnect_fn     = fn;
    r->disconnect_cookie = cookie;
    if (r->cancelled && fn != NULL)
        fn(cookie);
    il__mutex_unlock(&r->server->pool->mutex);
}

static bool
is_waiting(const struct http_pool *p, const struct http_job *job)
{
    const struct http_job *w = p->waiting;

    while (w != NULL && w != job)
        w = w->next;
    return w != NULL;
}

void
http_pool_client_left(struct http_request *r)
{
    if (!r->pooled)
        return;
    if (is_waiting(r->server->pool, &r->job))
        refuse_waiting(r->server, &r->job);
    else
        cancel(r);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Only jobs of http_pool() have a deadline. */
static void
cut(struct http_job *job, int64_t by_ns)
{
    struct http_request *r = container_of(job, struct http_request, job);

    if (job->until_ns == 0 || http_request_deadline_ns(r) <= by_ns)
        return;
    job->until_ns = by_ns;
    atomic_store(&r->cut_ns, by_ns);
}

void
http_pool_hurry(struct http_server *s, int64_t by_ns)
{
    for (struct http_job *job = s->pool->busy; job != NULL; job = job->next)
        cut(job, by_ns);
    for (struct http_job *job = s->pool->waiting; job != NULL; job = job->next)
        cut(job, by_ns);
}

void
http_pool_stop(struct http_server *s)
{
    if (s->pool == NULL)
        return;
    for (struct http_job *job = s->pool->busy; job != NULL; job = job->next) {
        if (job->until_ns != 0)
            cancel(container_of(job, struct http_request, job));
    }
    s->pool->stopped = true;
    http_threads_stop(s->pool->threads);
}

void
http_pool_close(struct http_server *s)
{
    struct http_pool *p = TAKE(s->pool);

    if (p == NULL)
        return;
    http_threads_close(p->threads);
    while (p->shares != NULL) {
        struct http_pool_share *share = p->shares;
        p->shares                     = share->next;
        il__free(share);
    }
    il__mutex_destroy(&p->mutex);
    il__free(p);
}
