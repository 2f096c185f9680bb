/*
 * listen.c: receives wake-ups from other processes. A function that changes something publishes
 * whom to wake on the store's channel (lua/apply.lua). Every process that has the store open
 * listens, on its own connection and thread.
 *
 * A message is only a hint: if one is lost, a waiter polls again a few seconds later. After a gap
 * all waiters are woken once, because we cannot tell what was missed.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/ring.h"
#include "base/thread.h"
#include "store/redis/redis_internal.h"

#define RETRY_MS_MIN 10
#define RETRY_MS_MAX 5000 /* after a refused SUBSCRIBE: permissions do not change that soon */
/* polling interval while not subscribed: an offer lasts two seconds */
#define POLL_MS 500

static void
channel(const struct redis_url *u, char out[REDIS_PREFIX_BYTES_MAX + 16])
{
    (void)snprintf(out, REDIS_PREFIX_BYTES_MAX + 16, "%s:wake", u->tag);
}

/* what follows is a message (il__async_announce()) */
#define SAY "say "

/* "TENANT NUL ID NUL ID …": jobs that have changed; hiredis leaves a NUL at `end`. */
static void
wake_jobs(struct redis_listener *l, const char *text, const char *end)
{
    for (const char *id = text + strlen(text) + 1; id < end; id += strlen(id) + 1)
        il__board_wake(l->board, il__board_slot(text, id, IL__WAKE_JOB));
}

/*
 * "MAX_TTL_MS LOST_MS" of a hello to the store. A message sent after a loss that we do not know of
 * yet says nothing about leases granted before: our own hello, which reports what we knew then,
 * must come first.
 */
static void
learn_max_ttl(struct redis_store *s, const char *text)
{
    char   *end;
    int64_t ms = strtoll(text, &end, 10);

    if (strtoll(end, NULL, 10) == atomic_load(&s->lost_ms))
        il__redis_learn_max_ttl(s, ms);
}

/*
 * "SENDER [[tenant, name, suffix], …]", "SENDER jJOBS", "SENDER mMAX_TTL_MS LOST_MS" or "SENDER say
 * TEXT". Our own changes are already on our board.
 */
static void
take_message(struct redis_listener *l, const char *text, const char *end)
{
    struct remote_call taken  = { 0 };
    size_t             n_self = strlen(l->self);

    if (strncmp(text, l->self, n_self) == 0 && text[n_self] == ' ')
        return;
    text = strchr(text, ' ');
    if (text != NULL && strncmp(text + 1, SAY, sizeof SAY - 1) == 0) {
        text += sizeof SAY;
        il__ring_say(l->board, *text != '\0' ? text : NULL);
        return;
    }
    if (text != NULL && text[1] == 'm') {
        learn_max_ttl(container_of(l, struct redis_store, listener), text + 2);
    } else if (text != NULL && text[1] == 'j') {
        wake_jobs(l, text + 2, end);
    } else if (text != NULL && il__remote_take_wakes(&taken, text + 1, strlen(text + 1))) {
        for (size_t i = 0; i < taken.n_wakes; i++)
            il__board_wake(l->board, taken.wakes[i]);
    }
    il__free(taken.wakes);
}

static bool
is_message(const redisReply *r)
{
    return r->type == REDIS_REPLY_ARRAY && r->elements == 3 &&
           r->element[0]->type == REDIS_REPLY_STRING &&
           strcmp(r->element[0]->str, "message") == 0 && r->element[2]->type == REDIS_REPLY_STRING;
}

/* Listen until the connection is lost or must be replaced, or the store is closed. */
static void
hear(struct redis_store *s, il_error *err)
{
    struct redis_listener *l = &s->listener;
    il_status              st;

    do {
        AUTO_REPLY redisReply *r = NULL;
        st                       = il__redis_recv(&l->conn, INT64_MAX, &r, err);
        if (st == IL_OK && is_message(r))
            take_message(l, r->element[2]->str, r->element[2]->str + r->element[2]->len);
    } while (st == IL_OK);
}

/* Signal that the first attempt has ended; may be repeated. */
static void
tell_ready(struct redis_listener *l)
{
    const uint64_t one = 1;

    atomic_store(&l->tried, true);
    IGNORE(write(l->ready_fd, &one, sizeof one) < 0); /* if it is full, it has been notified */
}

/* Sleep, unless something has changed; true when the store is being closed. */
static bool
rest(struct redis_listener *l, int64_t ns)
{
    struct pollfd   fd      = { .fd = l->conn.stop_fd, .events = POLLIN };
    struct timespec timeout = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
    uint64_t        n;

    /* It is drained before `closes` and the generation are read, and filled after they were
     * written, so nothing is missed. */
    if (ppoll(&fd, 1, &timeout, NULL) > 0)
        IGNORE(read(fd.fd, &n, sizeof n) < 0);
    return atomic_load(&l->closes);
}

/* Subscribe and listen until that ends. Wakes those who slept through a gap. */
static void
subscribe(struct redis_store *s, const char *name, bool after_gap)
{
    struct redis_listener *l           = &s->listener;
    int64_t                deadline_ns = il__clock_boot_ns() + s->timeout_ms * IL__NS_PER_MS;
    AUTO_REPLY redisReply *r           = NULL;
    il_error               err;

    if (il__redis_connect(s, &l->conn, deadline_ns, &err) != IL_OK)
        return;
    il_status st = il__redis_ask(&l->conn, deadline_ns, &r, &err, "SUBSCRIBE", name);
    if (st == IL_OK && r->type == REDIS_REPLY_ARRAY) {
        atomic_store(&l->n_refused, 0);
        atomic_store(&l->hears, true);
        if (after_gap) {
            il__board_wake_everybody(l->board);
            il__ring_say(l->board, NULL);
        }
        tell_ready(l);
        hear(s, &err);
        atomic_store(&l->hears, false);
    } else if (st == IL_OK) {
        (void)atomic_fetch_add(&l->n_refused, 1);
    }
    il__redis_conn_drop(&l->conn);
}

/* Time until the next attempt: as a failed connection says, and longer each time that only
 * SUBSCRIBE is refused. */
static int64_t
pause_ns(struct redis_listener *l)
{
    int64_t ms = RETRY_MS_MIN << MIN(atomic_load(&l->n_refused), 10U);

    return MAX(l->conn.retry_ns - il__clock_boot_ns(), MIN(ms, RETRY_MS_MAX) * IL__NS_PER_MS);
}

static void *
listen_main(void *cookie)
{
    struct redis_store    *s = cookie;
    struct redis_listener *l = &s->listener;
    char                   name[REDIS_PREFIX_BYTES_MAX + 16];
    bool                   after_gap = false;

    channel(&s->url, name);
    do {
        subscribe(s, name, after_gap);
        tell_ready(l);
        after_gap = true;
    } while (!rest(l, pause_ns(l)));
    return NULL;
}

il_status
il__redis_listen_start(struct redis_store *s, il_error *reterr)
{
    struct redis_listener *l = &s->listener;

    il__redis_conn_init(&l->conn, &s->url, s->ctx);
    l->board        = &s->remote.board;
    l->self         = s->flags + 1;
    l->ready_fd     = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->conn.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->ready_fd < 0 || l->conn.stop_fd < 0)
        return il__error_set(reterr, IL_STORE, "%s: too many open files", s->url.shown);
    l->runs = il__thread_start(&l->thread, listen_main, s) == 0;
    return l->runs ? IL_OK : il__error_set(reterr, IL_NOMEM, "out of memory for a thread");
}

static void
interrupt(struct redis_listener *l)
{
    const uint64_t one = 1;

    IGNORE(write(l->conn.stop_fd, &one, sizeof one) < 0); /* the first one always fits */
}

void
il__redis_suspect(struct redis_store *s)
{
    (void)atomic_fetch_add(&s->generation, 1);
    if (s->listener.runs)
        interrupt(&s->listener);
}

void
il__redis_listen_stop(struct redis_store *s)
{
    struct redis_listener *l = &s->listener;

    if (l->conn.url == NULL)
        return; /* it was never started */
    if (l->runs) {
        atomic_store(&l->closes, true);
        interrupt(l);
        CHECK(pthread_join(l->thread, NULL) == 0);
    }
    if (l->conn.stop_fd >= 0)
        (void)close(l->conn.stop_fd);
    if (l->ready_fd >= 0)
        (void)close(l->ready_fd);
    il__redis_conn_release(&l->conn);
}

void
il__redis_listen_await(struct redis_store *s, int64_t deadline_ns)
{
    struct pollfd   fd      = { .fd = s->listener.ready_fd, .events = POLLIN };
    int64_t         left_ns = deadline_ns - il__clock_boot_ns();
    struct timespec timeout = { .tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000 };

    /* If it is interrupted or takes too long, a message may be missed; waiters poll until the
     * listener is subscribed. */
    if (!atomic_load(&s->listener.tried) && left_ns > 0)
        IGNORE(ppoll(&fd, 1, &timeout, NULL) < 0);
}

/* On the read connection: the others belong to callers of apply. What cannot be sent now is
 * lost. */
void
il__redis_announce(struct il__store *base, const char *text)
{
    struct redis_store     *s = container_of(il__remote_from(base), struct redis_store, remote);
    int64_t                 deadline_ns = il__clock_boot_ns() + s->timeout_ms * IL__NS_PER_MS;
    AUTO_REPLY redisReply  *r           = NULL;
    struct il__buf AUTO_BUF message     = { 0 };
    char                    name[REDIS_PREFIX_BYTES_MAX + 16];
    il_error                err;

    channel(&s->url, name);
    il__buf_init(&message, IL__RING_TEXT_BYTES_MAX + 64);
    il__buf_addf(&message, "%s " SAY "%s", s->listener.self, text != NULL ? text : "");
    if (message.failed)
        return;
    il__mutex_lock(&s->reader_mutex);
    if (il__redis_connect(s, &s->reader, deadline_ns, &err) == IL_OK)
        IGNORE(il__redis_ask(&s->reader, deadline_ns, &r, &err, "PUBLISH", name,
                             il__buf_str(&message)) != IL_OK);
    il__mutex_unlock(&s->reader_mutex);
}

int64_t
il__redis_attend(struct il__store *base)
{
    struct redis_store *s = container_of(il__remote_from(base), struct redis_store, remote);

    return atomic_load(&s->listener.hears) ? 0 : POLL_MS;
}
