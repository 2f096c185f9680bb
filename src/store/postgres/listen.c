/*
 * listen.c: receives wake-ups from other processes. A thread with its own connection listens on the
 * store's channel and wakes the words of our board that a notification names.
 *
 * The thread starts when a caller first waits or keeps a lease. From then on we must know whether
 * notifications arrive: a pooler accepts LISTEN but drops the notifications. So we first send one
 * to ourselves, along the same path that all senders use. Until it arrives, and whenever the
 * connection is lost, waiters poll (PG_POLL_MS). When it arrives, all waiters are woken once, so
 * they notice whatever happened before.
 *
 * A payload is one of
 *   ID 17 4711                         words of the board; ID is the sending handle, which has
 *                                      already woken its own
 *   ID *                               all of them
 *   ID say {...}                       a message for the ring of the board
 *   tenant\x1fname\x1fsuffix[\x1e...]  what the waiters wait for (from SQL, which cannot compute
 *                                      the words); empty names: all holders
 */
#include <inttypes.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/parse.h"
#include "base/thread.h"
#include "store/postgres/postgres_internal.h"

#define POLL_MS 500   /* an offer lasts two seconds */
#define PROOF_MS 2000 /* for our own notification to arrive */
/* after this much silence, test whether the connection is alive */
#define ALIVE_MS 30000
#define AGAIN_MS_MIN 100 /* between two tries */
#define AGAIN_MS_MAX 30000
#define PROBE "probe "

enum state {
    NOT_STARTED,
    STARTING,
    RUNNING,
    FAILED, /* cannot start a thread */
};

/* ---- what a notification says ---------------------------------------------------------------- */

/* "tenant\x1fname\x1fsuffix", n bytes. A malformed one is ignored. */
static void
wake_name(struct il__board *b, const char *text, size_t n)
{
    AUTO_FREE char *copy   = il__strndup(text, n);
    char           *name   = copy != NULL ? strchr(copy, '\x1f') : NULL;
    char           *suffix = name != NULL ? strchr(name + 1, '\x1f') : NULL;

    if (suffix == NULL)
        return;
    *name++   = '\0';
    *suffix++ = '\0';
    il__board_wake(b, *name == '\0' ? IL__BOARD_BREAK : il__board_slot(copy, name, suffix));
}

static void
wake_slot(struct il__board *b, const char *text, size_t n)
{
    char     digits[8];
    uint64_t slot;

    (void)snprintf(digits, sizeof digits, "%.*s", (int)MIN(n, sizeof digits - 1), text);
    if (il__parse_u64(digits, IL__BOARD_WORDS - 1, &slot) &&
        (slot >= IL__BOARD_WAITER || slot == IL__BOARD_BREAK))
        il__board_wake(b, (uint32_t)slot);
}

static void
wake_slots(struct il__board *b, const char *text)
{
    if (strcmp(text, "*") == 0)
        il__board_wake_everybody(b);
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        wake_slot(b, text, n);
        text += n + (text[n] != '\0');
    }
}

void
il__pg_listener_wake(struct il__board *b, const char *own_id, const char *payload)
{
    size_t n_id = strcspn(payload, " ");

    if (strchr(payload, '\x1f') == NULL) {
        const char *rest = payload + n_id + 1;
        if (payload[n_id] != ' ' || (n_id == strlen(own_id) && memcmp(payload, own_id, n_id) == 0))
            return; /* our own: we know already */
        const char *said = rest + sizeof PG_SAY - 1;
        if (strncmp(rest, PG_SAY, sizeof PG_SAY - 1) == 0)
            il__ring_say(b, *said != '\0' ? said : NULL);
        else
            wake_slots(b, rest);
        return;
    }
    while (*payload != '\0') {
        size_t n = strcspn(payload, "\x1e");
        wake_name(b, payload, n);
        payload += n + (payload[n] != '\0');
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Should the thread stop? Sleeps for at most `ms` or until the connection (or NULL) is readable. */
static bool
stop_or_sleep(struct pg_listener *l, const struct pg_conn *c, int64_t ms)
{
    const struct pg_conn none = { .stop_fd = -1 };
    struct pollfd        stop = { .fd = l->stop_fd, .events = POLLIN };

    il__pg_wait_for_input(c != NULL ? c : &none, l->stop_fd, il__pg_in_ms(ms));
    return poll(&stop, 1, 0) > 0;
}

/* Process what has arrived; true if `probe` was part of it. False with c->pq == NULL: the
 * connection is lost. */
static bool
take_notifications(struct pg_listener *l, struct pg_conn *c, const char *probe)
{
    struct il__board *b     = &l->store->remote.board;
    bool              found = false;

    if (il__pq->PQconsumeInput(c->pq) == 0 || il__pq->PQstatus(c->pq) == CONNECTION_BAD) {
        il__pg_conn_close(c);
        return false;
    }
    for (PGnotify *n; (n = il__pq->PQnotifies(c->pq)) != NULL; il__pq->PQfreemem(n)) {
        if (strncmp(n->extra, PROBE, sizeof PROBE - 1) == 0)
            found = found || (probe != NULL && strcmp(n->extra, probe) == 0);
        else
            il__pg_listener_wake(b, l->id, n->extra);
    }
    return found;
}

/* Send ourselves a notification over another connection, as every sender does, and check that it
 * arrives. */
static bool
prove(struct pg_listener *l, struct pg_conn *c)
{
    struct pg_store *s        = l->store;
    int64_t          until_ns = il__pg_in_ms(MIN(PROOF_MS, s->timeout_ms));
    char             probe[64];
    struct pg_conn   sender;

    (void)snprintf(probe, sizeof probe, PROBE "%d %" PRId64, (int)getpid(), il__clock_boot_ns());
    il__pg_store_conn_init(s, &sender, s->url.server);
    sender.stop_fd = l->stop_fd;
    PGresult *r    = il__pg_query(&sender,
                                  &(struct pg_query){
                                      .sql      = s->sql[PG_notify],
                                      .n_params = 2,
                                      .types    = { PG_TEXT, PG_TEXT },
                                      .values   = { s->url.channel, probe },
                               },
                                  until_ns);
    bool      sent = r != NULL;
    il__pq->PQclear(r);
    il__pg_conn_close(&sender);
    while (sent && c->pq != NULL && il__clock_boot_ns() < until_ns) {
        if (take_notifications(l, c, probe))
            return true;
        if (c->pq != NULL &&
            stop_or_sleep(l, c, (until_ns - il__clock_boot_ns()) / IL__NS_PER_MS + 1))
            return false;
    }
    return false;
}

/* Listen until the connection is lost or we must stop. */
static void
listen_on(struct pg_listener *l, struct pg_conn *c)
{
    struct pg_store *s = l->store;

    while (c->pq != NULL) {
        int64_t until_ns = il__pg_in_ms(ALIVE_MS);
        while (c->pq != NULL && il__clock_boot_ns() < until_ns) {
            (void)take_notifications(l, c, NULL); /* some may have come with an answer */
            if (c->pq != NULL && stop_or_sleep(l, c, ALIVE_MS))
                return;
        }
        if (c->pq != NULL && !il__pg_exec(c, s->sql[PG_alive], il__pg_in_ms(s->timeout_ms)))
            il__pg_conn_close(c);
    }
}

static void *
listener_main(void *arg)
{
    struct pg_listener *l        = arg;
    struct pg_store    *s        = l->store;
    int64_t             again_ms = AGAIN_MS_MIN;
    struct pg_conn      c;

    il__pg_store_conn_init(s, &c, s->url.listen != NULL ? s->url.listen : s->url.server);
    c.stop_fd = l->stop_fd;
    do {
        if (il__pg_exec(&c, s->sql[PG_listen], il__pg_in_ms(s->timeout_ms)) && prove(l, &c)) {
            il__board_wake_everybody(&s->remote.board); /* what happened before we listened */
            il__ring_say(&s->remote.board, NULL);
            atomic_store(&l->proven, true);
            listen_on(l, &c);
            atomic_store(&l->proven, false);
            il__board_wake_everybody(&s->remote.board); /* sleep shorter from now on */
            again_ms = AGAIN_MS_MIN;
        } else {
            again_ms = MIN(2 * again_ms, AGAIN_MS_MAX);
        }
        il__pg_conn_close(&c);
    } while (!stop_or_sleep(l, NULL, again_ms));
    return NULL;
}

static bool
start_thread(struct pg_listener *l)
{
    l->stop_fd = eventfd(0, EFD_CLOEXEC);
    return l->stop_fd >= 0 && il__thread_start(&l->thread, listener_main, l) == 0;
}

/* ---- for the store --------------------------------------------------------------------------- */

void
il__pg_listener_init(struct pg_listener *l, struct pg_store *s)
{
    uint64_t random = 0;

    l->store   = s;
    l->stop_fd = -1;
    /* without it, the process id and the time must do */
    IGNORE(getrandom(&random, sizeof random, 0) < 0);
    random ^= il__hash_mix((uint64_t)getpid(), (uint64_t)il__clock_boot_ns() ^ (uintptr_t)l);
    (void)snprintf(l->id, sizeof l->id, "%016" PRIx64, random);
}

int64_t
il__pg_listener_attend(struct pg_listener *l)
{
    int state = NOT_STARTED;

    if (!l->store->url.no_listen && atomic_compare_exchange_strong(&l->state, &state, STARTING))
        atomic_store(&l->state, start_thread(l) ? RUNNING : FAILED);
    return atomic_load(&l->proven) ? 0 : POLL_MS;
}

void
il__pg_listener_release(struct pg_listener *l)
{
    uint64_t one = 1;

    if (atomic_load(&l->state) == RUNNING) {
        IGNORE(write(l->stop_fd, &one, sizeof one) < 0); /* the first one always fits */
        CHECK(pthread_join(l->thread, NULL) == 0);
    }
    if (l->stop_fd >= 0)
        (void)close(l->stop_fd);
    l->stop_fd = -1;
}
