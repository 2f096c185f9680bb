/*
 * log.c: the output of a recorded run on its way into the store; the contract is in log.h.
 */
#include "cli/run/log.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/mutex.h"

#define PAUSE_MS 200 /* between two writes */
#define NOTE_BYTES_MAX 80
#define COMING_BYTES_MAX (IL_LOG_BYTES_MAX - NOTE_BYTES_MAX) /* with the note it is what is kept */
#define TRIES_LAST 3 /* at the end: then the tail is lost, and that is all */

/* Sleep until there is something to write or it is time to end; then a little more, so that it is worth it. */
static void
gather(struct il__run_log *l)
{
    struct timespec until;

    while (l->coming.n_bytes == 0 && !l->quit)
        CHECK(pthread_cond_wait(&l->cond, &l->mutex) == 0);
    CHECK(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
    until.tv_nsec += PAUSE_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    while (!l->quit && pthread_cond_timedwait(&l->cond, &l->mutex, &until) == 0)
        continue;
}

/* Take what has come. */
static void
fetch(struct il__run_log *l, struct il__buf *going)
{
    char note[NOTE_BYTES_MAX];

    if (l->n_lost > 0) {
        (void)snprintf(note, sizeof note, "[interlock: %" PRIu64 " bytes are not kept]\n", l->n_lost);
        il__buf_adds(going, note);
    }
    il__buf_add(going, il__buf_str(&l->coming), l->coming.n_bytes);
    il__buf_clear(&l->coming);
    l->n_lost = 0;
}

/* Write it. true: no more tries are needed, since it was taken, or the run has ended otherwise. */
static bool
write_out(struct il__run_log *l, const struct il__buf *text)
{
    il_error  error;
    il_status st = il_run_stage(l->run, NULL, -1, text->data, text->n_bytes, &error);

    return st == IL_OK || il_status_retryable(st) == 0;
}

static void *
log_main(void *arg)
{
    struct il__run_log     *l     = arg;
    AUTO_BUF struct il__buf going = { 0 };
    int                     tries = 0;

    il__buf_init(&going, IL_LOG_BYTES_MAX);
    CHECK(pthread_mutex_lock(&l->mutex) == 0);
    for (;;) {
        if (going.n_bytes == 0)
            gather(l);
        if (going.n_bytes == 0)
            fetch(l, &going);
        bool quit = l->quit;
        CHECK(pthread_mutex_unlock(&l->mutex) == 0);
        tries = quit ? tries + 1 : 0;
        if (going.n_bytes == 0 || write_out(l, &going) || tries > TRIES_LAST)
            il__buf_clear(&going);
        CHECK(pthread_mutex_lock(&l->mutex) == 0);
        if (l->quit && l->coming.n_bytes == 0 && going.n_bytes == 0)
            break;
    }
    CHECK(pthread_mutex_unlock(&l->mutex) == 0);
    il__buf_release(&l->coming);
    return NULL;
}

bool
il__run_log_start(struct il__run_log *l, il_run *run)
{
    sigset_t all;
    sigset_t before;

    *l = (struct il__run_log){ .run = run };
    CHECK(pthread_mutex_init(&l->mutex, NULL) == 0);
    il__cond_init(&l->cond);
    il__buf_init(&l->coming, COMING_BYTES_MAX);
    CHECK(sigfillset(&all) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    l->running = pthread_create(&l->thread, NULL, log_main, l) == 0;
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return l->running;
}

void
il__run_log_add(struct il__run_log *l, const void *data, size_t n_bytes)
{
    if (!l->running)
        return;
    CHECK(pthread_mutex_lock(&l->mutex) == 0);
    size_t room = COMING_BYTES_MAX - MIN(n_bytes, COMING_BYTES_MAX);
    if (l->coming.n_bytes > room) { /* the oldest goes */
        size_t n_old = l->coming.n_bytes - room;
        memmove(l->coming.data, l->coming.data + n_old, l->coming.n_bytes - n_old + 1);
        l->coming.n_bytes -= n_old;
        l->n_lost += n_old;
    }
    il__buf_add(&l->coming, data, n_bytes);
    CHECK(pthread_cond_signal(&l->cond) == 0);
    CHECK(pthread_mutex_unlock(&l->mutex) == 0);
}

void
il__run_log_finish(struct il__run_log *l)
{
    if (!l->running)
        return;
    CHECK(pthread_mutex_lock(&l->mutex) == 0);
    l->quit = true;
    CHECK(pthread_cond_signal(&l->cond) == 0);
    CHECK(pthread_mutex_unlock(&l->mutex) == 0);
    CHECK(pthread_join(l->thread, NULL) == 0);
    l->running = false;
    CHECK(pthread_cond_destroy(&l->cond) == 0);
    CHECK(pthread_mutex_destroy(&l->mutex) == 0);
}
