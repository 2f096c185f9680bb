/*
 * http_bare.c: bare libmicrohttpd with our own epoll loop, one thread; reads and discards each
 * request's body, and responds with a constant of the same size as ours.
 */
#include "http_bare.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "bench.h"

/* Our server's responses to an acquire and to a release. */
static const char acquired[] =
    "{\"key\":\"bench:0:0001\",\"holder\":\"0-1\",\"fence\":1763222222222222,\"ttl_ms\":30000,"
    "\"expires_at\":\"2026-01-01T00:00:00.000Z\",\"remaining_ms\":30000}";
static const char released[] = "{\"released\":true}";

static const char *const headers[][2] = {
    { "Content-Type", "application/json" },
    { "Cache-Control", "no-store" },
    { "X-Content-Type-Options", "nosniff" },
    { "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'" },
    { "X-Request-Id", "01994d2c-7d1e-7000-8000-000000000000" },
};

static struct MHD_Response *
make_response(const char *body)
{
    union {
        const char *in;
        void       *out;
    } text = { .in = body }; /* it does not modify it */
    struct MHD_Response *r =
        MHD_create_response_from_buffer(strlen(body), text.out, MHD_RESPMEM_PERSISTENT);

    if (r == NULL)
        die("libmicrohttpd has no memory");
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        if (MHD_add_response_header(r, headers[i][0], headers[i][1]) != MHD_YES)
            die("libmicrohttpd takes no header");
    }
    return r;
}

struct answers {
    struct MHD_Response *acquired, *released, *got;
};

/* A body of $BENCH_BARE_BYTES, for GET. */
static struct MHD_Response *
make_sized(void)
{
    const char *text = getenv("BENCH_BARE_BYTES");
    size_t      n    = text != NULL ? strtoul(text, NULL, 10) : 0;
    char       *body = must_calloc(n + 1, 1);

    memset(body, 'x', n);
    return make_response(body); /* which keeps it */
}

static enum MHD_Result
answer(void *cookie, struct MHD_Connection *c, const char *url, const char *method,
       const char *version UNUSED, const char *body UNUSED, size_t *body_bytes, void **state)
{
    const struct answers *a = cookie;
    static char           begun;

    if (*state == NULL) {
        *state = &begun;
        return MHD_YES;
    }
    if (*body_bytes > 0) {
        *body_bytes = 0;
        return MHD_YES;
    }
    if (strcmp(method, "GET") == 0)
        return MHD_queue_response(c, MHD_HTTP_OK, a->got);
    return MHD_queue_response(c, MHD_HTTP_OK,
                              strstr(url, "release") != NULL ? a->released : a->acquired);
}

int
http_bare_main(void)
{
    struct answers     a     = { make_response(acquired), make_response(released), make_sized() };
    struct sockaddr_in where = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, &a, MHD_OPTION_SOCK_ADDR, &where,
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16384, MHD_OPTION_END);
    if (daemon == NULL)
        die("libmicrohttpd does not start");
    (void)printf("%u\n", (unsigned)MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    (void)fflush(stdout);
    int                ep    = epoll_create1(EPOLL_CLOEXEC);
    int                inner = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    struct epoll_event event = { .events = EPOLLIN };
    CHECK(ep >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, inner, &event) == 0);
    for (;;) {
        (void)epoll_wait(ep, &event, 1, 1000); /* whatever ends it, check again */
        (void)MHD_run(daemon);
    }
}
