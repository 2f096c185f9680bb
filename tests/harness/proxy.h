/*
 * proxy.h: a TCP proxy in front of a server that drops what the test selects: the n-th request
 * before the server gets it, the n-th response after the server has sent it, or everything from now
 * on, like a cut network.
 *
 * It does not parse the data, only counts: what a client sends after the server's last response is
 * a request, and what the server sends after that is a response.
 */
#ifndef T_PROXY_H
#define T_PROXY_H

#include "harness/check.h"
#include "harness/tmp.h"

enum t_proxy_loss {
    T_PROXY_REQUEST, /* the request does not arrive; both sides see a closed connection */
    T_PROXY_ANSWER,  /* it arrives, but its answer does not */
};

struct t_proxy;

/* In front of `target`: a path (a unix socket) or HOST:PORT. It listens on a free port of
 * 127.0.0.1. */
struct t_proxy *t_proxy_new(const char *target);
void            t_proxy_free(struct t_proxy *p);
unsigned        t_proxy_port(const struct t_proxy *p);
/* In front of the server behind a store, as the harness makes them; `through` is the store's URL by
 * way of it. */
struct t_proxy *t_proxy_to_store(const char *url, char through[T_PATH_BYTES]);

/* Lose the n-th request or answer from now on, of any connection, counted from 1; once. */
void t_proxy_lose(struct t_proxy *p, enum t_proxy_loss what, unsigned n);
/* Has it been lost? */
bool t_proxy_lost(struct t_proxy *p);

/* From now on each answer arrives this much later at least, like that of a busy server. */
void t_proxy_delay(struct t_proxy *p, int ms);

/* From now on nothing passes, in neither direction, and connections stay open; or everything
 * again. */
void t_proxy_cut(struct t_proxy *p, bool cut);

#endif
