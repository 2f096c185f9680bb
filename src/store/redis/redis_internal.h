/*
 * redis_internal.h: declarations shared by the files of the Redis engine.
 *
 *   url.c      parses the store's URL
 *   tls.c      OpenSSL, loaded when rediss: is used
 *   conn.c     a connection: sends and receives under one deadline, parses replies with hiredis
 *   classic.c  finds the locks of classic clients
 *   packed.c   the requests and replies that are not JSON
 *   library.c  the function library: loads it, and sets up new connections
 *   listen.c   wake-ups from other processes (pub/sub)
 *   doctor.c   explains the server's settings
 *   redis.c    the transport: batches, errors, opening and freeing
 */
#ifndef IL_STORE_REDIS_INTERNAL_H
#define IL_STORE_REDIS_INTERNAL_H

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/mutex.h"
#include "store/remote/connections.h"
#include "store/remote/remote.h"

/* ---- url.c ----------------------------------------------------------------------------------- */

#define REDIS_HOSTS_MAX 8
#define REDIS_PREFIX_BYTES_MAX 64
#define REDIS_SHOWN_BYTES 160

/* The location of a server, from the URL. All strings point into `text`. */
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
    char        shown[REDIS_SHOWN_BYTES];        /* the URL without its secrets */
};

/* `rest` is the part after the scheme, `query` the part after '?' (or NULL). Release *ret even if
 * this fails. */
il_status il__redis_url_parse(struct redis_url *u, const char *scheme, const char *rest,
                              const char *query, il_error *reterr) MUST_USE;
void      il__redis_url_release(struct redis_url *u);

/* ---- tls.c ----------------------------------------------------------------------------------- */

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

/* ---- conn.c ---------------------------------------------------------------------------------- */

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
    unsigned                generation; /* the store's, when it was created */
    char                    policy[24]; /* the eviction policy for which calls are refused, or "" */
    bool                    writes;     /* it says hello to the store */
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
/* Close it; the next call reconnects. */
void il__redis_conn_drop(struct redis_conn *c);
/* Connect to the i-th host (or the socket), without sending anything. */
il_status il__redis_conn_dial(struct redis_conn *c, size_t i_host, int64_t deadline_ns,
                              il_error *reterr) MUST_USE;
/* The deadline of the first of n attempts that share the deadline. */
int64_t il__redis_attempt_deadline(int64_t deadline_ns, size_t n);
/* Has the other side closed a connection that was idle? */
bool il__redis_conn_is_dead(struct redis_conn *c);

/* Commands are buffered one after another, and sent together. */
void il__redis_put(struct redis_conn *c, size_t n_args);
void il__redis_arg(struct redis_conn *c, const void *data, size_t n_bytes);
void il__redis_args(struct redis_conn *c, const char *text);
/* A whole command, given as words up to a NULL. */
void il__redis_say_words(struct redis_conn *c, const char *const words[]); /* until NULL */
#define il__redis_say(c, ...) il__redis_say_words((c), (const char *const[]){ __VA_ARGS__, NULL })
il_status il__redis_send(struct redis_conn *c, int64_t deadline_ns, il_error *reterr) MUST_USE;
/* The next reply (freeReplyObject). A failure drops the connection. */
il_status il__redis_recv(struct redis_conn *c, int64_t deadline_ns, redisReply **ret,
                         il_error *reterr) MUST_USE;
/* Send one command and read its reply. */
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

/* ---- redis.c: the store ---------------------------------------------------------------------- */

#define REDIS_ID_BYTES 41 /* a run id and its NUL */
#define REDIS_MAX_TTL_MS_MAX 86400000

/* The server's own settings, as of the last connection. */
struct redis_facts {
    char version[24];
    char policy[24];      /* maxmemory-policy */
    char appendfsync[16]; /* "" = it may not be asked for */
    bool aof;
    bool is_synced; /* acknowledged writes are on disk: a crash loses nothing */
    bool is_master;
};

enum redis_error_kind {
    REDIS_ERROR_OP,     /* this request failed, the others may go on */
    REDIS_ERROR_CALL,   /* the server accepts none now */
    REDIS_ERROR_DROP,   /* … and another connection may find one that can */
    REDIS_ERROR_RELOAD, /* the function library, or the store's row, is missing */
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
    _Atomic unsigned  n_refused; /* how often SUBSCRIBE was refused since it last worked */
    const char       *self;      /* our client name on the server */
};

/*
 * The server runs one call at a time, so several connections are not faster. But a caller may wait
 * for many replies, in a sweep or a search, and the others should not wait for that.
 */
#define REDIS_WRITERS 4

#define REDIS_CURSOR_BYTES 24 /* of a SCAN */

/* Names of possible classic locks, as found by the last scan (classic.c). */
struct redis_classic_name {
    char    *text; /* "TENANT:KEY" */
    unsigned look; /* which has found it */
};

struct redis_classic {
    struct il__mutex           mutex; /* of all of it */
    struct redis_conn          conn;
    struct redis_classic_name *names; /* sorted, some twice: this and the last full scan */
    size_t                     n;
    unsigned                   look;                       /* its number */
    char                       cursor[REDIS_CURSOR_BYTES]; /* where it goes on; "": it is whole */
    int64_t                    until_ns;                   /* the names serve until then */
};

struct redis_store {
    struct remote_store    remote;
    struct redis_url       url;
    struct ssl_ctx        *ctx;
    int64_t                timeout_ms;
    bool                   test_clock, existing;
    struct redis_conn      writers[REDIS_WRITERS]; /* of apply */
    struct il__connections connections;            /* assigns them to callers */
    struct il__mutex       hello_mutex; /* one hello at a time; protects `server` and `facts` */
    struct il__mutex       reader_mutex;
    struct redis_conn      reader;
    struct redis_listener  listener;
    struct redis_classic   classic;
    char                   server[REDIS_ID_BYTES]; /* run id of the server as known so far */
    _Atomic int64_t        lost_ms;                /* when leases were last lost, as reported */
    _Atomic int64_t        max_ttl_ms;             /* the greatest of all users, as reported */
    _Atomic unsigned       generation; /* raised when another server may be the master */
    struct redis_facts     facts;
    char                   flags[20]; /* sent with every call: classic or not, and our name */
    il_status (*apply)(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done,
                       il_error *reterr);
};

/* doctor.c: what doctor says. */
il_status il__redis_report(struct remote_store *remote, const char *table, il__report_fn *each,
                           void *cookie, il_error *reterr) MUST_USE;

/* What an error of the server means. Fills *reterr (may be NULL). */
enum redis_error_kind il__redis_map(const struct redis_url *u, const char *text, il_error *reterr);

/* ---- classic.c ------------------------------------------------------------------------------- */

void il__redis_classic_init(struct redis_store *s);
void il__redis_classic_release(struct redis_store *s);
/* Does the op list locks, including those of classic clients? */
bool il__redis_classic_lists(const struct redis_store *s, const struct remote_call *call);
/* Its request `r` with their names; release *ret either way. The caller must hold no lock. */
il_status il__redis_classic_request(struct redis_store *s, const struct remote_request *r,
                                    struct remote_request *ret, il_error *reterr) MUST_USE;

/* ---- packed.c -------------------------------------------------------------------------------- */

/* See struct remote_transport. A reply is a redisReply. */
bool il__redis_encode(const struct remote_store *s, const il_op *op, struct remote_request *ret);
bool il__redis_decode(struct remote_store *s, il_op *op, const void *packed);
/* Does a blob, possibly empty, follow the request? */
bool il__redis_has_blob(const struct remote_request *r);
/* Is the reply to a request packed? */
bool il__redis_is_packed(const redisReply *r);
/* The current job of a finish whose reply has the old row: *first is the last complete one (NULL at
 * first). */
void il__redis_complete(redisReply *r, const redisReply **first);
/* Hand it over, with its wake-ups. False: the call's `failed` is set. */
bool il__redis_take_packed(struct remote_call *call, size_t i, const redisReply *r);

/* ---- library.c ------------------------------------------------------------------------------- */

#define REDIS_FUNCTION_BYTES 48

enum redis_function {
    REDIS_WRITE,
    REDIS_FREE, /* the same, also when memory is full */
    REDIS_OWN,  /* the same, for possible signs of life: anything new is refused */
    REDIS_READ,
};

/* Buffer a call of it with n requests; the time is sent only with the test clock. */
void il__redis_put_call(struct redis_store *s, struct redis_conn *c, enum redis_function f,
                        int64_t now_ms, int64_t wall_ms, const struct remote_request *requests,
                        size_t n);

/* A field of INFO, "name:value\r\n"; "" if missing. */
void il__redis_info(const char *info, const char *name, char *out, size_t n_bytes);

/* Load it if it is missing. A failure drops the connection. */
il_status il__redis_library_load(struct redis_store *s, struct redis_conn *c, int64_t deadline_ns,
                                 il_error *reterr) MUST_USE;

/* Say hello again on a write connection, and load the library if it is missing. A failure drops the
 * connection. */
il_status il__redis_hello(struct redis_store *s, struct redis_conn *c, int64_t deadline_ns,
                          il_error *reterr) MUST_USE;
/* A user of the store has this max_ttl. Safe from any thread. */
void il__redis_learn_max_ttl(struct redis_store *s, int64_t ms);

/*
 * Connect if necessary: to a master, logged in, with the right database. A new write connection
 * checks the server's settings and says hello to the store. A connection of an older generation is
 * replaced.
 */
il_status il__redis_connect(struct redis_store *s, struct redis_conn *c, int64_t deadline_ns,
                            il_error *reterr) MUST_USE;

/* Report that calls are refused because of c->policy. */
il_status il__redis_refuse_policy(const struct redis_conn *c, il_error *reterr) MUST_USE;

/* ---- listen.c -------------------------------------------------------------------------------- */

il_status il__redis_listen_start(struct redis_store *s, il_error *reterr) MUST_USE;
void      il__redis_listen_stop(struct redis_store *s);
/*
 * Wait until the first attempt to subscribe has ended. Call it before the first request of a store,
 * so that whatever others do after that request is heard.
 */
void il__redis_listen_await(struct redis_store *s, int64_t deadline_ns);
/* Another server may be the master now: existing connections are replaced before their next use,
 * and the listener's at once. */
void il__redis_suspect(struct redis_store *s);
/* As il__store_attend(). */
int64_t il__redis_attend(struct il__store *base);
/* As il__store_announce(). */
void il__redis_announce(struct il__store *base, const char *text);

#endif
