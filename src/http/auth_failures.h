/*
 * auth_failures.h: failed logins per address: a token bucket each, in a table of fixed size that forgets whoever was quiet longest. The loop's alone.
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

/* May this address try another key? 0 = yes; else how long until it may. Networks of IPv6 (/64) count as one address. per_minute <= 0: always. */
int64_t http_failures_wait_ms(struct http_failures *t, const char *address, int64_t per_minute,
                              int64_t now_ns);
/* It showed a wrong one. */
void http_failures_add(struct http_failures *t, const char *address, int64_t per_minute,
                       int64_t now_ns);

#endif
