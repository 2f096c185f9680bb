/*
 * announce.c: broadcasts hints to all users of a store. Within a process, and between processes
 * that map the same file, a message goes through the board's ring (base/ring.h). For a store behind
 * a server it also goes through the server to other processes, whose listeners put it into their
 * ring. Sending may block, so a lane does it.
 */
#include "base/clock.h"
#include "runtime/async_internal.h"

_Static_assert(IL__ANNOUNCE_BYTES_MAX == IL__RING_TEXT_BYTES_MAX,
               "the ring takes what may be announced");

#define OUTBOX_MAX 64 /* beyond that, listeners are told that they missed messages */

void
il__async_listen(struct il__async *a, il__announce_fn *fn, void *cookie)
{
    il__mutex_lock(&a->mutex);
    CHECK(a->hear == NULL);
    il__ring_reader_init(&a->reader, a->h->store->board);
    a->hear_cookie = cookie;
    a->hear        = fn;
    il__mutex_unlock(&a->mutex);
    il__board_poke(a->h->store->board);
}

bool
il__async_hear(struct il__async *a, il__announce_fn *fn)
{
    const struct il__board *b = a->h->store->board;
    char                    text[IL__RING_TEXT_BYTES_MAX + 1];
    enum il__ring_read      got;

    while ((got = il__ring_read(&a->reader, b, il__clock_boot_ns(), text)) != IL__RING_NONE)
        fn(a->hear_cookie, got == IL__RING_TEXT ? text : NULL);
    return a->reader.stuck_ns != 0;
}

/* Put a message into the outbox. The last slot holds a NULL: messages after the ones before it are
 * lost. */
static void
post(struct il__async *a, const char *text)
{
    if (a->outbox == NULL)
        a->outbox = il__calloc(OUTBOX_MAX, sizeof *a->outbox);
    if (a->outbox == NULL || a->n_outbox == OUTBOX_MAX)
        return;
    a->outbox[a->n_outbox] = a->n_outbox < OUTBOX_MAX - 1 ? il__strdup(text) : NULL;
    a->n_outbox++;
}

void
il__async_announce(struct il__async *a, const char *text)
{
    struct async_lane *lane = &a->lanes[ASYNC_READS];

    if (!il__ring_fits(text))
        return;
    il__ring_say(a->h->store->board, text);
    if (a->h->store->ops->announce == NULL || a->direct)
        return;
    il__mutex_lock(&a->mutex);
    post(a, text);
    if (lane->idle) {
        lane->idle = false;
        CHECK(pthread_cond_signal(&lane->filled) == 0);
    }
    il__mutex_unlock(&a->mutex);
}

void
il__async_send(struct il__async *a)
{
    char  *texts[OUTBOX_MAX];
    size_t n = a->n_outbox;

    memcpy(texts, a->outbox, n * sizeof *texts);
    a->n_outbox = 0;
    il__mutex_unlock(&a->mutex);
    for (size_t i = 0; i < n; i++) {
        il__store_announce(a->h->store, texts[i]);
        il__free(texts[i]);
    }
    il__mutex_lock(&a->mutex);
}
