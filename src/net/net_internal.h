/*
 * net_internal.h: declarations shared by url.c and conn.c.
 */
#ifndef IL_NET_INTERNAL_H
#define IL_NET_INTERNAL_H

#include "net/curl.h"

#define NET_PLACE_PARTS 3 /* scheme, host, port */

/* A parsed URL. libcurl owns all texts. */
struct net_url {
    char *text; /* without user, password and fragment */
    char *place[NET_PLACE_PARTS];
    char *user, *password; /* decoded; NULL = none */
    char  shown[NET_URL_BYTES];
};

/* Check and parse. A redirect may have ".." in its path, which is resolved: the server chooses its
 * target. IL_OK, IL_INVAL, IL_NOMEM; in any case ret->shown is set, and the caller releases
 * *ret. */
il_status il__net_url_parse(struct net_url *ret, const char *text, bool is_redirect,
                            il_error *reterr) MUST_USE;
void      il__net_url_release(struct net_url *u);
bool      il__net_url_same_place(const struct net_url *a, const struct net_url *b);

#endif
