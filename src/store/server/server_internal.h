/*
 * server_internal.h: the engine behind http:// and https://: another Interlock, reached through its HTTP API.
 *
 *   server.c    the engine: ops as POST /api/v1/batch; waiting as a long poll of the same
 *   exchange.c  one connection: a request out, a JSON answer back
 *   curl.c      libcurl
 *
 * Whose tenant it is follows from the API key, which is $INTERLOCK_API_KEY: not part of the URL, so that it stands in no
 * command line and no configuration that is shown.
 */
#ifndef IL_STORE_SERVER_INTERNAL_H
#define IL_STORE_SERVER_INTERNAL_H

#include <jansson.h>

#include "base/buf.h"
#include "base/mutex.h"
#include "store/server/curl.h"
#include "store/store.h"

#define SERVER_ANSWER_BYTES_MAX (64 << 20)

/* What all connections share; fixed once the store is open. */
struct server_target {
    char              *shown;     /* the URL, as it may be shown */
    char              *batch;     /* URL of POST /api/v1/batch */
    size_t             n_base;    /* bytes of it before the "/batch" */
    char              *unix_path; /* NULL = TCP */
    struct curl_slist *headers;   /* content type and key */
    int64_t            timeout_ms;
};

struct server_exchange {
    struct server_exchange     *next; /* of those that nobody uses */
    const struct server_target *to;
    CURL                       *easy;
    CURLM                      *multi;
    struct il__buf              request;
    struct il__buf              answer;
    char                        why[CURL_ERROR_SIZE];
};

struct server_store {
    struct il__store        base;
    struct il__board        board;
    struct server_target    to;
    char                    tenant[IL_TENANT_BYTES_MAX + 1]; /* of the key */
    struct il__mutex        mutex;                           /* protects idle */
    struct server_exchange *idle;
};

/* NULL: no memory. */
struct server_exchange *il__server_exchange_new(const struct server_target *to);
void                    il__server_exchange_free(struct server_exchange *x);

/*
 * Send x->request; *ret is the body of an answer with status 200 (the caller decrefs it). It may take `timeout_ms`; `interrupted` (may be NULL) ends it
 * early, with IL_CANCELLED. IL_OK, IL_STORE and kin: whether the server has done something is unknown.
 */
il_status il__server_exchange(struct server_exchange *x, int64_t timeout_ms,
                              const atomic_bool *interrupted, json_t **ret, il_error *reterr) MUST_USE;

/* Any other call, over an exchange that is then good for nothing else. An answer that is an error is one all the same. */
il_status il__server_request(struct server_exchange *x, struct il__request *r, il_error *reterr)
    MUST_USE;

#endif
