/*
 * office.c: the office thread, the slow ones beside it, and their queues; the contract is in office.h.
 */
#include "http/office.h"

#include <pthread.h>

#include "base/error.h"
#include "base/mutex.h"
#include "http/server.h"

struct http_office {
    struct http_server *server;
    struct il__mutex    mutex; /* of what follows */
    pthread_cond_t      work;
    struct http_job    *first, *last;
    bool                stop;
    unsigned            n_idle; /* threads that wait for a job */
    /* The loop's: */
    unsigned  n_threads, n_max;
    pthread_t threads[HTTP_SLOW_THREADS_MAX];
};

static void
bring_back(struct http_item *item)
{
    struct http_job *job = container_of(item, struct http_job, item);

    job->then(job);
}

static struct http_job *
take(struct http_office *f)
{
    struct http_job *job;

    il__mutex_lock(&f->mutex);
    f->n_idle++;
    while (f->first == NULL && !f->stop)
        (void)il__cond_wait(&f->work, &f->mutex, -1); /* without a limit it returns when woken */
    f->n_idle--;
    job = f->stop ? NULL : f->first;
    if (job != NULL) {
        f->first = job->next;
        if (f->first == NULL)
            f->last = NULL;
    }
    il__mutex_unlock(&f->mutex);
    return job;
}

static void *
office(void *cookie)
{
    struct http_office *f = cookie;
    struct http_job    *job;

    while ((job = take(f)) != NULL) {
        bool back = job->then != NULL; /* without it the job may be gone once it is done */
        job->work(job);
        if (back) {
            job->item.fn = bring_back;
            http_inbox_put(f->server, &job->item);
        }
    }
    return NULL;
}

static bool
add_thread(struct http_office *f)
{
    if (f->n_threads >= f->n_max || pthread_create(&f->threads[f->n_threads], NULL, office, f) != 0)
        return false;
    f->n_threads++;
    return true;
}

/* One of at most n_max threads; the first is started here, so that there is always one. */
static il_status
open_one(struct http_server *s, unsigned n_max, struct http_office **ret, il_error *reterr)
{
    struct http_office *f = il__calloc(1, sizeof *f);

    if (f == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory");
    f->server = s;
    f->n_max  = n_max;
    il__mutex_init(&f->mutex, IL__MUTEX_office);
    il__cond_init(&f->work);
    *ret = f;
    return add_thread(f) ? IL_OK : il__error_set(reterr, IL_NOMEM, "no thread can be started");
}

il_status
http_office_open(struct http_server *s, il_error *reterr)
{
    il_status st = open_one(s, 1, &s->office, reterr);

    return st == IL_OK ? open_one(s, HTTP_SLOW_THREADS_MAX, &s->slow, reterr) : st;
}

static void
send(struct http_office *f, struct http_job *job)
{
    bool all_busy;

    CHECK(job->work != NULL);
    job->next = NULL;
    il__mutex_lock(&f->mutex);
    if (f->first == NULL)
        f->first = job;
    else
        f->last->next = job;
    f->last  = job;
    all_busy = f->n_idle == 0;
    il__mutex_unlock(&f->mutex);
    CHECK(pthread_cond_signal(&f->work) == 0);
    if (all_busy)
        IGNORE(!add_thread(f)); /* then it waits for one of those that are there */
}

void
http_office_send(struct http_server *s, struct http_job *job)
{
    send(s->office, job);
}

void
http_slow_send(struct http_server *s, struct http_job *job)
{
    send(s->slow, job);
}

static void
stop(struct http_office *f)
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
http_office_stop(struct http_server *s)
{
    stop(s->slow);
    stop(s->office);
}

static void
close_one(struct http_office **at)
{
    struct http_office *f = TAKE(*at);

    if (f == NULL)
        return;
    stop(f);
    il__mutex_destroy(&f->mutex);
    (void)pthread_cond_destroy(&f->work); /* nobody waits any more */
    il__free(f);
}

void
http_office_close(struct http_server *s)
{
    close_one(&s->slow);
    close_one(&s->office);
}
