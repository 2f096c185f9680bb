/*
 * server_ops.h: ops that the server applies for itself (counts, metrics), not for a request. They
 * go through the il__async like those of requests, so a slow or unreachable store blocks neither
 * the loop nor the errand thread, which looks up keys. Used on the loop only. Request handlers use
 * http_do() (handler.h) instead, which checks permissions.
 */
#ifndef IL_HTTP_SERVER_OPS_H
#define IL_HTTP_SERVER_OPS_H

#include "http/http.h"

struct http_server_call {
    struct il__call  call; /* its ops and their statuses; call.status: were they applied at all */
    struct http_item item;
    struct http_server *server;
    void (*then)(struct http_server_call *own);
};

/* Apply n ops, whose tenants are set; then(own) follows on the loop, never before this returns.
 * False: the server is shutting down, nothing follows. */
bool http_server_apply(struct http_server *s, struct http_server_call *own, il_op *ops, size_t n,
                       void (*then)(struct http_server_call *own)) MUST_USE;

/* Several listings at once, page by page: take() is called for each page with the index of its
 * op, then then() with IL_OK or the reason for stopping early. */
#define HTTP_LISTINGS_MAX 64
struct http_listings {
    struct http_server_call own;
    il_op                   ops[HTTP_LISTINGS_MAX];
    size_t                  n;
    unsigned                pages_max; /* of each */
    bool (*take)(struct http_listings *l, size_t place,
                 const il_op *op); /* false: no more pages of this one */
    void (*then)(struct http_listings *l, il_status status);
    /* Private to server_ops.c: */
    size_t   places[HTTP_LISTINGS_MAX];
    unsigned n_pages;
    void    *mem; /* cursors */
};
/* ops[0 .. n), take, then and pages_max are set. False as above. */
bool http_listings_send(struct http_server *s, struct http_listings *l) MUST_USE;
void http_listings_release(struct http_listings *l); /* after the end */

#endif
