/*
 * advisory.c: takes PostgreSQL advisory locks beside a lease, for programs that only know those.
 *
 * The lock belongs to an otherwise empty transaction on a dedicated connection, and is released
 * when either ends. It therefore also works through a pooler, which keeps the server connection
 * assigned for the length of the transaction.
 */
#include <inttypes.h>
#include <poll.h>

#include "base/error.h"
#include "store/postgres/postgres_internal.h"

#include "postgres_sql.inc"

struct pg_advisory {
    struct il__store_advisory base;
    struct pg_url             own; /* of the server, unless a store has it */
    struct pg_conn            conn;
    int64_t                   timeout_ms;
};

static il_status
advisory_check(struct il__store_advisory *base, il_error *reterr)
{
    struct pg_advisory *a  = container_of(base, struct pg_advisory, base);
    struct pollfd       fd = { .fd = base->fd, .events = POLLIN };

    /* The server has hardly anything to send on this connection, except that it is closing. A new
     * one would not be in the transaction. */
    if (a->conn.pq != NULL && poll(&fd, 1, 0) == 0)
        return IL_OK;
    if (a->conn.pq != NULL && il__pg_exec(&a->conn, sql_alive, il__pg_in_ms(a->timeout_ms)) &&
        il__pq->PQtransactionStatus(a->conn.pq) == PQTRANS_INTRANS)
        return IL_OK;
    il__pg_conn_close(&a->conn);
    return il__error_set(reterr, IL_LOST, "%s: the connection that held an advisory lock was lost",
                         a->conn.shown);
}

static void
advisory_release(struct il__store_advisory *base)
{
    struct pg_advisory *a = container_of(base, struct pg_advisory, base);

    /* Closing is not enough: behind a pooler the server's side would stay open. */
    if (a->conn.pq != NULL)
        IGNORE(il__pg_exec(&a->conn, sql_rollback, il__pg_in_ms(a->timeout_ms)));
    il__pg_conn_close(&a->conn);
    il__pg_url_release(&a->own);
    il__free(a);
}

/* *ret_taken: it was free. */
static bool
take(struct pg_advisory *a, const char *key, int64_t id, bool *ret_taken)
{
    char            text[24];
    int64_t         until_ns = il__pg_in_ms(a->timeout_ms);
    struct pg_query q        = {
               .sql      = sql_advisory_take,
               .n_params = 2,
               .types    = { PG_INT8, PG_TEXT },
               .values   = { key == NULL ? text : NULL, key },
    };

    (void)snprintf(text, sizeof text, "%" PRId64, id);
    if (!il__pg_exec(&a->conn, sql_advisory_begin, until_ns))
        return false;
    PGresult *r = il__pg_query(&a->conn, &q, until_ns);
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

    if (a != NULL) {
        a->base =
            (struct il__store_advisory){ .check = advisory_check, .release = advisory_release };
        a->timeout_ms = timeout_ms;
    }
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
    if (st != IL_OK) {
        advisory_release(&a->base);
        return st;
    }
    a->base.fd = il__pq->PQsocket(a->conn.pq);
    *ret       = &a->base;
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
