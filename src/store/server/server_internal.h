/*
 * server_internal.h: the engine behind http:// and https://: another Interlock, reached through its
 * HTTP API.
 *
 *   server.c    the engine: ops as POST /api/v1/batch; waiting as a long poll of the same
 *   exchange.c  one connection: sends a request, reads the JSON reply
 *
 * The API key determines the tenant. It comes from $INTERLOCK_API_KEY and not from the URL, so it
 * never appears on a command line or in a displayed configuration.
 */
#ifndef IL_STORE_SERVER_INTERNAL_H
#define IL_STORE_SERVER_INTERNAL_H

#include <jansson.h>

#include "base/buf.h"
#include "base/mutex.h"
#include "net/net.h"
#include "store/store.h"

#define SERVER_ANSWER_BYTES_MAX (64 << 20)

/* What all connections share; fixed once the store is open. */
struct server_target {
    char              *shown;     /* the URL, as it may be shown */
    char              *batch;     /* URL of POST /api/v1/batch */
    size_t             n_base;    /* bytes of it before the "/batch" */
    char              *unix_path; /* NULL = TCP */
    struct net_headers headers;   /* content type and key */
    int64_t            timeout_ms;
};

struct server_exchange {
    struct server_exchange     *next; /* of the unused ones */
    const struct server_target *to;
    struct net_conn            *conn;
    const atomic_bool          *interrupted; /* of the current request; may be NULL */
    struct il__buf              request;
    struct il__buf              answer;
};

struct server_store {
    struct il__store        base;
    struct il__board        board;
    struct server_target    to;
    char                    tenant[IL_TENANT_BYTES_MAX + 1]; /* of the key */
    struct il__mutex        mutex;                           /* protects idle */
    struct server_exchange *idle;
};

/* NULL: no memory, since libcurl is loaded. */
struct server_exchange *il__server_exchange_new(const struct server_target *to);
void                    il__server_exchange_free(struct server_exchange *x);

/*
 * Send x->request; *ret is the body of a reply with status 200 (the caller decrefs it). Takes at
 * most `timeout_ms`; `interrupted` (may be NULL) ends it early, with IL_CANCELLED. Returns IL_OK,
 * or IL_STORE and the like: then it is unknown whether the server has done anything.
 */
il_status il__server_exchange(struct server_exchange *x, int64_t timeout_ms,
                              const atomic_bool *interrupted, json_t **ret, il_error *reterr)
    MUST_USE;

/* Any other call. It may not be safe to repeat, so its exchange must be a new one. A reply with an
 * error status is a valid reply, too. */
il_status il__server_request(struct server_exchange *x, struct il__request *r, il_error *reterr)
    MUST_USE;

#endif
