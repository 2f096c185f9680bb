/*
 * auth_failures.c: counts failed logins per address. See auth_failures.h.
 */
#include "http/auth_failures.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/hash.h"

#define MINUTE_NS (INT64_C(60000) * IL__NS_PER_MS)

struct http_failure {
    char name[HTTP_FAILURE_BYTES];
    /* when the bucket will be full again without further failures: the only state a bucket needs */
    int64_t              full_ns;
    struct http_failure *newer, *older;
};

/* An IPv6 customer typically has a whole /64, that is 2^64 addresses. */
static void
normalise(const char *address, char ret[HTTP_FAILURE_BYTES])
{
    struct in6_addr a;

    memset(ret, 0, HTTP_FAILURE_BYTES);
    /* no address is longer */
    (void)snprintf(ret, HTTP_FAILURE_BYTES, "%s", address != NULL ? address : "");
    if (inet_pton(AF_INET6, ret, &a) != 1 || IN6_IS_ADDR_V4MAPPED(&a))
        return;
    memset(&a.s6_addr[8], 0, 8);
    IGNORE(inet_ntop(AF_INET6, &a, ret, HTTP_FAILURE_BYTES) == NULL); /* the room is enough */
}

static struct http_failure *
find(const struct http_failures *t, const char *name, uint64_t hash)
{
    size_t               i = il__map_start(&t->map, hash);
    struct http_failure *a;

    while ((a = il__map_next(&t->map, hash, &i)) != NULL && strcmp(a->name, name) != 0)
        i++;
    return a;
}

static void
unlink_failure(struct http_failures *t, struct http_failure *a)
{
    *(a->newer != NULL ? &a->newer->older : &t->newest) = a->older;
    *(a->older != NULL ? &a->older->newer : &t->oldest) = a->newer;
    a->newer = a->older = NULL;
}

static void
link_newest(struct http_failures *t, struct http_failure *a)
{
    a->older                                              = t->newest;
    a->newer                                              = NULL;
    *(t->newest != NULL ? &t->newest->newer : &t->oldest) = a;
    t->newest                                             = a;
}

/* A row for a new address: an unused one, or that of the address quiet for longest. NULL: out of
 * memory; then failures are not counted. */
static struct http_failure *
add(struct http_failures *t, const char *name, uint64_t hash)
{
    struct http_failure *a;

    if (t->map.n >= HTTP_FAILURES_MAX) {
        a = t->oldest;
        unlink_failure(t, a);
        il__map_remove(&t->map, il__hash_bytes(a->name, strlen(a->name)), a);
    } else {
        a = il__calloc(1, sizeof *a);
    }
    if (a == NULL || !il__map_reserve(&t->map)) {
        il__free(a);
        return NULL;
    }
    *a = (struct http_failure){ .full_ns = 0 };
    memcpy(a->name, name, HTTP_FAILURE_BYTES);
    il__map_add(&t->map, hash, a);
    link_newest(t, a);
    return a;
}

int64_t
http_failures_wait_ms(struct http_failures *t, const char *address, int64_t per_minute,
                      int64_t now_ns)
{
    char name[HTTP_FAILURE_BYTES];

    if (per_minute <= 0 || t->map.n == 0)
        return 0;
    normalise(address, name);
    const struct http_failure *a = find(t, name, il__hash_bytes(name, strlen(name)));
    if (a == NULL)
        return 0;
    /* A full bucket holds one minute's worth of tokens. A token is available if the bucket will
     * be full within a minute minus one token's time. */
    int64_t wait_ns = a->full_ns - now_ns - (MINUTE_NS - MINUTE_NS / per_minute);
    return wait_ns > 0 ? (wait_ns + IL__NS_PER_MS - 1) / IL__NS_PER_MS : 0;
}

void
http_failures_add(struct http_failures *t, const char *address, int64_t per_minute, int64_t now_ns)
{
    char name[HTTP_FAILURE_BYTES];

    if (per_minute <= 0)
        return;
    normalise(address, name);
    uint64_t             hash = il__hash_bytes(name, strlen(name));
    struct http_failure *a    = find(t, name, hash);
    if (a == NULL)
        a = add(t, name, hash);
    if (a == NULL)
        return;
    a->full_ns = MIN(MAX(a->full_ns, now_ns) + MINUTE_NS / per_minute, now_ns + MINUTE_NS);
    unlink_failure(t, a);
    link_newest(t, a);
}

void
http_failures_release(struct http_failures *t)
{
    while (t->oldest != NULL) {
        struct http_failure *a = t->oldest;
        unlink_failure(t, a);
        il__free(a);
    }
    il__map_release(&t->map);
}
