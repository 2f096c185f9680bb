/*
 * conn.c: connections: the number per address, and their deadlines.
 *
 * libmicrohttpd only tracks how long a connection has been idle, so a client that sends one byte
 * per second could hold it forever. Here each phase has an absolute deadline. When it passes, the
 * socket is shut down; libmicrohttpd then sees the end of the stream and cleans up.
 */
#include "http/conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "http/mhd.h"
#include "http/server.h"

#define SECOND_NS (INT64_C(1000) * IL__NS_PER_MS)
#define LINGER_NS (2 * SECOND_NS)

static const int64_t phase_ns[HTTP_PHASE_COUNT] = {
    [HTTP_PHASE_WORK]  = 0,
    [HTTP_PHASE_FRESH] = 10 * SECOND_NS,
    /* A client that sends its next head slowly gets no more time than an idle one. */
    [HTTP_PHASE_IDLE]   = 60 * SECOND_NS,
    [HTTP_PHASE_BODY]   = 30 * SECOND_NS,
    [HTTP_PHASE_ANSWER] = 60 * SECOND_NS,
    [HTTP_PHASE_ENDING] = SECOND_NS / 2,
};

/* The number of connections of an address. IPv4 is mapped to IPv6; for IPv6 the /64 counts,
 * which is what one customer typically has. */
struct http_address {
    unsigned char bytes[16];
    uint64_t      hash;
    unsigned      n;
    char          text[INET6_ADDRSTRLEN];
};

void
http_conns_init(struct http_server *s)
{
    il__hash_init();
    s->conns = (struct http_conns){ 0 };
}

void
http_conns_release(struct http_server *s)
{
    CHECK(s->conns.n_open == 0);
    while (s->conns.n_linger > 0)
        (void)close(s->conns.linger[--s->conns.n_linger].fd); /* was only kept open */
    il__map_release(&s->conns.addresses);
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* False: not an IP address. */
static bool
bytes_of(const struct sockaddr *from, unsigned char ret[16])
{
    memset(ret, 0, 16);
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)from;
        ret[10] = ret[11] = 0xff;
        memcpy(ret + 12, &in->sin_addr, 4);
        return true;
    }
    if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6    = (const void *)from;
        bool                       mapped = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
        memcpy(ret, &in6->sin6_addr, mapped ? 16 : 8);
        return true;
    }
    return false;
}

static struct http_address *
find_address(struct http_server *s, const unsigned char bytes[16], uint64_t hash)
{
    struct http_address *a;

    for (size_t i = il__map_start(&s->conns.addresses, hash);
         (a = il__map_next(&s->conns.addresses, hash, &i)) != NULL; i++) {
        if (memcmp(a->bytes, bytes, 16) == 0)
            return a;
    }
    return NULL;
}

static struct http_address *
add_address(struct http_server *s, const struct sockaddr *from, const unsigned char bytes[16],
            uint64_t hash)
{
    struct http_address *a = il__calloc(1, sizeof *a);
    const void          *in;

    if (a == NULL || !il__map_reserve(&s->conns.addresses)) {
        il__free(a);
        return NULL;
    }
    memcpy(a->bytes, bytes, 16);
    a->hash = hash;
    in      = from->sa_family == AF_INET
                  ? (const void *)&((const struct sockaddr_in *)(const void *)from)->sin_addr
                  : &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
    if (inet_ntop(from->sa_family, in, a->text, sizeof a->text) == NULL)
        a->text[0] = '\0';
    il__map_add(&s->conns.addresses, hash, a);
    return a;
}

/* 127.0.0.0/8, or ::1, of which only the network part is left. */
static bool
is_loopback(const struct sockaddr *from, const unsigned char bytes[16])
{
    if (from->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)from)->sin6_addr);
    return bytes[12] == 127;
}

bool
http_conn_admit(struct http_server *s, const struct sockaddr *from)
{
    unsigned char        bytes[16];
    struct http_address *a;

    /* Loopback may be a proxy for many clients, or many processes: only the total is limited. */
    if (from == NULL || !bytes_of(from, bytes) || is_loopback(from, bytes))
        return true;
    a = find_address(s, bytes, il__hash_bytes(bytes, sizeof bytes));
    if (a == NULL || a->n < s->o->connections_per_ip_max)
        return true;
    s->conns.n_refused++;
    return false;
}

/* NULL is valid for a unix socket; *ret_ok false: out of memory. */
static struct http_address *
hold_address(struct http_server *s, const struct sockaddr *from, bool *ret_ok)
{
    unsigned char        bytes[16];
    struct http_address *a;

    *ret_ok = true;
    if (from == NULL || !bytes_of(from, bytes))
        return NULL;
    uint64_t hash = il__hash_bytes(bytes, sizeof bytes);
    a             = find_address(s, bytes, hash);
    if (a == NULL)
        a = add_address(s, from, bytes, hash);
    if (a == NULL)
        *ret_ok = false;
    else
        a->n++;
    return a;
}

static void
leave_address(struct http_server *s, struct http_address *a)
{
    if (a == NULL || --a->n > 0)
        return;
    il__map_remove(&s->conns.addresses, a->hash, a);
    il__free(a);
}

const char *
http_conn_peer(const struct http_conn *c)
{
    return c->address != NULL ? c->address->text : "unix";
}

/* Always compares all bytes, so that the timing reveals nothing about the remembered key. */
static bool
is_same_key(const char a[DATA_KEY_BYTES_MAX], const char b[DATA_KEY_BYTES_MAX])
{
    unsigned char differs = 0;

    for (size_t i = 0; i < DATA_KEY_BYTES_MAX; i++)
        differs |= (unsigned char)(a[i] ^ b[i]);
    return differs == 0;
}

void
http_conn_key_hash(struct http_server *s, struct http_conn *c, const char *key,
                   unsigned char ret[DATA_HASH_BYTES])
{
    char   shown[DATA_KEY_BYTES_MAX] = { 0 };
    size_t n                         = strlen(key);

    if (n == 0 || n >= sizeof shown) {
        il__data_key_hash(s->data, key, n, ret);
        return;
    }
    memcpy(shown, key, n + 1);
    if (!is_same_key(shown, c->key)) {
        il__data_key_hash(s->data, key, n, c->key_hash);
        memcpy(c->key, shown, sizeof c->key);
    }
    memcpy(ret, c->key_hash, sizeof c->key_hash);
    explicit_bzero(shown, sizeof shown);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void
unlink_conn(struct http_server *s, struct http_conn *c)
{
    struct http_conn_list *list = &s->conns.lists[c->phase];

    *(c->prev != NULL ? &c->prev->next : &list->first) = c->next;
    *(c->next != NULL ? &c->next->prev : &list->last)  = c->prev;
    c->next = c->prev = NULL;
}

static void
append_conn(struct http_server *s, struct http_conn *c)
{
    struct http_conn_list *list = &s->conns.lists[c->phase];

    c->prev                                                  = list->last;
    c->next                                                  = NULL;
    *(list->last != NULL ? &list->last->next : &list->first) = c;
    list->last                                               = c;
}

void
http_conn_phase(struct http_server *s, struct http_conn *c, enum http_phase phase)
{
    CHECK(phase < HTTP_PHASE_COUNT);
    if (c->hung_up && (phase == HTTP_PHASE_IDLE || phase == HTTP_PHASE_BODY))
        phase = HTTP_PHASE_ENDING;
    unlink_conn(s, c);
    c->phase       = phase;
    c->deadline_ns = s->now_ns + phase_ns[phase];
    append_conn(s, c);
}

/* libmicrohttpd does not watch suspended connections. It also misses an end of stream that
 * arrives together with data: its epoll set is edge-triggered, and that edge was the data's. */
static void
watch(struct http_server *s, struct http_conn *c)
{
    struct epoll_event event = { .events = EPOLLRDHUP | EPOLLET, .data.ptr = &c->source };

    /* on failure, waits simply run their full time */
    (void)epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, c->fd, &event);
}

void
http_conn_peer_closed(struct http_server *s, struct http_conn *c)
{
    c->hung_up = true;
    if (c->phase == HTTP_PHASE_FRESH || c->phase == HTTP_PHASE_IDLE || c->phase == HTTP_PHASE_BODY)
        http_conn_phase(s, c, HTTP_PHASE_ENDING);
    if (c->request != NULL)
        http_request_client_left(c->request);
}

/* MHD_get_connection_info() returns a pointer to storage that the next call overwrites. */
static int
fd_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        il__mhd->MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info != NULL ? info->connect_fd : -1;
}

static const struct sockaddr *
address_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        il__mhd->MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    return info != NULL ? info->client_addr : NULL;
}

struct http_conn *
http_conn_new(struct http_server *s, struct MHD_Connection *mhd)
{
    struct http_conn *c  = il__calloc(1, sizeof *c);
    bool              ok = false;

    if (c != NULL)
        c->address = hold_address(s, address_of(mhd), &ok);
    if (!ok) {
        il__free(c);
        return NULL;
    }
    c->source.kind = HTTP_SOURCE_CONN;
    c->fd          = fd_of(mhd);
    c->mhd         = mhd;
    c->phase       = HTTP_PHASE_FRESH;
    c->deadline_ns = s->now_ns + phase_ns[HTTP_PHASE_FRESH];
    append_conn(s, c);
    watch(s, c);
    s->conns.n_open++;
    s->conns.n_total++;
    return c;
}

void
http_conn_free(struct http_server *s, struct http_conn *c)
{
    unlink_conn(s, c);
    leave_address(s, c->address);
    /* The kernel forgets a closed descriptor, but libmicrohttpd closes it only after this, and
     * http_conn_linger() may hold a duplicate. */
    (void)epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL); /* if it exists */
    CHECK(s->conns.n_open > 0);
    /* At its connection limit libmicrohttpd stops watching the listening socket, and resumes
     * only when it is run again. */
    if (s->conns.n_open >= s->o->connections_max)
        s->run_mhd = true;
    s->conns.n_open--;
    explicit_bzero(c->key, sizeof c->key);
    il__free(c);
}

void
http_conn_linger(struct http_server *s, struct http_conn *c)
{
    struct http_conns *k = &s->conns;

    if (k->n_linger == ARRAY_LEN(k->linger))
        return;
    int fd = dup(c->fd);
    if (fd >= 0)
        k->linger[k->n_linger++] = (struct http_linger){ fd, s->now_ns + LINGER_NS };
}

/* Discard received data; true: end of stream. */
static bool
drain(const struct http_linger *l, int64_t now_ns)
{
    char    scrap[16384];
    ssize_t n = 1;

    for (unsigned i = 0; i < 16 && n > 0; i++)
        n = recv(l->fd, scrap, sizeof scrap, MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || now_ns >= l->until_ns;
}

static int64_t
expire_linger(struct http_server *s)
{
    struct http_conns *k = &s->conns;

    for (unsigned i = 0; i < k->n_linger;) {
        if (drain(&k->linger[i], s->now_ns)) {
            (void)close(k->linger[i].fd); /* nothing was written to it */
            k->linger[i] = k->linger[--k->n_linger];
        } else {
            i++;
        }
    }
    return k->n_linger > 0 ? s->now_ns + 50 * IL__NS_PER_MS : INT64_MAX;
}

/* ---- the end --------------------------------------------------------------------------------- */

void
http_conn_cut(struct http_conn *c)
{
    c->cut = true;
    (void)shutdown(c->fd, SHUT_RDWR); /* already closed is fine */
}

int64_t
http_conns_expire(struct http_server *s)
{
    int64_t next_ns = expire_linger(s);

    for (size_t i = HTTP_PHASE_WORK + 1; i < HTTP_PHASE_COUNT; i++) {
        struct http_conn *c;
        while ((c = s->conns.lists[i].first) != NULL && c->deadline_ns <= s->now_ns) {
            s->conns.n_timeouts++;
            http_conn_cut(c);
            http_conn_phase(s, c, HTTP_PHASE_WORK);
        }
        if (c != NULL)
            next_ns = MIN(next_ns, c->deadline_ns);
    }
    return next_ns;
}

void
http_conns_end_idle(struct http_server *s)
{
    static const enum http_phase idle[] = { HTTP_PHASE_FRESH, HTTP_PHASE_IDLE };

    for (size_t i = 0; i < ARRAY_LEN(idle); i++) {
        for (struct http_conn *c = s->conns.lists[idle[i]].first; c != NULL; c = c->next) {
            bool waits = c->request == NULL || c->request->stage == HTTP_STAGE_NEW;
            if (waits && !c->cut)
                http_conn_cut(c);
        }
    }
}

void
http_conns_cut(struct http_server *s)
{
    for (size_t i = 0; i < HTTP_PHASE_COUNT; i++) {
        for (struct http_conn *c = s->conns.lists[i].first; c != NULL; c = c->next)
            http_conn_cut(c);
    }
}
