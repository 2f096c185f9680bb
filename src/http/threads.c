/* threads.c: a group of threads and its queue. See threads.h. */
#include "http/threads.h"

#include <pthread.h>

#include "base/error.h"
#include "base/mutex.h"
#include "http/server.h"
#include "runtime/fair.h"

struct http_threads {
    struct http_server *server;
    struct il__mutex    mutex; /* protects what follows */
    pthread_cond_t      work;
    struct il__fair     jobs;
    bool                stop;
    unsigned            n_idle; /* threads that wait for a job, or were woken for one */
    unsigned            n_jobs; /* in the queue */
    /* The loop's: */
    unsigned  n_threads, n_max;
    pthread_t threads[];
};

static struct http_job *
take(struct http_threads *t)
{
    struct http_job *job;

    il__mutex_lock(&t->mutex);
    t->n_idle++;
    while (t->jobs.heap.first == NULL && !t->stop)
        (void)il__cond_wait(&t->work, &t->mutex, -1); /* without a timeout it returns when woken */
    t->n_idle--;
    job = t->stop ? NULL : container_of(t->jobs.heap.first, struct http_job, node);
    if (job != NULL) {
        il__fair_take(&t->jobs);
        t->n_jobs--;
    }
    il__mutex_unlock(&t->mutex);
    return job;
}

static void *
thread_main(void *cookie)
{
    struct http_threads *t = cookie;
    struct http_job     *job;

    while ((job = take(t)) != NULL) {
        bool back = job->then != NULL; /* without `then` the job may be freed once it is done */
        job->work(job);
        if (back)
            http_inbox_put(t->server, &job->item);
    }
    return NULL;
}

static bool
add_thread(struct http_threads *t)
{
    if (t->n_threads >= t->n_max ||
        pthread_create(&t->threads[t->n_threads], NULL, thread_main, t) != 0)
        return false;
    t->n_threads++;
    return true;
}

il_status
http_threads_open(struct http_server *s, unsigned n_max, struct http_threads **ret,
                  il_error *reterr)
{
    struct http_threads *t = il__calloc(1, sizeof *t + n_max * sizeof t->threads[0]);

    if (t == NULL)
        return il__error_nomem(reterr);
    t->server = s;
    t->n_max  = n_max;
    il__mutex_init(&t->mutex, IL__MUTEX_errands);
    il__cond_init(&t->work);
    if (!add_thread(t)) {
        http_threads_close(t);
        return il__error_set(reterr, IL_NOMEM, "cannot start a thread");
    }
    *ret = t;
    return IL_OK;
}

void
http_threads_give(struct http_threads *t, struct http_job *job)
{
    bool too_few; /* a woken thread counts as idle until it runs, so compare with all jobs */

    CHECK(job->work != NULL);
    il__mutex_lock(&t->mutex);
    il__fair_add(&t->jobs, &job->node, il__fair_share(http_job_tenant(job)), 1);
    too_few = t->n_idle < ++t->n_jobs;
    il__mutex_unlock(&t->mutex);
    CHECK(pthread_cond_signal(&t->work) == 0);
    if (too_few)
        IGNORE(!add_thread(t)); /* then an existing thread takes the job */
}

void
http_threads_stop(struct http_threads *t)
{
    if (t == NULL)
        return;
    il__mutex_lock(&t->mutex);
    t->stop = true;
    il__mutex_unlock(&t->mutex);
    CHECK(pthread_cond_broadcast(&t->work) == 0);
    while (t->n_threads > 0)
        CHECK(pthread_join(t->threads[--t->n_threads], NULL) == 0);
}

void
http_threads_close(struct http_threads *t)
{
    if (t == NULL)
        return;
    http_threads_stop(t);
    il__mutex_destroy(&t->mutex);
    (void)pthread_cond_destroy(&t->work); /* no one is waiting any more */
    il__free(t);
}
