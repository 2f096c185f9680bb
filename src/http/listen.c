/*
 * listen.c: addresses and listening sockets.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/parse.h"
#include "http/server.h"

#define BACKLOG 4096
#define UNIX "unix:"

union address {
    struct sockaddr     any;
    struct sockaddr_in  in;
    struct sockaddr_in6 in6;
    struct sockaddr_un  un;
};

struct place {
    union address address;
    socklen_t     n_bytes;
    bool          loopback;
};

static il_status
parse_unix(const char *path, struct place *ret, il_error *reterr)
{
    if (path[0] != '/')
        return il__error_set(reterr, IL_INVAL, "'" UNIX "%.80s': a socket path must start with '/'",
                             path);
    if (strlen(path) >= sizeof ret->address.un.sun_path)
        return il__error_set(reterr, IL_INVAL,
                             "'" UNIX "%.120s': a socket path has at most %zu bytes", path,
                             sizeof ret->address.un.sun_path - 1);
    ret->address.un.sun_family = AF_UNIX;
    memcpy(ret->address.un.sun_path, path, strlen(path) + 1);
    ret->n_bytes  = sizeof ret->address.un;
    ret->loopback = true;
    return IL_OK;
}

static bool
parse_port(const char *text, in_port_t *ret)
{
    unsigned port = 0;

    if (text[0] == '\0' || strlen(text) > 5 || strspn(text, "0123456789") != strlen(text))
        return false;
    for (; *text != '\0'; text++)
        port = port * 10 + (unsigned)(*text - '0');
    *ret = htons((in_port_t)port);
    return port <= 65535;
}

static bool
parse_host(const char *host, in_port_t port, struct place *ret)
{
    if (inet_pton(AF_INET, host, &ret->address.in.sin_addr) == 1) {
        ret->address.in.sin_family = AF_INET;
        ret->address.in.sin_port   = port;
        ret->n_bytes               = sizeof ret->address.in;
        ret->loopback              = ntohl(ret->address.in.sin_addr.s_addr) >> 24 == 127;
        return true;
    }
    if (inet_pton(AF_INET6, host, &ret->address.in6.sin6_addr) == 1) {
        ret->address.in6.sin6_family = AF_INET6;
        ret->address.in6.sin6_port   = port;
        ret->n_bytes                 = sizeof ret->address.in6;
        ret->loopback                = IN6_IS_ADDR_LOOPBACK(&ret->address.in6.sin6_addr);
        return true;
    }
    return false;
}

/* ADDRESS:PORT with a numeric address: a name can mean several addresses, and change.
 * `localhost` is the exception, because it is so common. */
static il_status
parse(const char *text, struct place *ret, il_error *reterr)
{
    char        host[64];
    const char *colon = strrchr(text, ':');
    in_port_t   port;

    *ret = (struct place){ 0 };
    if (strncmp(text, UNIX, strlen(UNIX)) == 0)
        return parse_unix(text + strlen(UNIX), ret, reterr);
    if (colon == NULL || !parse_port(colon + 1, &port))
        return il__error_set(
            reterr, IL_INVAL,
            "'%.80s' is not an address: use ADDRESS:PORT, [IPv6]:PORT or unix:/PATH", text);
    size_t n = (size_t)(colon - text);
    if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
        text++;
        n -= 2;
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)MIN(n, sizeof host - 1), text);
    if (strcmp(host, "localhost") == 0)
        memcpy(host, "127.0.0.1", sizeof "127.0.0.1");
    if (n >= sizeof host || !parse_host(host, port, ret))
        return il__error_set(reterr, IL_INVAL,
                             "'%.60s' is not an IP address (host names are not resolved)", host);
    return IL_OK;
}

il_status
http_address_check(const char *text, bool *ret_loopback, il_error *reterr)
{
    struct place place;
    il_status    st = parse(text, &place, reterr);

    if (st == IL_OK)
        *ret_loopback = place.loopback;
    return st;
}

/* The file of a unix socket stays behind when its server is killed. Remove it only if no one
 * listens. */
static il_status
remove_stale(const struct place *place, il_error *reterr)
{
    const char *path = place->address.un.sun_path;
    struct stat file;

    if (lstat(path, &file) != 0)
        return IL_OK;
    if (!S_ISSOCK(file.st_mode))
        return il__error_set(reterr, IL_INVAL, "%s exists and is not a socket", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return il__error_set(reterr, IL_STORE, "cannot create a socket: %s", strerror(errno));
    int  rc    = connect(fd, &place->address.any, place->n_bytes);
    bool alone = rc != 0 && errno == ECONNREFUSED;
    (void)close(fd); /* nothing was sent */
    if (!alone)
        return il__error_set(reterr, IL_INVAL, "address %s already in use", path);
    if (unlink(path) != 0)
        return il__error_set(reterr, IL_INVAL, "cannot remove %s: %s", path, strerror(errno));
    return IL_OK;
}

/* The actual address, with the port that was chosen. */
static void
name(struct http_listener *l, const struct place *asked)
{
    union address is                     = { 0 };
    socklen_t     n                      = sizeof is;
    char          text[INET6_ADDRSTRLEN] = "";

    if (asked->address.any.sa_family == AF_UNIX) {
        (void)snprintf(l->path, sizeof l->path, "%s", asked->address.un.sun_path);
        (void)snprintf(l->address, sizeof l->address, UNIX "%s", l->path);
        return;
    }
    if (getsockname(l->fd, &is.any, &n) != 0)
        is = asked->address;
    if (is.any.sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &is.in.sin_addr, text, sizeof text); /* the buffer fits */
        (void)snprintf(l->address, sizeof l->address, "%s:%u", text,
                       (unsigned)ntohs(is.in.sin_port));
    } else {
        (void)inet_ntop(AF_INET6, &is.in6.sin6_addr, text, sizeof text); /* as above */
        (void)snprintf(l->address, sizeof l->address, "[%s]:%u", text,
                       (unsigned)ntohs(is.in6.sin6_port));
    }
}

il_status
http_listen(struct http_listener *l, const char *text, il_error *reterr)
{
    struct place place;
    il_status    st         = parse(text, &place, reterr);
    int          on         = 1;
    unsigned     silence_ms = 60000;
    sa_family_t  family;

    CHECK(l->fd < 0);
    if (st != IL_OK)
        return st;
    family = place.address.any.sa_family;
    if (family == AF_UNIX && (st = remove_stale(&place, reterr)) != IL_OK)
        return st;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return il__error_set(reterr, IL_STORE, "cannot create a socket: %s", strerror(errno));
    /* None of these can fail on such a socket. SO_REUSEADDR: a restart need not wait for
     * connections of the previous server. */
    if (family != AF_UNIX)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    /* Detects a vanished peer when it does not acknowledge data; connections inherit the option. */
    if (family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof silence_ms);
    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    /* The file of a unix socket is private from the start: 0600. */
    mode_t mask  = umask(0177);
    bool   bound = bind(fd, &place.address.any, place.n_bytes) == 0;
    (void)umask(mask);
    if (!bound || listen(fd, BACKLOG) != 0) {
        st = il__error_set(reterr, IL_STORE, "cannot listen on %.140s: %s", text, strerror(errno));
        (void)close(fd); /* it was never used */
        return st;
    }
    l->fd = fd;
    name(l, &place);
    return IL_OK;
}

void
http_listen_end(struct http_listener *l)
{
    if (l->fd < 0)
        return;
    (void)close(l->fd); /* nothing is written to it */
    l->fd = -1;
    if (l->path[0] != '\0')
        (void)unlink(l->path); /* already removed is fine */
}
