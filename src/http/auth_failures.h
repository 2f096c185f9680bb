/*
 * auth_failures.h: counts failed logins per address: one token bucket each, in a table of fixed
 * size that evicts the address quiet for longest. Used on the loop only.
 */
#ifndef IL_HTTP_AUTH_FAILURES_H
#define IL_HTTP_AUTH_FAILURES_H

#include "base/map.h"

#define HTTP_FAILURES_MAX 4096
#define HTTP_FAILURE_BYTES 64

struct http_failure;

struct http_failures {
    struct il__map       map;
    struct http_failure *newest, *oldest;
};

void http_failures_release(struct http_failures *t);

/* May this address try another key? 0 = yes; otherwise the time until it may. An IPv6 /64 counts
 * as one address. per_minute <= 0: always yes. */
int64_t http_failures_wait_ms(struct http_failures *t, const char *address, int64_t per_minute,
                              int64_t now_ns);
/* The address sent a wrong key. */
void http_failures_add(struct http_failures *t, const char *address, int64_t per_minute,
                       int64_t now_ns);

#endif
