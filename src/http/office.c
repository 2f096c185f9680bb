/*
 * office.c: the office thread and its queue; the contract is in office.h.
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
    pthread_t           thread;
    bool                running;
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
    while (f->first == NULL && !f->stop)
        (void)il__cond_wait(&f->work, &f->mutex, -1); /* without a limit it returns when woken */
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

il_status
http_office_open(struct http_server *s, il_error *reterr)
{
    struct http_office *f = il__calloc(1, sizeof *f);

    if (f == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory");
    f->server = s;
    il__mutex_init(&f->mutex, IL__MUTEX_office);
    il__cond_init(&f->work);
    s->office = f;
    if (pthread_create(&f->thread, NULL, office, f) != 0)
        return il__error_set(reterr, IL_NOMEM, "no thread can be started");
    f->running = true;
    return IL_OK;
}

void
http_office_send(struct http_server *s, struct http_job *job)
{
    struct http_office *f = s->office;
    bool                first;

    CHECK(job->work != NULL);
    job->next = NULL;
    il__mutex_lock(&f->mutex);
    first = f->first == NULL;
    if (first)
        f->first = job;
    else
        f->last->next = job;
    f->last = job;
    il__mutex_unlock(&f->mutex);
    if (first)
        CHECK(pthread_cond_signal(&f->work) == 0);
}

void
http_office_stop(struct http_server *s)
{
    struct http_office *f = s->office;

    if (f == NULL || !f->running)
        return;
    il__mutex_lock(&f->mutex);
    f->stop = true;
    il__mutex_unlock(&f->mutex);
    CHECK(pthread_cond_signal(&f->work) == 0);
    CHECK(pthread_join(f->thread, NULL) == 0);
    f->running = false;
}

void
http_office_close(struct http_server *s)
{
    struct http_office *f = s->office;

    if (f == NULL)
        return;
    http_office_stop(s);
    il__mutex_destroy(&f->mutex);
    (void)pthread_cond_destroy(&f->work); /* nobody waits any more */
    il__free(f);
    s->office = NULL;
}
