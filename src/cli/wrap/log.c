/*
 * log.c: writes the output of a recorded run to the store; the contract is in log.h.
 */
#include "cli/wrap/log.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/thread.h"

#define PAUSE_NS (200 * IL__NS_PER_MS) /* between two writes */
#define NOTE_BYTES_MAX 80
#define COMING_BYTES_MAX (IL_LOG_BYTES_MAX - NOTE_BYTES_MAX) /* what is kept, including the note */
#define TRIES_LAST 3 /* attempts at the end; then the tail is lost */

/* Sleep until there is something to write or it is time to stop; then a little longer, to write
 * more at once. */
static void
gather(struct wrap_log *l)
{
    while (l->coming.n_bytes == 0 && !l->quit)
        (void)il__cond_wait(&l->cond, &l->mutex, -1);
    int64_t until_ns = il__clock_boot_ns() + PAUSE_NS;
    while (!l->quit && il__clock_boot_ns() < until_ns)
        (void)il__cond_wait(&l->cond, &l->mutex, MAX(until_ns - il__clock_boot_ns(), 0));
}

/* Take what has arrived. */
static void
fetch(struct wrap_log *l, struct il__buf *going)
{
    char note[NOTE_BYTES_MAX];

    if (l->n_lost > 0) {
        (void)snprintf(note, sizeof note, "[interlock: %" PRIu64 " bytes discarded]\n", l->n_lost);
        il__buf_adds(going, note);
    }
    il__buf_add(going, il__buf_str(&l->coming), l->coming.n_bytes);
    il__buf_clear(&l->coming);
    l->n_lost = 0;
}

/* Write it. true: no retry needed, because it was stored or the run has ended otherwise. */
static bool
write_out(struct wrap_log *l, const struct il__buf *text)
{
    il_error  error;
    il_status st = il_run_stage(l->run, NULL, -1, text->data, text->n_bytes, &error);

    return st == IL_OK || il_status_retryable(st) == 0;
}

static void *
log_main(void *arg)
{
    struct wrap_log        *l     = arg;
    AUTO_BUF struct il__buf going = { 0 };
    int                     tries = 0;

    il__buf_init(&going, IL_LOG_BYTES_MAX);
    il__mutex_lock(&l->mutex);
    for (;;) {
        if (going.n_bytes == 0)
            gather(l);
        if (going.n_bytes == 0)
            fetch(l, &going);
        bool quit = l->quit;
        il__mutex_unlock(&l->mutex);
        tries = quit ? tries + 1 : 0;
        if (going.n_bytes == 0 || write_out(l, &going) || tries > TRIES_LAST)
            il__buf_clear(&going);
        il__mutex_lock(&l->mutex);
        if (l->quit && l->coming.n_bytes == 0 && going.n_bytes == 0)
            break;
    }
    il__mutex_unlock(&l->mutex);
    il__buf_release(&l->coming);
    return NULL;
}

bool
wrap_log_start(struct wrap_log *l, il_run *run)
{
    *l = (struct wrap_log){ .run = run };
    il__mutex_init(&l->mutex, IL__MUTEX_wrap_log);
    il__cond_init(&l->cond);
    il__buf_init(&l->coming, COMING_BYTES_MAX);
    l->running = il__thread_start(&l->thread, log_main, l) == 0;
    return l->running;
}

void
wrap_log_add(struct wrap_log *l, const void *data, size_t n_bytes)
{
    if (!l->running)
        return;
    il__mutex_lock(&l->mutex);
    size_t room = COMING_BYTES_MAX - MIN(n_bytes, COMING_BYTES_MAX);
    if (l->coming.n_bytes > room) { /* drop the oldest */
        size_t n_old = l->coming.n_bytes - room;
        memmove(l->coming.data, l->coming.data + n_old, l->coming.n_bytes - n_old + 1);
        l->coming.n_bytes -= n_old;
        l->n_lost += n_old;
    }
    il__buf_add(&l->coming, data, n_bytes);
    CHECK(pthread_cond_signal(&l->cond) == 0);
    il__mutex_unlock(&l->mutex);
}

void
wrap_log_finish(struct wrap_log *l)
{
    if (!l->running)
        return;
    il__mutex_lock(&l->mutex);
    l->quit = true;
    CHECK(pthread_cond_signal(&l->cond) == 0);
    il__mutex_unlock(&l->mutex);
    CHECK(pthread_join(l->thread, NULL) == 0);
    l->running = false;
    CHECK(pthread_cond_destroy(&l->cond) == 0);
    il__mutex_destroy(&l->mutex);
}
