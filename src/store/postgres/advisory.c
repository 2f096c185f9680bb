/*
 * advisory.c: takes PostgreSQL advisory locks beside a lease, for programs that only know those.
 *
 * The lock belongs to an otherwise empty transaction on a dedicated connection, and is released
 * when either ends. It therefore also works through a pooler, which keeps the server connection
 * assigned for the length of the transaction.
 *
 * The server ends the transaction if it hears nothing for ADVISORY_TTL_MS, so that a process that
 * was stopped, or cut off, cannot keep the lock for good. Until it is released, a thread sends a
 * statement in every third of that time, and whenever the server sends something: the work that the
 * lock protects may take as long as it likes, and may block.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "store/postgres/postgres_internal.h"

#include "postgres_sql.inc"

struct pg_advisory {
    struct il__store_advisory base; /* its descriptor is an eventfd: the lock was lost */
    struct pg_url             own;  /* of the server, unless a store has it */
    int64_t                   timeout_ms;
    pthread_t                 pinger;
    bool                      pings;   /* the thread runs */
    int                       stop_fd; /* an eventfd: the thread is to end */
    int                       socket;  /* of the connection, for the thread */
    struct il__mutex          mutex;   /* protects the rest, once the thread runs */
    bool                      lost;
    struct pg_conn            conn;
};

int64_t il__store_advisory_ttl_ms = ADVISORY_TTL_MS;

static void
post(int fd)
{
    uint64_t one = 1;

    if (write(fd, &one, sizeof one) < 0)
        CHECK(errno == EAGAIN); /* full: it is readable */
}

/* Ask the server. A new connection would not be in the transaction. */
static void
ping(struct pg_advisory *a)
{
    CHECK(il__mutex_held(&a->mutex));
    if (a->lost ||
        (a->conn.pq != NULL && il__pg_exec(&a->conn, sql_alive, il__pg_in_ms(a->timeout_ms)) &&
         il__pq->PQtransactionStatus(a->conn.pq) == PQTRANS_INTRANS))
        return;
    a->lost = true;
    post(a->base.fd);
}

static void *
ping_main(void *arg)
{
    struct pg_advisory *a       = arg;
    struct pollfd       fds[2]  = { { .fd = a->socket, .events = POLLIN },
                                    { .fd = a->stop_fd, .events = POLLIN } };
    int                 rest_ms = (int)(il__store_advisory_ttl_ms / 3);
    bool                lost    = false;

    while (!lost) {
        (void)poll(fds, 2, rest_ms); /* interrupted: one ping too many */
        if (fds[1].revents != 0)
            break;
        il__mutex_lock(&a->mutex);
        ping(a);
        lost = a->lost;
        il__mutex_unlock(&a->mutex);
    }
    return NULL;
}

static bool
start_pinger(struct pg_advisory *a)
{
    a->socket = il__pq->PQsocket(a->conn.pq); /* a check may close the connection at any time */
    a->pings  = il__thread_start(&a->pinger, ping_main, a) == 0;
    return a->pings;
}

static void
stop_pinger(struct pg_advisory *a)
{
    if (!a->pings)
        return;
    post(a->stop_fd);
    CHECK(pthread_join(a->pinger, NULL) == 0);
}

static il_status
advisory_check(struct il__store_advisory *base, il_error *reterr)
{
    struct pg_advisory *a = container_of(base, struct pg_advisory, base);

    il__mutex_lock(&a->mutex);
    struct pollfd fd = { .fd     = a->conn.pq != NULL ? il__pq->PQsocket(a->conn.pq) : -1,
                         .events = POLLIN };
    /* The server has hardly anything to send on this connection, except that it is closing. */
    if (fd.fd < 0 || poll(&fd, 1, 0) != 0)
        ping(a);
    bool lost = a->lost;
    il__mutex_unlock(&a->mutex);
    return !lost ? IL_OK
                 : il__error_set(reterr, IL_LOST,
                                 "%s: the connection that held an advisory lock was lost",
                                 a->conn.shown);
}

static void
advisory_release(struct il__store_advisory *base)
{
    struct pg_advisory *a = container_of(base, struct pg_advisory, base);

    stop_pinger(a);
    /* Closing is not enough: behind a pooler the server's side would stay open. */
    if (a->conn.pq != NULL && !a->lost)
        IGNORE(il__pg_exec(&a->conn, sql_rollback, il__pg_in_ms(a->timeout_ms)));
    il__pg_conn_close(&a->conn);
    il__pg_url_release(&a->own);
    il__mutex_destroy(&a->mutex);
    if (a->base.fd >= 0)
        (void)close(a->base.fd);
    if (a->stop_fd >= 0)
        (void)close(a->stop_fd);
    il__free(a);
}

/* *ret_taken: it was free. */
static bool
take(struct pg_advisory *a, const char *key, int64_t id, bool *ret_taken)
{
    char            text[24], ttl[24];
    int64_t         until_ns = il__pg_in_ms(a->timeout_ms);
    struct pg_query limit    = {
           .sql = sql_advisory_limit, .n_params = 1, .types = { PG_TEXT }, .values = { ttl }
    };
    struct pg_query q = {
        .sql      = sql_advisory_take,
        .n_params = 2,
        .types    = { PG_INT8, PG_TEXT },
        .values   = { key == NULL ? text : NULL, key },
    };

    (void)snprintf(text, sizeof text, "%" PRId64, id);
    (void)snprintf(ttl, sizeof ttl, "%" PRId64, il__store_advisory_ttl_ms);
    if (!il__pg_exec(&a->conn, sql_advisory_begin, until_ns))
        return false;
    PGresult *r = il__pg_query(&a->conn, &limit, until_ns);
    if (r == NULL)
        return false;
    il__pq->PQclear(r);
    r = il__pg_query(&a->conn, &q, until_ns);
    if (r == NULL)
        return false;
    *ret_taken = il__pg_bool(r, 0, 0);
    il__pq->PQclear(r);
    /* A statement with parameters leaves its portal open, and thus a snapshot, until the next
     * statement. */
    return il__pg_exec(&a->conn, sql_alive, until_ns);
}

static struct pg_advisory *
advisory_new(int64_t timeout_ms)
{
    struct pg_advisory *a = il__calloc(1, sizeof *a);

    if (a == NULL)
        return NULL;
    a->base       = (struct il__store_advisory){ advisory_check, advisory_release, 0 };
    a->base.fd    = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    a->stop_fd    = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    a->timeout_ms = timeout_ms;
    il__mutex_init(&a->mutex, IL__MUTEX_advisory);
    return a;
}

/* Take it, or release `a`. */
static il_status
take_or_release(struct pg_advisory *a, const char *key, int64_t id, struct il__store_advisory **ret,
                il_error *reterr)
{
    bool      taken = false;
    il_status st    = IL_OK;

    a->conn.primary = true;
    if (!take(a, key, id, &taken))
        st = il__pg_error(&a->conn, reterr);
    else if (!taken && key != NULL)
        st = il__error_set(reterr, IL_HELD,
                           "the advisory lock of '%.80s' is held by another program", key);
    else if (!taken)
        st = il__error_set(reterr, IL_HELD,
                           "the advisory lock %" PRId64 " is held by another program", id);
    if (st == IL_OK && (a->base.fd < 0 || a->stop_fd < 0 || !start_pinger(a)))
        st = il__error_set(reterr, IL_NOMEM, "out of threads or descriptors for an advisory lock");
    if (st != IL_OK) {
        advisory_release(&a->base);
        return st;
    }
    *ret = &a->base;
    return IL_OK;
}

il_status
il__pg_advisory_take(struct remote_store *base, const char *key, int64_t id,
                     struct il__store_advisory **ret, il_error *reterr)
{
    const struct pg_store *s = il__pg_from(base);
    struct pg_advisory    *a = advisory_new(s->timeout_ms);

    if (a == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for an advisory lock");
    il__pg_conn_init(&a->conn, s->url.server, s->url.shown);
    return take_or_release(a, key, id, ret, reterr);
}

il_status
il__pg_advisory_take_at(const char *url, int64_t timeout_ms, const char *key, int64_t id,
                        struct il__store_advisory **ret, il_error *reterr)
{
    il_status st = il__pg_libpq_load(reterr);

    if (st != IL_OK)
        return st;
    struct pg_advisory *a = advisory_new(timeout_ms);
    if (a == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for an advisory lock");
    st = il__pg_url_parse(&a->own, url, reterr);
    if (st != IL_OK) {
        advisory_release(&a->base);
        return st;
    }
    il__pg_conn_init(&a->conn, a->own.server, a->own.shown);
    return take_or_release(a, key, id, ret, reterr);
}
