/* errands.c: the errand thread, the slow threads, and their queues. See errands.h. */
#include "http/errands.h"

#include <pthread.h>

#include "base/error.h"
#include "base/mutex.h"
#include "http/server.h"
#include "runtime/fair.h"

struct http_errands {
    struct http_server *server;
    struct il__mutex    mutex; /* protects what follows */
    pthread_cond_t      work;
    struct il__fair     jobs;
    bool                stop;
    unsigned            n_idle; /* threads that wait for a job */
    /* The loop's: */
    unsigned         n_threads, n_max;
    pthread_t        threads[HTTP_SLOW_THREADS_MAX];
    struct http_job *busy;              /* slow jobs handed to the threads */
    struct http_job *held, **held_last; /* slow jobs whose tenants have used up their shares */
};

static const char *
tenant_of(const struct http_job *job)
{
    return job->tenant != NULL ? job->tenant : "";
}

static struct http_job *
take(struct http_errands *f)
{
    struct http_job *job;

    il__mutex_lock(&f->mutex);
    f->n_idle++;
    while (f->jobs.heap.first == NULL && !f->stop)
        (void)il__cond_wait(&f->work, &f->mutex, -1); /* without a timeout it returns when woken */
    f->n_idle--;
    job = f->stop ? NULL : container_of(f->jobs.heap.first, struct http_job, node);
    if (job != NULL)
        il__fair_take(&f->jobs);
    il__mutex_unlock(&f->mutex);
    return job;
}

static void *
errand_main(void *cookie)
{
    struct http_errands *f = cookie;
    struct http_job     *job;

    while ((job = take(f)) != NULL) {
        bool back = job->then != NULL; /* without `then` the job may be freed once it is done */
        job->work(job);
        if (back)
            http_inbox_put(f->server, &job->item);
    }
    return NULL;
}

static bool
add_thread(struct http_errands *f)
{
    if (f->n_threads >= f->n_max ||
        pthread_create(&f->threads[f->n_threads], NULL, errand_main, f) != 0)
        return false;
    f->n_threads++;
    return true;
}

/* One of at most n_max threads. The first is started here, so that at least one always exists. */
static il_status
open_one(struct http_server *s, unsigned n_max, struct http_errands **ret, il_error *reterr)
{
    struct http_errands *f = il__calloc(1, sizeof *f);

    if (f == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory");
    f->server    = s;
    f->n_max     = n_max;
    f->held_last = &f->held;
    il__mutex_init(&f->mutex, IL__MUTEX_errands);
    il__cond_init(&f->work);
    *ret = f;
    return add_thread(f) ? IL_OK : il__error_set(reterr, IL_NOMEM, "cannot start a thread");
}

il_status
http_errands_open(struct http_server *s, il_error *reterr)
{
    il_status st = open_one(s, 1, &s->errands, reterr);

    return st == IL_OK ? open_one(s, HTTP_SLOW_THREADS_MAX, &s->slow, reterr) : st;
}

static void
send(struct http_errands *f, struct http_job *job)
{
    bool all_busy;

    CHECK(job->work != NULL);
    il__mutex_lock(&f->mutex);
    il__fair_add(&f->jobs, &job->node, il__fair_share(tenant_of(job)), 1);
    all_busy = f->n_idle == 0;
    il__mutex_unlock(&f->mutex);
    CHECK(pthread_cond_signal(&f->work) == 0);
    if (all_busy)
        IGNORE(!add_thread(f)); /* then an existing thread takes the job */
}

static void
bring_back(struct http_item *item)
{
    struct http_job *job = container_of(item, struct http_job, item);

    job->then(job);
}

void
http_errand_send(struct http_server *s, struct http_job *job)
{
    job->item.fn = bring_back;
    send(s->errands, job);
}

/* ---- slow threads ---------------------------------------------------------------------------- */

/* Only the loop tracks the places: it hands a job over, and reclaims the place when the job
 * comes back through the inbox. So two threads never decide about the same place. */
static void bring_back_slow(struct http_item *item);

static bool
start_slow(struct http_errands *f, struct http_job *job)
{
    size_t n_own = 0, n_busy = 0;

    for (const struct http_job *b = f->busy; b != NULL; b = b->next) {
        n_own += strcmp(tenant_of(b), tenant_of(job)) == 0;
        n_busy++;
    }
    if (!il__fair_may_take(n_own, f->n_max - n_busy))
        return false;
    job->next    = f->busy;
    f->busy      = job;
    job->item.fn = bring_back_slow;
    send(f, job);
    return true;
}

static void
bring_back_slow(struct http_item *item)
{
    struct http_job     *job = container_of(item, struct http_job, item);
    struct http_errands *f   = job->errands;

    struct http_job **place = &f->busy;
    while (*place != job)
        place = &(*place)->next;
    *place = job->next;
    for (struct http_job **at = &f->held; *at != NULL;) {
        struct http_job *waits = *at, *next = waits->next;
        if (!start_slow(f, waits)) {
            at = &waits->next;
            continue;
        }
        *at = next;
        if (next == NULL)
            f->held_last = at;
    }
    job->then(job);
}

void
http_errand_send_slow(struct http_server *s, struct http_job *job)
{
    struct http_errands *f = s->slow;

    CHECK(job->then != NULL); /* returns the place */
    job->errands = f;
    job->next    = NULL;
    if (start_slow(f, job))
        return;
    *f->held_last = job;
    f->held_last  = &job->next;
}

static void
stop(struct http_errands *f)
{
    if (f == NULL)
        return;
    il__mutex_lock(&f->mutex);
    f->stop = true;
    il__mutex_unlock(&f->mutex);
    CHECK(pthread_cond_broadcast(&f->work) == 0);
    while (f->n_threads > 0)
        CHECK(pthread_join(f->threads[--f->n_threads], NULL) == 0);
}

void
http_errands_stop(struct http_server *s)
{
    stop(s->slow);
    stop(s->errands);
}

static void
close_one(struct http_errands **at)
{
    struct http_errands *f = TAKE(*at);

    if (f == NULL)
        return;
    stop(f);
    il__mutex_destroy(&f->mutex);
    (void)pthread_cond_destroy(&f->work); /* no one is waiting any more */
    il__free(f);
}

void
http_errands_close(struct http_server *s)
{
    close_one(&s->slow);
    close_one(&s->errands);
}

/* ---- errands of a request -------------------------------------------------------------------- */

static void
errand_work(struct http_job *job)
{
    struct http_request *r = container_of(job, struct http_request, job);

    r->work(r);
}

static void
errand_then(struct http_job *job)
{
    struct http_request *r = container_of(job, struct http_request, job);

    r->in_errand = false;
    if (!http_request_cut_off(r))
        r->errand_then(r);
}

static void
set_up_errand(struct http_request *r, http_fn *work, http_fn *then)
{
    CHECK(!r->in_errand && !r->parked);
    r->in_errand   = true;
    r->work        = work;
    r->errand_then = then;
    r->job         = (struct http_job){
                .work   = errand_work,
                .then   = errand_then,
                .tenant = r->caller != NULL ? r->caller->tenant : NULL,
    };
}

void
http_errand(struct http_request *r, http_fn *work, http_fn *then)
{
    set_up_errand(r, work, then);
    http_errand_send(r->server, &r->job);
}

void
http_errand_slow(struct http_request *r, http_fn *work, http_fn *then)
{
    set_up_errand(r, work, then);
    http_errand_send_slow(r->server, &r->job);
}

void
http_errand_hold(struct http_request *r, http_fn *then)
{
    set_up_errand(r, NULL, then);
}

void
http_errand_resume(struct http_request *r)
{
    errand_then(&r->job);
}
