/*
 * proxy.c: the proxy: one thread with poll(), and pairs of sockets.
 */
#include "harness/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PAIRS_MAX 64

struct pair {
    int  client, server; /* -1: unused */
    bool asking;         /* the last bytes were the client's */
};

struct t_proxy {
    char              target[512];
    int               listener;
    unsigned          port;
    int               bell[2]; /* a pipe: makes the thread look again */
    pthread_t         thread;
    struct pair       pairs[PAIRS_MAX]; /* the thread's own */
    pthread_mutex_t   mutex;            /* protects what follows */
    enum t_proxy_loss what;
    unsigned          left; /* until something is lost; 0 = nothing will be */
    bool              lost, cut, closing;
    int               delay_ms; /* of each answer */
};

static int
connect_unix(const char *path)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && strlen(path) < sizeof to.sun_path);
    memcpy(to.sun_path, path, strlen(path) + 1);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static int
connect_tcp(const char *target)
{
    struct sockaddr_in to    = { .sin_family = AF_INET };
    const char        *colon = strrchr(target, ':');
    char               host[64];
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && colon != NULL);
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - target), target);
    to.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    CHECK(inet_pton(AF_INET, host, &to.sin_addr) == 1);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static void
hang_up(struct pair *pair)
{
    if (pair->client >= 0)
        close(pair->client);
    if (pair->server >= 0)
        close(pair->server);
    *pair = (struct pair){ -1, -1, false };
}

static void
accept_one(struct t_proxy *p)
{
    int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);

    if (client < 0)
        return;
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        if (p->pairs[i].client >= 0)
            continue;
        int server  = p->target[0] == '/' ? connect_unix(p->target) : connect_tcp(p->target);
        p->pairs[i] = (struct pair){ client, server, false };
        if (server < 0)
            hang_up(&p->pairs[i]); /* the server is down: so are we */
        return;
    }
    close(client);
}

/* One more request or answer: is it the one to be lost? */
static bool
is_lost(struct t_proxy *p, enum t_proxy_loss what)
{
    bool lost = false;

    CHECK(pthread_mutex_lock(&p->mutex) == 0);
    if (p->left > 0 && p->what == what && --p->left == 0)
        p->lost = lost = true;
    CHECK(pthread_mutex_unlock(&p->mutex) == 0);
    return lost;
}

static bool
send_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        data += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* Hold an answer back; the other pairs wait, too. */
static void
delay(struct t_proxy *p)
{
    CHECK(pthread_mutex_lock(&p->mutex) == 0);
    int ms = p->delay_ms;
    CHECK(pthread_mutex_unlock(&p->mutex) == 0);
    if (ms > 0)
        (void)poll(NULL, 0, ms);
}

static void
pass(struct t_proxy *p, struct pair *pair, bool from_client)
{
    static char data[65536];
    int         from = from_client ? pair->client : pair->server;
    int         to   = from_client ? pair->server : pair->client;
    ssize_t     n    = recv(from, data, sizeof data, 0);
    bool        turn = from_client != pair->asking; /* the other side speaks now */

    pair->asking = from_client;
    if (turn && !from_client)
        delay(p);
    if (n <= 0 || (turn && is_lost(p, from_client ? T_PROXY_REQUEST : T_PROXY_ANSWER)) ||
        !send_all(to, data, (size_t)n))
        hang_up(pair);
}

static bool
is_cut(struct t_proxy *p, bool *ret_closing)
{
    CHECK(pthread_mutex_lock(&p->mutex) == 0);
    bool cut     = p->cut;
    *ret_closing = p->closing;
    CHECK(pthread_mutex_unlock(&p->mutex) == 0);
    return cut;
}

static void *
serve(void *arg)
{
    struct t_proxy *p = arg;
    bool            closing;
    char            byte;

    for (;;) {
        struct pollfd fds[2 + 2 * PAIRS_MAX];
        bool          cut = is_cut(p, &closing);
        if (closing)
            return NULL;
        fds[0] = (struct pollfd){ .fd = p->bell[0], .events = POLLIN };
        fds[1] = (struct pollfd){ .fd = cut ? -1 : p->listener, .events = POLLIN };
        for (size_t i = 0; i < PAIRS_MAX; i++) {
            fds[2 + 2 * i] =
                (struct pollfd){ .fd = cut ? -1 : p->pairs[i].client, .events = POLLIN };
            fds[2 + 2 * i + 1] =
                (struct pollfd){ .fd = cut ? -1 : p->pairs[i].server, .events = POLLIN };
        }
        CHECK(poll(fds, ARRAY_LEN(fds), -1) >= 0 || errno == EINTR);
        if (fds[0].revents != 0)
            CHECK(read(p->bell[0], &byte, 1) == 1);
        for (size_t i = 0; i < PAIRS_MAX; i++) {
            if (fds[2 + 2 * i].revents != 0)
                pass(p, &p->pairs[i], true);
            if (fds[2 + 2 * i + 1].revents != 0 && p->pairs[i].server >= 0)
                pass(p, &p->pairs[i], false);
        }
        if (fds[1].revents != 0)
            accept_one(p);
    }
}

static void
ring(struct t_proxy *p)
{
    CHECK(write(p->bell[1], "x", 1) == 1);
}

struct t_proxy *
t_proxy_new(const char *target)
{
    struct t_proxy    *p    = calloc(1, sizeof *p);
    struct sockaddr_in at   = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          n_at = sizeof at;

    CHECK(p != NULL && pthread_mutex_init(&p->mutex, NULL) == 0);
    (void)snprintf(p->target, sizeof p->target, "%s", target);
    for (size_t i = 0; i < PAIRS_MAX; i++)
        p->pairs[i] = (struct pair){ -1, -1, false };
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(p->listener >= 0 && bind(p->listener, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK(listen(p->listener, 64) == 0);
    CHECK(getsockname(p->listener, (struct sockaddr *)&at, &n_at) == 0);
    p->port = ntohs(at.sin_port);
    CHECK(pipe2(p->bell, O_CLOEXEC) == 0);
    CHECK(pthread_create(&p->thread, NULL, serve, p) == 0);
    return p;
}

void
t_proxy_free(struct t_proxy *p)
{
    if (p == NULL)
        return;
    CHECK(pthread_mutex_lock(&p->mutex) == 0);
    p->closing = true;
    CHECK(pthread_mutex_unlock(&p->mutex) == 0);
    ring(p);
    CHECK(pthread_join(p->thread, NULL) == 0);
    for (size_t i = 0; i < PAIRS_MAX; i++)
        hang_up(&p->pairs[i]);
    close(p->listener);
    close(p->bell[0]);
    close(p->bell[1]);
    CHECK(pthread_mutex_destroy(&p->mutex) == 0);
    free(p);
}

struct t_proxy *
t_proxy_to_store(const char *url, char through[T_PATH_BYTES])
{
    char            target[T_PATH_BYTES];
    struct t_proxy *p;

    if (strncmp(url, "redis", 5) == 0) { /* redis+unix:///path?options */
        const char *path    = strstr(url, "://") + 3;
        const char *options = strchr(path, '?') + 1;
        t_path(target, "%.*s", (int)(options - 1 - path), path);
        p = t_proxy_new(target);
        t_path(through, "redis://127.0.0.1:%u?%s", t_proxy_port(p), options);
    } else { /* postgres://user@/database?host=/path&options */
        const char *path = strstr(url, "host=") + 5;
        t_path(target, "%.*s/.s.PGSQL.5432", (int)strcspn(path, "&"), path);
        p = t_proxy_new(target);
        t_path(through, "postgres://postgres@127.0.0.1:%u/postgres?sslmode=disable&%s",
               t_proxy_port(p), strstr(url, "schema="));
    }
    return p;
}

unsigned
t_proxy_port(const struct t_proxy *p)
{
    return p->port;
}

void
t_proxy_lose(struct t_proxy *p, enum t_proxy_loss what, unsigned n)
{
    CHECK(pthread_mutex_lock(&p->mutex) == 0);
    p->what = what;
    p->left = n;
    p->lost = false;
    CHECK(pthread_mutex_unlock(&p->mutex) == 0);
}

bool
t_proxy_lost(struct t_proxy *p)
{
    CHECK(pthread_mutex_lock(&p->mutex) == 0);
    bool lost = p->lost;
    CHECK(pthread_mutex_unlock(&p->mutex) == 0);
    return lost;
}

void
t_proxy_delay(struct t_proxy *p, int ms)
{
    CHECK(pthread_mutex_lock(&p->mutex) == 0);
    p->delay_ms = ms;
    CHECK(pthread_mutex_unlock(&p->mutex) == 0);
}

void
t_proxy_cut(struct t_proxy *p, bool cut)
{
    CHECK(pthread_mutex_lock(&p->mutex) == 0);
    p->cut = cut;
    CHECK(pthread_mutex_unlock(&p->mutex) == 0);
    ring(p);
}
