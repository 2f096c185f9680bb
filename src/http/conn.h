/*
 * conn.h: connections and their deadlines. Deadlines are absolute, so a client cannot extend them
 * by sending a byte now and then.
 */
#ifndef IL_HTTP_CONN_H
#define IL_HTTP_CONN_H

#include "base/map.h"
#include "http/http.h"

/* What a connection is waiting for. Each phase has a fixed timeout, so each list is ordered by
 * deadline. */
enum http_phase {
    HTTP_PHASE_WORK,   /* for the server: no deadline */
    HTTP_PHASE_FRESH,  /* for the head of the first request */
    HTTP_PHASE_IDLE,   /* for the head of another one */
    HTTP_PHASE_BODY,   /* for the body of a request */
    HTTP_PHASE_ANSWER, /* for the client to take its answer */
    HTTP_PHASE_ENDING, /* for libmicrohttpd to see that the client will send no more */
    HTTP_PHASE_COUNT
};

/* What a descriptor in the loop's epoll set is. */
enum http_source_kind {
    HTTP_SOURCE_DAEMON,
    HTTP_SOURCE_INBOX,
    HTTP_SOURCE_SIGNAL,
    HTTP_SOURCE_CONN,
};
struct http_source {
    enum http_source_kind kind;
};

struct http_address;

struct http_conn {
    struct http_source     source; /* first */
    enum http_phase        phase;
    int                    fd;
    struct MHD_Connection *mhd;
    struct http_listener  *listener;
    struct http_request   *request;     /* in progress; NULL = none */
    struct http_conn      *next, *prev; /* in the list of its phase */
    int64_t                deadline_ns;
    struct http_address   *address;                   /* NULL: a unix socket */
    char                   key[DATA_KEY_BYTES_MAX];   /* the key it sent last; "" = none */
    unsigned char          key_hash[DATA_HASH_BYTES]; /* ... and its hash */
    bool                   hung_up;                   /* the client has closed its sending side */
    bool                   cut; /* the socket was shut down, libmicrohttpd will notice */
};

struct http_conns {
    struct http_conn_list {
        struct http_conn *first, *last;
    } lists[HTTP_PHASE_COUNT];
    struct il__map addresses; /* struct http_address: connections per address */
    uint64_t       n_open, n_total, n_refused, n_timeouts;
    /* Sockets closed while the client was still sending. They are kept open briefly, so that the
     * client reads our answer instead of a reset. */
    struct http_linger {
        int     fd;
        int64_t until_ns;
    } linger[64];
    unsigned n_linger;
};

void http_conns_init(struct http_server *s);
void http_conns_release(struct http_server *s);

/* May this address open another connection? */
struct sockaddr;
bool              http_conn_admit(struct http_server *s, const struct sockaddr *address);
struct http_conn *http_conn_new(struct http_server *s, struct MHD_Connection *mhd);
void              http_conn_free(struct http_server *s, struct http_conn *c);
const char       *http_conn_peer(const struct http_conn *c);

/* il__data_key_hash(), cached: a connection usually sends the same key each time. */
void http_conn_key_hash(struct http_server *s, struct http_conn *c, const char *key,
                        unsigned char ret[DATA_HASH_BYTES]);

void http_conn_phase(struct http_server *s, struct http_conn *c, enum http_phase phase);
/* The client has closed its sending side. It may still be reading, but a client that waits for
 * an answer has usually gone. */
void http_conn_peer_closed(struct http_server *s, struct http_conn *c);
/* After closing a connection, read and discard for a moment what the client still sends. */
void http_conn_linger(struct http_server *s, struct http_conn *c);
void http_conn_cut(struct http_conn *c);

/* Close connections past their deadline. Returns the next deadline in ns, or INT64_MAX. */
int64_t http_conns_expire(struct http_server *s);
/* Close connections that are waiting for a request. */
void http_conns_end_idle(struct http_server *s);
/* End all. */
void http_conns_cut(struct http_server *s);

#endif
