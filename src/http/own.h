/*
 * own.h: ops of the server's own: nobody asked for them, nobody waits for them. They go through the il__async as those of requests do, so that a store that is
 * slow or down holds up neither the loop nor the office thread, which answers for keys. The loop's alone.
 */
#ifndef IL_HTTP_OWN_H
#define IL_HTTP_OWN_H

#include "http/http.h"

struct http_own {
    struct il__call  call; /* its ops and their statuses; call.status: were they applied at all */
    struct http_item item;
    struct http_server *server;
    void (*then)(struct http_own *own);
};

/* Apply n ops, whose tenants are set; then(own) follows on the loop, never before this returns. False: the server is being taken down, nothing follows. */
bool http_own_send(struct http_server *s, struct http_own *own, il_op *ops, size_t n,
                   void (*then)(struct http_own *own)) MUST_USE;

/*
 * Several listings at once, page by page: take() for each page, with the place of its op among those that were given; then then(), with IL_OK or why it
 * ended before.
 */
#define HTTP_LISTINGS_MAX 64
struct http_listings {
    struct http_own own;
    il_op           ops[HTTP_LISTINGS_MAX];
    size_t          n;
    unsigned        pages_max; /* of each */
    bool (*take)(struct http_listings *l, size_t place,
                 const il_op *op); /* false: no more pages of this one */
    void (*then)(struct http_listings *l, il_status status);
    /* own.c's: */
    size_t   places[HTTP_LISTINGS_MAX];
    unsigned n_pages;
    void    *mem; /* cursors */
};
/* ops[0 .. n), take, then and pages_max are set. False as above. */
bool http_listings_send(struct http_server *s, struct http_listings *l) MUST_USE;
void http_listings_release(struct http_listings *l); /* after the end */

#endif
