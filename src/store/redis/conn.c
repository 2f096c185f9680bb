/*
 * conn.c: a connection to a Redis server. Commands are buffered and sent together; hiredis parses
 * the replies. Every wait is bounded by the deadline of the whole call, and ends early when
 * `stop_fd` becomes readable.
 *
 * library.c decides what to send (login, database, hello).
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dl.h"
#include "base/error.h"
#include "store/redis/redis_internal.h"

#define OUT_BYTES_MAX ((size_t)1 << 30)
#define OUT_BYTES_KEPT ((size_t)1 << 20) /* memory of a larger batch is given back */
#define READ_BYTES 16384
#define BLOCK_MS 50
/* after this, a connection is checked before it is used */
#define IDLE_NS (INT64_C(100) * IL__NS_PER_MS)

/* ---- hiredis --------------------------------------------------------------------------------- */

struct redis_api il__redis_api;

#define STRINGIFY(x) #x
#define SONAME_OF(version) "libhiredis.so." STRINGIFY(version)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool           loaded;
static char           why_not[160];

static void
load(void)
{
    static const struct il__dl_symbol symbols[] = {
#define X(name) IL__DL_SYMBOL(struct redis_api, name)
#include "store/redis/hiredis.def"
#undef X
    };
    static const struct il__dl dl = { SONAME_OF(HIREDIS_SONAME), "libhiredis", symbols,
                                      ARRAY_LEN(symbols) };

    loaded = il__dl_load(&dl, &il__redis_api, why_not, sizeof why_not);
}

il_status
il__redis_load(il_error *reterr)
{
    CHECK(pthread_once(&once, load) == 0);
    if (!loaded)
        return il__error_set(reterr, IL_STORE, "redis: %s", why_not);
    return IL_OK;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Record why a connection failed, and close it. */
static il_status
fail(struct redis_conn *c, const char *what, int err, il_error *reterr)
{
    char text[128];

    il__redis_conn_drop(c);
    return il__error_set(reterr, IL_STORE, "%s: %s%s%s", c->url->shown, what, err != 0 ? ": " : "",
                         err != 0 ? strerror_r(err, text, sizeof text) : "");
}

/* Wait until the socket is ready for `events`. */
static il_status
await(struct redis_conn *c, short events, int64_t deadline_ns, il_error *reterr)
{
    struct pollfd fds[2] = { { .fd = c->fd, .events = events },
                             { .fd = c->stop_fd, .events = POLLIN } };

    for (;;) {
        int64_t left_ns = deadline_ns - il__clock_boot_ns();
        if (left_ns <= 0)
            return fail(c, "timed out waiting for a reply", 0, reterr);
        struct timespec timeout = { .tv_sec  = left_ns / 1000000000,
                                    .tv_nsec = left_ns % 1000000000 };
        int             n       = ppoll(fds, ARRAY_LEN(fds), &timeout, NULL);
        if (n < 0 && errno != EINTR)
            return fail(c, "poll", errno, reterr);
        if (n > 0 && fds[1].revents != 0)
            return fail(c, "the wait was interrupted", 0, reterr);
        if (n > 0 && fds[0].revents != 0)
            return IL_OK;
    }
}

/* ---- connecting ------------------------------------------------------------------------------ */

void
il__redis_conn_init(struct redis_conn *c, const struct redis_url *url, struct ssl_ctx *ctx)
{
    *c = (struct redis_conn){ .url = url, .ctx = ctx, .fd = -1, .stop_fd = -1 };
    il__buf_init(&c->out, OUT_BYTES_MAX);
}

void
il__redis_conn_drop(struct redis_conn *c)
{
    if (c->ssl != NULL)
        il__redis_tls_free(TAKE(c->ssl));
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd     = -1;
    c->blocks = false;
    if (c->reader != NULL)
        il__redis_api.redisReaderFree(TAKE(c->reader));
    il__buf_clear(&c->out);
}

void
il__redis_conn_release(struct redis_conn *c)
{
    il__redis_conn_drop(c);
    il__buf_release(&c->out);
}

/* Connect a new socket; IL_OK with c->fd, or the error. */
static il_status
dial(struct redis_conn *c, const struct sockaddr *address, socklen_t n_bytes, int64_t deadline_ns,
     il_error *reterr)
{
    int       err = 0;
    socklen_t n   = sizeof err;

    c->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return fail(c, "socket", errno, reterr);
    if (connect(c->fd, address, n_bytes) == 0)
        return IL_OK;
    if (errno != EINPROGRESS && errno != EAGAIN)
        return fail(c, "cannot connect", errno, reterr);
    il_status st = await(c, POLLOUT, deadline_ns, reterr);
    if (st != IL_OK)
        return st;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &n) != 0 || err != 0)
        return fail(c, "cannot connect", err, reterr);
    return IL_OK;
}

static il_status
dial_path(struct redis_conn *c, int64_t deadline_ns, il_error *reterr)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    size_t             n = strlen(c->url->path);

    if (n >= sizeof a.sun_path)
        return il__error_set(reterr, IL_INVAL, "%s: socket path too long", c->url->shown);
    memcpy(a.sun_path, c->url->path, n + 1);
    return dial(c, (const struct sockaddr *)&a, sizeof a, deadline_ns, reterr);
}

/*
 * Requests are sent whole, so Nagle's delay gains nothing. The deadline of the next call detects a
 * server that vanished silently; but a listener sends nothing, so there the kernel has to probe.
 */
static void
set_options(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        { IPPROTO_TCP, TCP_NODELAY, 1 },   { SOL_SOCKET, SO_KEEPALIVE, 1 },
        { IPPROTO_TCP, TCP_KEEPIDLE, 10 }, { IPPROTO_TCP, TCP_KEEPINTVL, 5 },
        { IPPROTO_TCP, TCP_KEEPCNT, 3 },
    };

    for (size_t i = 0; i < ARRAY_LEN(options); i++) /* cannot fail on a socket of TCP */
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

int64_t
il__redis_attempt_deadline(int64_t deadline_ns, size_t n)
{
    int64_t now_ns = il__clock_boot_ns();

    return now_ns + (deadline_ns - now_ns) / (int64_t)n;
}

static il_status
dial_host(struct redis_conn *c, size_t i_host, int64_t deadline_ns, il_error *reterr)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo      *found = NULL;

    /* Host names go to the resolver, which has its own timeouts. */
    int rc = getaddrinfo(c->url->hosts[i_host].name, c->url->hosts[i_host].port, &hints, &found);
    if (rc != 0)
        return il__error_set(reterr, IL_STORE, "%s: %s", c->url->shown, gai_strerror(rc));
    il_status st     = IL_STORE;
    size_t    n_left = 0;
    for (const struct addrinfo *a = found; a != NULL; a = a->ai_next)
        n_left++;
    for (const struct addrinfo *a = found; a != NULL && st != IL_OK; a = a->ai_next, n_left--)
        st = dial(c, a->ai_addr, a->ai_addrlen, il__redis_attempt_deadline(deadline_ns, n_left),
                  reterr);
    freeaddrinfo(found);
    if (st == IL_OK)
        set_options(c->fd);
    return st;
}

static il_status
shake_hands(struct redis_conn *c, const char *host, int64_t deadline_ns, il_error *reterr)
{
    c->ssl = il__redis_tls_new(c->ctx, c->fd, host);
    if (c->ssl == NULL)
        return fail(c, "out of memory for TLS", 0, reterr);
    for (;;) {
        int rc = il__redis_tls_connect(c->ssl);
        if (rc > 0)
            return IL_OK;
        if (rc == REDIS_IO_FAILED)
            return fail(c, il__redis_tls_why(c->ssl), 0, reterr);
        if (await(c, rc == REDIS_IO_READ ? POLLIN : POLLOUT, deadline_ns, reterr) != IL_OK)
            return il__error_set(
                reterr, IL_STORE,
                "%s: no reply to the TLS handshake; is this the server's TLS port?", c->url->shown);
    }
}

/* A connection that need not be interruptible waits in recv() itself. */
static bool
set_blocking(int fd)
{
    const struct timeval timeout = { .tv_usec = BLOCK_MS * 1000 };
    int                  flags   = fcntl(fd, F_GETFL);

    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0 && flags >= 0 &&
           fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

il_status
il__redis_conn_dial(struct redis_conn *c, size_t i_host, int64_t deadline_ns, il_error *reterr)
{
    il__redis_conn_drop(c);
    il_status st = c->url->path != NULL ? dial_path(c, deadline_ns, reterr)
                                        : dial_host(c, i_host, deadline_ns, reterr);
    if (st == IL_OK && c->url->tls)
        st = shake_hands(c, c->url->hosts[i_host].name, deadline_ns, reterr);
    if (st != IL_OK)
        return st;
    c->reader = il__redis_api.redisReaderCreate();
    if (c->reader == NULL) {
        il__redis_conn_drop(c);
        return il__error_set(reterr, IL_NOMEM, "out of memory for a connection");
    }
    c->blocks  = c->ssl == NULL && c->stop_fd < 0 && set_blocking(c->fd);
    c->used_ns = il__clock_boot_ns();
    return IL_OK;
}

bool
il__redis_conn_is_dead(struct redis_conn *c)
{
    struct pollfd fd = { .fd = c->fd, .events = POLLIN | POLLRDHUP };

    if (c->fd < 0)
        return true;
    if (il__clock_boot_ns() - c->used_ns < IDLE_NS)
        return false;
    /* No request is pending, so anything readable means that the connection has ended. */
    return poll(&fd, 1, 0) > 0;
}

/* ---- commands -------------------------------------------------------------------------------- */

static void
put_count(struct redis_conn *c, char kind, size_t n)
{
    char  digits[32];
    char *at = digits + sizeof digits;

    *--at = '\n';
    *--at = '\r';
    do {
        *--at = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    *--at = kind;
    il__buf_add(&c->out, at, (size_t)(digits + sizeof digits - at));
}

void
il__redis_put(struct redis_conn *c, size_t n_args)
{
    put_count(c, '*', n_args);
}

void
il__redis_arg(struct redis_conn *c, const void *data, size_t n_bytes)
{
    put_count(c, '$', n_bytes);
    il__buf_add(&c->out, data, n_bytes);
    il__buf_add(&c->out, "\r\n", 2);
}

void
il__redis_args(struct redis_conn *c, const char *text)
{
    il__redis_arg(c, text, strlen(text));
}

void
il__redis_say_words(struct redis_conn *c, const char *const words[])
{
    size_t n = 0;

    while (words[n] != NULL)
        n++;
    il__redis_put(c, n);
    for (size_t i = 0; i < n; i++)
        il__redis_args(c, words[i]);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* How many bytes, or enum redis_io. */
static int
read_some(struct redis_conn *c, void *data, size_t n, int flags)
{
    if (c->ssl != NULL)
        return il__redis_tls_read(c->ssl, data, n);
    ssize_t rc = recv(c->fd, data, n, flags);
    if (rc > 0)
        return (int)rc;
    if (rc == 0)
        errno = 0;
    return rc < 0 && (errno == EAGAIN || errno == EINTR) ? REDIS_IO_READ : REDIS_IO_FAILED;
}

static int
write_some(struct redis_conn *c, const void *data, size_t n)
{
    if (c->ssl != NULL)
        return il__redis_tls_write(c->ssl, data, n);
    ssize_t rc = send(c->fd, data, MIN(n, 1 << 20), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (rc >= 0)
        return (int)rc;
    return errno == EAGAIN || errno == EINTR ? REDIS_IO_WRITE : REDIS_IO_FAILED;
}

static il_status
lost(struct redis_conn *c, il_error *reterr)
{
    int err = errno;

    return fail(c, err != 0 ? "connection lost" : "the server closed the connection", err, reterr);
}

/* Feed received bytes to the parser. *ret_io: what to wait for when there are none. flags: for
 * recv(). */
static il_status
feed(struct redis_conn *c, int flags, int *ret_io, il_error *reterr)
{
    char bytes[READ_BYTES];
    int  n = read_some(c, bytes, sizeof bytes, flags);

    *ret_io = n;
    if (n == REDIS_IO_FAILED)
        return lost(c, reterr);
    if (n > 0 && il__redis_api.redisReaderFeed(c->reader, bytes, (size_t)n) != REDIS_OK)
        return fail(c, "out of memory for an answer", 0, reterr);
    return IL_OK;
}

/*
 * Send the buffered commands. While the server accepts no more, read its replies, so that neither
 * side waits for the other.
 */
il_status
il__redis_send(struct redis_conn *c, int64_t deadline_ns, il_error *reterr)
{
    size_t    sent = 0;
    il_status st   = IL_OK;

    if (c->out.failed) {
        /* Half a command must be neither sent nor kept. */
        il__buf_release(&c->out);
        return il__error_set(reterr, IL_NOMEM, "out of memory for a batch");
    }
    while (st == IL_OK && sent < c->out.n_bytes) {
        int n = write_some(c, c->out.data + sent, c->out.n_bytes - sent);
        if (n >= 0) {
            sent += (size_t)n;
            continue;
        }
        if (n == REDIS_IO_FAILED)
            return lost(c, reterr);
        st = await(c, POLLIN | (n == REDIS_IO_WRITE ? POLLOUT : 0), deadline_ns, reterr);
        if (st == IL_OK)
            st = feed(c, MSG_DONTWAIT, &n, reterr);
    }
    if (st == IL_OK && c->out.capacity > OUT_BYTES_KEPT)
        il__buf_release(&c->out);
    else if (st == IL_OK)
        il__buf_clear(&c->out);
    return st;
}

/* Wait until the parser has got input, or for the deadline. */
static il_status
await_more(struct redis_conn *c, int64_t deadline_ns, il_error *reterr)
{
    int       io;
    il_status st;

    if (c->blocks) {
        /* One system call instead of two: it returns after BLOCK_MS at the latest, and the caller
         * calls again. */
        if (il__clock_boot_ns() >= deadline_ns)
            return fail(c, "timed out waiting for a reply", 0, reterr);
        return feed(c, 0, &io, reterr);
    }
    st = c->ssl != NULL ? IL_OK : await(c, POLLIN, deadline_ns, reterr);
    if (st == IL_OK)
        st = feed(c, MSG_DONTWAIT, &io, reterr);
    /* TLS may have it in its own buffer, so ask it first. */
    if (st == IL_OK && c->ssl != NULL && io < 0)
        st = await(c, io == REDIS_IO_WRITE ? POLLOUT : POLLIN, deadline_ns, reterr);
    return st;
}

il_status
il__redis_recv(struct redis_conn *c, int64_t deadline_ns, redisReply **ret, il_error *reterr)
{
    void *reply = NULL;

    for (;;) {
        if (il__redis_api.redisReaderGetReply(c->reader, &reply) != REDIS_OK)
            return fail(c, "the peer does not speak the Redis protocol", 0, reterr);
        if (reply != NULL) {
            c->used_ns = il__clock_boot_ns();
            *ret       = reply;
            return IL_OK;
        }
        il_status st = await_more(c, deadline_ns, reterr);
        if (st != IL_OK)
            return st;
    }
}
