/*
 * http.h: the HTTP server: a request from its first byte to its answer.
 *
 * Threads: one loop (loop.c) owns the sockets, libmicrohttpd, every struct http_request and nearly
 * everything else in this folder; nothing here needs a mutex unless it says so. Ops go to the
 * il__async (runtime/async.h) and return to the loop through its inbox. Other blocking work (the
 * data store) goes to the errand thread (errands.c), long work to the pool (pool.c); both return
 * the same way.
 *
 * The life of a request:
 *   head.c       the head is complete: accept it (no request smuggling), find the route, check the
 *                key and its permission (auth.c) and the limits (limits.c)
 *   request.c    collects the body; inputs.c checks it by the tables of the route and calls the
 *                handler, which answers at once (http_answer) or asks the store (http_do)
 *   authorise.c  decides whether the caller may have these ops applied
 *   ops.c        to the store and back; then the handler is called again, on the loop
 *   answer.c     status, headers, body
 *   conn.c       deadlines for each phase
 */
#ifndef IL_HTTP_HTTP_H
#define IL_HTTP_HTTP_H

#include <jansson.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/heap.h"
#include "data/data.h"
#include "runtime/async.h"
#include "wire/wire.h"

struct MHD_Connection;
struct http_server;
struct http_request;
struct http_route;
struct http_caller;
struct http_app;
struct http_app_config;

typedef void http_fn(struct http_request *r);

/* ---- callers --------------------------------------------------------------------------------- */

/* The owner of a valid key. Shared by its requests; used on the loop only. */
struct http_caller {
    char                key_id[DATA_ID_BYTES];
    char                tenant[IL_TENANT_BYTES_MAX + 1];
    enum il__data_role  role;
    char                permissions[512]; /* named permissions, separated by spaces */
    char                prefix[DATA_PREFIX_BYTES_MAX + 1];
    int64_t             expires_at_ms; /* 0 = never */
    struct http_tenant *limits;        /* limits.c: buckets and counters of its tenant */
};

/* ---- a request ------------------------------------------------------------------------------- */

#define HTTP_PATH_ARGS_MAX 2
#define HTTP_REQUEST_ID_BYTES 65

/* A message to the loop, and a job for another thread (errands.h). */
struct http_item {
    struct http_item *next;
    void (*fn)(struct http_item *item);
};
struct http_job {
    void (*work)(struct http_job *job); /* on another thread */
    void (*then)(struct http_job *job); /* on the loop; NULL = none */
    const char *tenant;                 /* its tenant; NULL = the server itself */
    /* Private to errands.c, threads.c and pool.c: */
    struct http_job        *next;
    struct http_server     *server;
    struct http_pool_share *share;
    int64_t                 until_ns; /* dropped if it has not begun by then; 0 = never */
    struct il__heap_node    node;
    struct http_item        item;
};

static inline const char *
http_job_tenant(const struct http_job *job)
{
    return job->tenant != NULL ? job->tenant : "";
}

enum http_stage {
    HTTP_STAGE_NEW,  /* the request line has arrived */
    HTTP_STAGE_HEAD, /* the head is complete; it and the key are being checked */
    HTTP_STAGE_BODY, /* accepted; the body is arriving */
    HTTP_STAGE_RUN,  /* complete: the handler is running */
};

struct http_request {
    struct http_server       *server;
    struct MHD_Connection    *conn; /* NULL once the client has gone: answers are then discarded */
    const struct http_route  *route;
    const struct http_caller *caller; /* NULL on open routes */
    const char               *method;
    const char               *path;  /* as received: not decoded, without the query */
    const char               *query; /* the part after '?', as received; NULL = none */
    const char               *peer;  /* address of the client; "unix" on a unix socket */
    char id[HTTP_REQUEST_ID_BYTES];  /* X-Request-Id: the client's if harmless, else ours */
    /* the arguments of the path ({q}, {id}), decoded, in order */
    const char *args[HTTP_PATH_ARGS_MAX];
    json_t     *body; /* strictly parsed; NULL without one */
    const char *text; /* the body as received */
    size_t      n_bytes;
    const char *idempotency_key; /* headers as received, valid until the answer; NULL = none */
    const char *api_key, *authorization, *cookie;
    const char *session_key;     /* id of the key that the page is signed in with */
    bool        is_ui;           /* of the admin page, below HTTP_UI_BASE (ui.h) */
    int64_t     session_ends_ms; /* wall clock: of the session that authorised it; 0 = a key did */
    void       *mem;             /* arena: lives as long as the request */
    int64_t     began_ns;

    /* The ops of http_do(); most routes have only one, `op`. `op` is released at the end of the
     * request, any other array by the handler that allocated it. */
    il_op             op;
    il_op            *ops; /* the ops submitted last: &op, or in mem */
    size_t            n_ops;
    struct http_each *each;        /* authorise.c: what it is about to apply */
    size_t            n_body_held; /* http_limits_body() */
    size_t            n_held; /* bytes of its results, then of its answer: http_limits_results() */
    struct il__call   call;
    http_fn          *then;
    void             *state;   /* the handler's own, in mem */
    int64_t           wait_ms; /* the long poll requested */
    int64_t           waited_ns;
    int64_t           delayed_ns;  /* http_delay(): total; the metrics of ops count it as waiting */
    bool              tries_again; /* a conflict is not final: do not count it yet */
    const char       *store_text;  /* message when the store is unavailable; NULL = the default */
    /* called on the loop if the client hangs up before the answer is complete; may be NULL */
    http_fn *on_hang_up;

    /* called on the loop when the request ends, whatever the outcome, to free what is not in
     * mem; may be NULL */
    http_fn *ended;
    void    *ended_cookie;

    struct http_once *once;        /* idempotency.c */
    unsigned          limits_held; /* limits.c */
    bool              limits_judged;
    bool              took_token; /* of route->bucket */
    /* The most that its ops could add, while they are in progress. */
    int64_t                 limits_locks, limits_jobs, limits_bytes;
    struct http_key_waiter *key_waiter; /* auth.c: waits for the lookup of its key */

    /* The answer so far. */
    int            status;
    struct il__buf out;
    const char    *content_type; /* NULL = application/json */
    bool           is_file;      /* of the admin page: has headers of its own */
    struct {
        const char *name, *value; /* in mem, or constant */
    } headers[8];
    unsigned    n_headers;
    const char *code; /* of the error; NULL = none */
    size_t      bytes_out;
    bool        answered;
    bool        close; /* Connection: close */

    /* ---- request.c's own ---- */
    struct http_conn    *c;
    struct MHD_Response *response; /* waits until it can be queued */
    struct http_request *next;     /* the list of reusable requests */
    struct http_item     item;     /* for the inbox: r->call is done */
    struct http_job      job;      /* the errand */
    http_fn             *work, *errand_then;
    struct http_list    *list;           /* list_stream.c: the list that is being sent */
    atomic_int_fast64_t  cut_ns;         /* pool.c: its deadline; 0 = the usual one */
    void (*disconnect_fn)(void *cookie); /* pool.c: http_on_disconnect() */
    void                 *disconnect_cookie;
    struct il_guard_stop *stop; /* app.c: http_bind_deadline() */
    /* where libmicrohttpd keeps the request target: head.c only compares the address */
    const char          *target;
    size_t               n_target;
    size_t               n_expected; /* bytes of the body, by Content-Length */
    char                *room;       /* for the body */
    enum http_stage      stage;
    bool                 suspended;  /* libmicrohttpd ignores the connection */
    bool                 head_again; /* was suspended at the head: the first call is repeated */
    bool                 in_call;    /* r->call belongs to the il__async */
    bool                 in_errand;  /* r->job belongs to another thread */
    bool                 pooled;     /* ... one of the pool, see http_pool() */
    bool                 cancelled;  /* ... and is to end early: http_on_disconnect() */
    bool                 left;       /* its connection is closed; the end follows the errand */
    bool                 call_now;   /* ... and was done before the submit returned */
    bool                 hung_up;
    bool                 expects; /* Expect: 100-continue */
    bool                 queued;
    bool                 bare; /* no room for the usual headers */
    bool                 streams;
    bool                 delayed; /* http_delay(): waits for its time */
    struct il__heap_node delay;
    int64_t              delay_began_ns;
    http_fn             *delay_then;
};

/* A header of the request, the first of that name; NULL = missing. Owned by libmicrohttpd, valid
 * until the answer. */
const char *http_request_header(struct http_request *r, const char *name);

/* Answer with what is in r->out. Once per request. */
void http_answer(struct http_request *r, int status);
/* The same with a constant instead of r->out. */
void http_answer_constant(struct http_request *r, int status, const void *data, size_t n_bytes);
void http_header(struct http_request *r, const char *name, const char *value);
void http_retry_after(
    struct http_request *r,
    int64_t ms); /* Retry-After, rounded up; and details.retry_after_ms is the caller's business */

/*
 * Answer with an error, as described in docs/HTTP.md:
 * {"success":false,"error":{"code","source","message","details"}}. `code` is a wire name of the
 * status table or one of errors.def; `details` is the text of a JSON object, or NULL. The message
 * is printed as is, so it must hold no internals and no secrets. The answer built so far is
 * discarded, except for its headers.
 */
void http_fail(struct http_request *r, int status, const char *code, const char *source,
               const char *details, const char *fmt, ...) PRINTF_LIKE(6, 7);
/* The same for a failed op, and for a call that failed as a whole: code from the status table,
 * details from op->out. */
void http_fail_op(struct http_request *r, const il_op *op, const char *source);
void http_fail_call(struct http_request *r);

/* Hand blocking work to the errand thread: work() runs there, then then() on the loop. */
void http_errand(struct http_request *r, http_fn *work, http_fn *then);
/* The same for work that may take seconds (asks another system, reads many files) and must not be
 * refused. It runs on a thread of the pool; the errand thread stays free for key lookups. */
void http_errand_slow(struct http_request *r, http_fn *work, http_fn *then);
/* Wait for another request's errand: then() follows when http_errand_resume() is called. Both on
 * the loop. */
void http_errand_hold(struct http_request *r, http_fn *then);
void http_errand_resume(struct http_request *r);

/*
 * Hand a query, or other work that may take long, to the pool: work(r) runs on one of its threads,
 * then then(r) on the loop. While the tenant's share of the threads is in use the request waits,
 * tenants in turn. If its share of the queue is in use, too, or its deadline passes before its turn
 * comes, it is answered with 503 SERVER_BUSY, and neither function is called.
 */
void http_pool(struct http_request *r, http_fn *work, http_fn *then);
/*
 * The deadline of a request, in ns of CLOCK_BOOTTIME, and what is left of it: for the timeout of a
 * transaction. http_options.request_ms after its arrival; the end of the shutdown if the server
 * stops; now, once its client has hung up. At least 1 ms is left, because as the timeout of a
 * transaction 0 would mean no limit. From any thread.
 */
int64_t http_request_deadline_ns(const struct http_request *r);
int64_t http_request_left_ms(const struct http_request *r);
/*
 * In work(r) of http_pool(): call fn(cookie) when the client hangs up or the server gives up on the
 * request, to cancel its query; at once if that has happened. On the loop, under a mutex: fn must
 * not block. fn NULL: no longer; it is not running when this returns.
 */
void http_on_disconnect(struct http_request *r, void (*fn)(void *cookie), void *cookie);

/*
 * Delay the request for this long, then continue with then(r) on the loop; immediately if the
 * server stops. If the client hangs up meanwhile the request ends and then(r) is not called. A
 * delayed request counts as one of the tenant's waiting requests: if there are too many it is
 * answered with 429, and then(r) is not called either.
 */
void http_delay(struct http_request *r, int64_t ms, http_fn *then);

/* Give back the token that the request took from the bucket of its route: it did no work, since it
 * found a job running already, say. On the loop; safe to repeat. */
void http_bucket_refund(struct http_request *r);

/* Allocate in r->mem. On NULL the caller answers 503: http_fail_nomem(r). */
void *http_alloc(struct http_request *r, size_t n_bytes);
/* The same, zeroed. NULL: the request has been answered. */
void *http_calloc(struct http_request *r, size_t n_bytes);
void  http_fail_nomem(struct http_request *r);

/*
 * Send a streaming answer with status 200: a response with a content reader (mhd.h). The usual
 * headers are added and the response is consumed. A reader without data calls http_suspend() and
 * returns 0; http_resume() has it called again. Both on the loop. After r->on_hang_up the reader
 * must end.
 */
void http_answer_stream(struct http_request *r, struct MHD_Response *response);
void http_suspend(struct http_request *r);
void http_resume(struct http_request *r);

/* Run fn on the loop; callable from any thread. False: out of memory, it will not run. What is
 * posted while the apps are closing must not need their state. */
bool http_post(struct http_server *s, void (*fn)(struct http_server *s, void *cookie), void *cookie)
    MUST_USE;

/* ---- the server ------------------------------------------------------------------------------ */

enum http_log_level {
    HTTP_LOG_DEBUG,
    HTTP_LOG_INFO,
    HTTP_LOG_WARN,
    HTTP_LOG_ERROR
};

/* A configuration key, without secrets. */
struct http_shown {
    const char *name, *value;
    const char *origin; /* a file with its line, an environment variable, an option, "default" */
    const char *env;    /* the variable that sets it */
};

struct http_options {
    const char *listen; /* "127.0.0.1:7600", "[::1]:7600", "unix:/path"; port 0 = any free one */
    const char *metrics_listen; /* NULL = served with the other routes */
    const char *store_url, *data_url, *pepper_file;
    /* Open the store; the caller keeps *ret. Called again while the store cannot be reached, which
     * is_unreachable() decides from the error. */
    il_status (*open_store)(void *cookie, il **ret, il_error *reterr);
    bool (*is_unreachable)(const char *url, const il_error *err);
    void *open_cookie;
    bool  tls_proxy;    /* a proxy in front terminates TLS: allow a non-loopback address */
    bool  no_first_key; /* do not create a key when none exists: its secret would go to a log */
    bool  log_json;
    enum http_log_level log_level;
    int64_t             request_ms;     /* http_request_deadline_ns(); 0 = 30 s */
    int64_t             shutdown_ms;    /* limit of a graceful shutdown; default 10 s */
    int64_t             body_bytes_max; /* of a request; default 1.5 MiB: 1 MiB and room for JSON */
    int64_t             body_bytes_max_large; /* ... on HTTP_LARGE routes; default 16 MiB */
    unsigned            connections_max;      /* default 10,240 */
    unsigned connections_per_ip_max; /* default 1,024; loopback and unix sockets are exempt */
    struct il__data_limits limits;   /* for tenants without limits of their own */
    int64_t                login_failures_per_minute; /* per address, before it has to wait */
    int64_t                audit_keep_ms;
    int ready_fd; /* the address is written here, as a line, once it listens; -1 = none */
    /* SIGHUP: read the configuration again and update in *o what may change at run time:
     * log_level, limits, login_failures_per_minute, audit_keep_ms, app_config, settings. */
    il_status (*reload)(
        void *cookie, struct http_options *o, const char **ret_restart,
        il_error *reterr); /* *ret_restart: a changed key that needs a restart, or NULL */
    void *reload_cookie;
    /* The apps (app.h), and the configuration that they are opened with; borrowed. */
    const struct http_app *const *apps;
    size_t                        n_apps;
    const struct http_app_config *app_config;
    const struct http_shown      *settings; /* GET /admin/config; borrowed */
    size_t                        n_settings;
    /*
     * The token of a one-time link to the admin page, and the key that it signs in with. The
     * process that starts the server creates the token (il__data_token()) and prints
     * http://ADDRESS/ui/#link=TOKEN. NULL = none; borrowed.
     */
    const char *link_token, *link_key_id;
};

/* Check an address without listening: IL_OK, or IL_INVAL. *ret_loopback: reachable from this
 * machine only. */
il_status http_address_check(const char *text, bool *ret_loopback, il_error *reterr) MUST_USE;
/* Call before the store is opened, and so before any thread is started: blocks the signals that
 * the loop handles, and keeps our files and memory private. */
void http_prepare(void);
/* Runs until SIGTERM or SIGINT and returns after the shutdown. IL_OK, or why it could not start. */
il_status http_serve(const struct http_options *o, il_error *reterr) MUST_USE;

#endif
