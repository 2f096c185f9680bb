/*
 * redis_internal.h: what the files of the Redis engine share.
 *
 *   url.c      the store's URL
 *   tls.c      OpenSSL, loaded when rediss: is used
 *   conn.c     a connection: bytes in both directions under one deadline, replies through hiredis's parser
 *   packed.c   the requests and replies that are not JSON
 *   library.c  the function library: loading it, and the first words on a connection
 *   listen.c   wake-ups of other processes (pub/sub)
 *   redis.c    the transport: batches, errors, opening and freeing
 */
#ifndef IL_STORE_REDIS_INTERNAL_H
#define IL_STORE_REDIS_INTERNAL_H

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/mutex.h"
#include "store/remote/remote.h"

/* ---- url.c ----------------------------------------------------------------------------------------------------- */

#define REDIS_HOSTS_MAX 8
#define REDIS_PREFIX_BYTES_MAX 64
#define REDIS_SHOWN_BYTES 160

/* Where a server is, as the URL says it. All strings point into `text`. */
struct redis_url {
    char       *text;
    size_t      n_bytes; /* of it */
    bool        tls;
    const char *path; /* of a unix socket, or NULL */
    struct {
        const char *name, *port;
    } hosts[REDIS_HOSTS_MAX]; /* the first that is a master counts */
    size_t      n_hosts;
    const char *user, *password; /* or NULL */
    uint32_t    db;
    char        tag[REDIS_PREFIX_BYTES_MAX + 3]; /* "{prefix}": begins every key of the store */
    int64_t     max_ttl_ms;                      /* of a lease */
    bool        classic;                         /* respect clients that lock with SET NX PX */
    bool        evicts;                          /* an eviction policy is accepted */
    const char *cacert, *cert, *key;             /* files for TLS, or NULL */
    char        shown[REDIS_SHOWN_BYTES];        /* the URL without what is secret */
};

/* `rest` is what follows the scheme, `query` what follows '?' (or NULL). False is never returned half-way: release anyway. */
il_status il__redis_url_parse(struct redis_url *u, const char *scheme, const char *rest,
                              const char *query, il_error *reterr) MUST_USE;
void      il__redis_url_release(struct redis_url *u);

/* ---- tls.c ----------------------------------------------------------------------------------------------------- */

struct ssl;     /* SSL of OpenSSL, whose headers are not needed to build */
struct ssl_ctx; /* SSL_CTX */

/* A context for all connections of a store. */
il_status il__redis_tls_init(const struct redis_url *u, struct ssl_ctx **ret, il_error *reterr)
    MUST_USE;
void        il__redis_tls_release(struct ssl_ctx *ctx);
struct ssl *il__redis_tls_new(struct ssl_ctx *ctx, int fd, const char *host);
void        il__redis_tls_free(struct ssl *ssl);

enum redis_io {
    REDIS_IO_FAILED = -1, /* errno, or 0 when the other side has closed */
    REDIS_IO_READ   = -2, /* again when it is readable */
    REDIS_IO_WRITE  = -3, /* … writable */
};
/* The number of bytes, or enum redis_io. */
int il__redis_tls_connect(struct ssl *ssl);
int il__redis_tls_read(struct ssl *ssl, void *data, size_t n);
int il__redis_tls_write(struct ssl *ssl, const void *data, size_t n);
/* Why the handshake failed. */
const char *il__redis_tls_why(struct ssl *ssl);

/* ---- conn.c ---------------------------------------------------------------------------------------------------- */

struct redis_conn {
    const struct redis_url *url;
    struct ssl_ctx         *ctx;
    int                     stop_fd; /* readable: give it up; -1 = none */
    int                     fd;      /* -1: not connected */
    bool                    blocks;  /* recv() waits by itself, for a moment */
    struct ssl             *ssl;
    redisReader            *reader;
    struct il__buf          out;      /* commands that have not been sent yet */
    int64_t                 used_ns;  /* when it was last known to work */
    int64_t                 retry_ns; /* no new attempt to connect before this */
    unsigned                n_failures;
    il_error                failure;    /* of the last attempt */
    unsigned                generation; /* the store's, when it was made */
    char                    policy[24]; /* for which calls are refused (eviction), or "" */
};

/* hiredis, once it is loaded. */
struct redis_api {
#define X(name) __typeof__(&name) name;
#include "store/redis/hiredis.def"
#undef X
};
extern struct redis_api il__redis_api;
il_status               il__redis_load(il_error *reterr) MUST_USE;

void il__redis_conn_init(struct redis_conn *c, const struct redis_url *url, struct ssl_ctx *ctx);
void il__redis_conn_release(struct redis_conn *c);
/* Close it; the next call connects anew. */
void il__redis_conn_drop(struct redis_conn *c);
/* Connect to the i-th host (or the socket), without a word. */
il_status il__redis_conn_dial(struct redis_conn *c, size_t i_host, int64_t deadline_ns,
                              il_error *reterr) MUST_USE;
/* When the first of n attempts that are to end by the deadline has to. */
int64_t il__redis_share(int64_t deadline_ns, size_t n);
/* Has the other side closed a connection that was idle? */
bool il__redis_conn_is_dead(struct redis_conn *c);

/* Commands are put one after another, and sent together. */
void il__redis_put(struct redis_conn *c, size_t n_args);
void il__redis_arg(struct redis_conn *c, const void *data, size_t n_bytes);
void il__redis_args(struct redis_conn *c, const char *text);
void il__redis_argn(struct redis_conn *c, int64_t number);
/* A whole command of words, up to a NULL. */
void il__redis_say_words(struct redis_conn *c, const char *const words[]); /* until NULL */
#define il__redis_say(c, ...) il__redis_say_words((c), (const char *const[]){ __VA_ARGS__, NULL })
il_status il__redis_send(struct redis_conn *c, int64_t deadline_ns, il_error *reterr) MUST_USE;
/* The next reply (freeReplyObject). A failure drops the connection. */
il_status il__redis_recv(struct redis_conn *c, int64_t deadline_ns, redisReply **ret,
                         il_error *reterr) MUST_USE;
/* Say one command and hear its reply. */
#define il__redis_ask(c, deadline_ns, ret, reterr, ...)                                         \
    (il__redis_say((c), __VA_ARGS__), il__redis_send((c), (deadline_ns), (reterr)) == IL_OK     \
                                          ? il__redis_recv((c), (deadline_ns), (ret), (reterr)) \
                                          : IL_STORE)

static inline void
il__redis_replyp(redisReply **r)
{
    if (*r != NULL)
        il__redis_api.freeReplyObject(*r);
}
#define AUTO_REPLY AUTO(il__redis_replyp)

/* ---- redis.c: the store ------------------------------------------------------------------------------------------ */

#define REDIS_ID_BYTES 41 /* a run id and its NUL */
#define REDIS_MAX_TTL_MS_MAX 86400000

/* What the server says of itself, as of the last connection. */
struct redis_facts {
    char version[24];
    char policy[24];      /* maxmemory-policy */
    char appendfsync[16]; /* "" = it may not be asked for */
    bool aof;
    bool is_synced; /* what was acknowledged is in the file: a crash loses nothing */
    bool is_master;
};

enum redis_error_kind {
    REDIS_ERROR_OP,     /* this request failed, the others may go on */
    REDIS_ERROR_CALL,   /* the server takes none now */
    REDIS_ERROR_DROP,   /* … and another connection may find one that does */
    REDIS_ERROR_RELOAD, /* the function library, or the store's row, is not there */
};

struct redis_listener {
    struct redis_conn conn;
    struct il__board *board;
    pthread_t         thread;
    bool              runs;
    int               ready_fd;  /* readable once the first attempt to subscribe has ended */
    _Atomic bool      tried;     /* the same */
    _Atomic bool      hears;     /* subscribed now */
    _Atomic bool      closes;    /* the store is being closed */
    _Atomic unsigned  n_refused; /* how often SUBSCRIBE was, since it last was not */
    const char       *self;      /* our name among those who use the server */
};

struct redis_store {
    struct remote_store   remote;
    struct redis_url      url;
    struct ssl_ctx       *ctx;
    int64_t               timeout_ms;
    bool                  test_clock, existing;
    struct redis_conn     writer; /* of apply */
    struct il__mutex      reader_mutex;
    struct redis_conn     reader;
    struct redis_listener listener;
    char                  server[REDIS_ID_BYTES]; /* run id of the server as known so far */
    _Atomic int64_t       lost_ms;                /* when leases were lost last, as it was told */
    _Atomic int64_t       max_ttl_ms;             /* the greatest of its users', as it was told */
    _Atomic unsigned      generation;             /* raised when another server may be the master */
    struct redis_facts    facts;
    char                  flags[20]; /* go with every call: classic or not, and our name */
    il_status (*apply)(struct il__store *s, il_op *const *ops, size_t n, il_error *reterr);
};

/* report.c: what doctor says. */
il_status il__redis_report(struct remote_store *remote, const char *table, il__report_fn *each,
                           void *cookie, il_error *reterr) MUST_USE;

/* What an error of the server means. Fills *reterr (may be NULL). */
enum redis_error_kind il__redis_map(const struct redis_url *u, const char *text, il_error *reterr);

/* ---- packed.c ---------------------------------------------------------------------------------------------------- */

/* As struct remote_transport says. A reply is a redisReply. */
bool il__redis_encode(const struct remote_store *s, const il_op *op, struct remote_request *ret);
bool il__redis_decode(struct remote_store *s, il_op *op, const void *packed);
/* Does a blob, be it empty, follow the request? */
bool il__redis_has_blob(const struct remote_request *r);
/* Is the reply to a request packed? */
bool il__redis_is_packed(const redisReply *r);
/* The job of a finish as it is now, if the reply has it as it was: as *first, the last that was whole (NULL at first). */
void il__redis_complete(redisReply *r, const redisReply **first);
/* Hand it over, and the wakes in it. False: the call's `failed` is set. */
bool il__redis_take_packed(struct remote_call *call, size_t i, const redisReply *r);

/* ---- library.c --------------------------------------------------------------------------------------------------- */

#define REDIS_FUNCTION_BYTES 48

enum redis_function {
    REDIS_WRITE,
    REDIS_FREE, /* the same, also when memory is full */
    REDIS_OWN,  /* the same, for what may be a sign of life: anything new is refused */
    REDIS_READ,
};
/* The name of a function of this version of the library. */
const char *il__redis_function(enum redis_function f);

/* Put a call of it with n requests; the time counts if the clock is the test's. */
void il__redis_put_call(struct redis_store *s, struct redis_conn *c, enum redis_function f,
                        int64_t now_ms, int64_t wall_ms, const struct remote_request *requests,
                        size_t n);

/* A field of INFO, "name:value\r\n"; "" when it is not there. */
void il__redis_info(const char *info, const char *name, char *out, size_t n_bytes);

/* Load it, unless it is there. A failure drops the connection. */
il_status il__redis_library_load(struct redis_store *s, struct redis_conn *c, int64_t deadline_ns,
                                 il_error *reterr) MUST_USE;

/* Say hello (again) on the writer's connection, and load the library if it is not there. A failure drops the connection. */
il_status il__redis_hello(struct redis_store *s, int64_t deadline_ns, il_error *reterr) MUST_USE;
/* Somebody who uses the store has this max_ttl. From any thread. */
void il__redis_learn_max_ttl(struct redis_store *s, int64_t ms);

/*
 * Be connected: to a server that is a master, logged in, in the right database. A new connection of the writer looks at the server's
 * settings and says hello to the store. A connection of an older generation is made anew.
 */
il_status il__redis_connect(struct redis_store *s, struct redis_conn *c, int64_t deadline_ns,
                            il_error *reterr) MUST_USE;

/* Say that calls are refused for c->policy. */
il_status il__redis_refuse_policy(const struct redis_conn *c, il_error *reterr) MUST_USE;

/* ---- listen.c ---------------------------------------------------------------------------------------------------- */

il_status il__redis_listen_start(struct redis_store *s, il_error *reterr) MUST_USE;
void      il__redis_listen_stop(struct redis_store *s);
/*
 * Wait for the end of the first attempt to subscribe. Before the first request of a store: what others do after that request was carried
 * out is heard then.
 */
void il__redis_listen_await(struct redis_store *s, int64_t deadline_ns);
/* Another server may be the master: connections that are there are made anew before they are used, and the listener's at once. */
void il__redis_suspect(struct redis_store *s);
/* As il__store_attend(). */
int64_t il__redis_attend(struct il__store *base);
/* As il__store_announce(). */
void il__redis_announce(struct il__store *base, const char *text);

#endif
