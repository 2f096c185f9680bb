/*
 * http.h: the server: a request from its first byte to its answer.
 *
 * Threads: one loop (loop.c) owns the sockets, libmicrohttpd, every struct http_request and nearly everything else in this folder; nothing here needs a
 * mutex unless it says so. Ops go to the il__async (runtime/async.h) and come back to the loop through its inbox. What blocks for other
 * reasons (the data store) is done by one office thread (office.c), which takes errands and brings them back the same way.
 *
 * The life of a request:
 *   head.c     the head is complete: is it one that we accept (nothing can be smuggled through it), which route, is the key good (auth.c), within limits (limits.c)
 *   request.c  the body is gathered; parsed and checked by the route's tables; the handler is called
 *   the handler answers at once (http_answer), or hands ops over (http_apply) and is called back on the loop when they are committed
 *   call.c     ... that
 *   answer.c   status, headers, body
 *   conn.c     how long each of this may take
 */
#ifndef IL_HTTP_HTTP_H
#define IL_HTTP_HTTP_H

#include <jansson.h>

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

typedef void http_fn(struct http_request *r);

/* ---- who asks ------------------------------------------------------------------------------------------------------------ */

/* A key that was found good. Shared by its requests; the loop's. */
struct http_caller {
    char                key_id[DATA_ID_BYTES];
    char                tenant[IL_TENANT_BYTES_MAX + 1];
    enum il__data_role  role;
    char                permissions[512]; /* named ones, separated by spaces */
    char                prefix[DATA_PREFIX_BYTES_MAX + 1];
    struct http_tenant *limits; /* limits.c: buckets and counts of its tenant */
};

/* ---- a request ----------------------------------------------------------------------------------------------------------- */

#define HTTP_PATH_ARGS_MAX 2
#define HTTP_REQUEST_ID_BYTES 65

/* A message to the loop, and an errand for the office thread (office.h). */
struct http_item {
    struct http_item *next;
    void (*fn)(struct http_item *item);
};
struct http_job {
    void (*work)(struct http_job *job); /* on the office thread */
    void (*then)(struct http_job *job); /* on the loop; NULL = none */
    struct http_job *next;              /* office.c's own, as what follows */
    struct http_item item;
};

enum http_stage {
    HTTP_STAGE_NEW,  /* the request line is there */
    HTTP_STAGE_HEAD, /* the head is complete; is it one that we accept, and whose? */
    HTTP_STAGE_BODY, /* accepted; the body comes */
    HTTP_STAGE_RUN,  /* complete: the handler has it */
};

struct http_request {
    struct http_server       *server;
    struct MHD_Connection    *conn; /* NULL once the client is gone: then answers are thrown away */
    const struct http_route  *route;
    const struct http_caller *caller; /* NULL on open routes */
    const char               *method;
    const char               *path;  /* as it came: not decoded, without the query */
    const char               *query; /* what follows the '?', as it came; NULL = none */
    const char               *peer;  /* address of the client; "unix" on a unix socket */
    char id[HTTP_REQUEST_ID_BYTES];  /* X-Request-Id: the client's, if it is harmless, or ours */
    const char *args[HTTP_PATH_ARGS_MAX]; /* what stands for {q}, {id} in the path, decoded, in order */
    json_t     *body;                     /* strictly parsed; NULL without one */
    const char *text;                     /* the body as it came */
    size_t      n_bytes;
    const char *idempotency_key; /* headers as they came, good until the answer; NULL = none */
    const char *api_key, *authorization;
    void       *mem; /* arena: lives as long as the request */
    int64_t     began_ns;

    /* The ops of http_apply(); the first is where most routes have their only one. `op` is released at the end of the request, an array of his
     * own by whoever made it. */
    il_op           op;
    il_op          *ops; /* &op, or in mem; NULL = &op */
    size_t          n_ops;
    struct il__call call;
    http_fn        *then;
    void           *state;   /* the handler's own, in mem */
    int64_t         wait_ms; /* the poll that was asked for */
    int64_t         waited_ns;
    int64_t         parked_ns; /* http_park(): in all; the ops' metrics count it as waited for */
    bool        tries_again; /* a conflict of its ops is not the end of it: it is not counted yet */
    const char *store_text;  /* what is said when the store cannot be used; NULL = the usual */
    http_fn    *gone; /* called on the loop when the client hangs up before the answer is complete; NULL = nobody wants to know */

    http_fn *ended; /* called on the loop when the request is over, whatever came of it: for what is not in mem; NULL = nothing is */
    void    *ended_cookie;

    struct http_once *once;            /* idempotency.c */
    unsigned          limits_held;     /* limits.c */
    int64_t limits_locks, limits_jobs; /* what its ops would add at most, while they are under way */
    struct http_key_waiter *key_waiter; /* auth.c: it waits for what is known of its key */

    /* The answer so far. */
    int            status;
    struct il__buf out;
    const char    *content_type; /* NULL = application/json */
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
    struct http_request *next;     /* the list of those that can be used again */
    struct http_item     item;     /* for the inbox: r->call is done */
    struct http_job      job;      /* the errand */
    http_fn             *work, *errand_then;
    const char *target; /* where libmicrohttpd has the request's target: head.c only looks at its place */
    size_t          n_target;
    size_t          n_expected; /* bytes of the body, by Content-Length */
    char           *room;       /* for the body */
    enum http_stage stage;
    bool            suspended;  /* libmicrohttpd leaves the connection alone */
    bool            head_again; /* it was suspended at the head: the first call comes once more */
    bool            in_call;    /* r->call is the il__async's */
    bool            in_errand;  /* r->job is the office's */
    bool            call_now;   /* ... and was done before the submit returned */
    bool            hung_up;
    bool            expects; /* Expect: 100-continue */
    bool            queued;
    bool            bare; /* no room for the usual headers */
    bool            streams;
    bool            parked; /* http_park(): it waits for its time */
    struct il__heap_node park;
    int64_t              park_began_ns;
    http_fn             *park_then;
};

/* A header of the request, the first of that name; NULL = not there. libmicrohttpd's, good until the answer. */
const char *http_request_header(struct http_request *r, const char *name);

/* Answer with what is in r->out. Once per request. */
void http_answer(struct http_request *r, int status);
void http_header(struct http_request *r, const char *name, const char *value);
void http_retry_after(struct http_request *r,
                      int64_t ms); /* Retry-After, rounded up; and details.retry_after_ms is the caller's business */

/*
 * The body of an error, as docs/HTTP.md says: {"success":false,"error":{"code","source","message","details"}}. `code` is a wire name of the status table
 * or one of errors.def; `details` is the text of a JSON object, or NULL. The message is printed as it is: no internals, no secrets. The answer so
 * far is thrown away, but for its headers.
 */
void http_fail(struct http_request *r, int status, const char *code, const char *source,
               const char *details, const char *fmt, ...) PRINTF_LIKE(6, 7);
/* The same for an op that did not end well, and for a call that failed as a whole: status table, details from op->out. */
void http_fail_op(struct http_request *r, const il_op *op, const char *source);
void http_fail_call(struct http_request *r);

/*
 * Hand r->ops to the il__async. `then` is called on the loop when they are done; when the call as a whole failed, it is not: http_fail_call() has answered. wait_ms: as
 * il__call.wait_until_ns; 0 = none. The tenant of each op is set to the caller's here unless it is set, and names are held against the caller's prefix
 * (404 or 403 is answered then, and nothing was applied). http_submit() does the same without looking at the prefix.
 */
void http_apply(struct http_request *r, int64_t wait_ms, http_fn *then);
void http_submit(struct http_request *r, int64_t wait_ms, http_fn *then);

/* Have a blocking errand done by the office thread: work() there, then then() on the loop. */
void http_errand(struct http_request *r, http_fn *work, http_fn *then);
/* The same for what may take seconds (it asks somebody else, reads many files): by one of a few threads beside the office, which answers for keys. */
void http_errand_slow(struct http_request *r, http_fn *work, http_fn *then);

/*
 * Keep the request for so long, then go on with then(r), on the loop; at once when the server is being stopped. A client that hangs up meanwhile ends it: then(r)
 * does not follow. It counts among the tenant's waiting requests: too many of them are answered with 429, and then(r) does not follow either.
 */
void http_park(struct http_request *r, int64_t ms, http_fn *then);

/* Allocate in r->mem. NULL is answered with 503 by whoever gets it: http_fail_nomem(r). */
void *http_alloc(struct http_request *r, size_t n_bytes);
void  http_fail_nomem(struct http_request *r);

/*
 * An answer that goes on: a response with a content reader (mhd.h). The usual headers are added, the response is consumed. The reader calls http_suspend()
 * when it has nothing and returns 0; http_resume() has it called again. Both on the loop. After r->gone the reader must end.
 */
void http_answer_stream(struct http_request *r, int status, struct MHD_Response *response);
void http_suspend(struct http_request *r);
void http_resume(struct http_request *r);

/* Run fn on the loop; from any thread. False: no memory, it will not run. */
bool http_post(struct http_server *s, void (*fn)(struct http_server *s, void *cookie), void *cookie)
    MUST_USE;

/* ---- the server ---------------------------------------------------------------------------------------------------------- */

enum http_log_level {
    HTTP_LOG_DEBUG,
    HTTP_LOG_INFO,
    HTTP_LOG_WARN,
    HTTP_LOG_ERROR
};

struct http_options {
    const char *listen; /* "127.0.0.1:7600", "[::1]:7600", "unix:/path"; port 0 = any free one */
    const char *metrics_listen; /* NULL = with the others */
    const char *store_url, *data_url, *pepper_file;
    il         *h;         /* open handle; the caller's */
    bool        tls_proxy; /* a proxy in front terminates TLS: a non-loopback address is fine */
    bool        log_json;
    enum http_log_level log_level;
    int64_t             shutdown_ms;    /* graceful shutdown takes at most; default 10 s */
    int64_t             body_bytes_max; /* of a request; default 1.5 MiB: 1 MiB and room for JSON */
    int64_t             body_bytes_max_large; /* ... on HTTP_LARGE routes; default 16 MiB */
    unsigned            connections_max;      /* default 10,240 */
    unsigned connections_per_ip_max; /* default 1,024; loopback and unix sockets are not counted */
    struct il__data_limits limits;   /* of tenants that have none of their own */
    int64_t                login_failures_per_minute; /* of an address, before it has to wait */
    int64_t                audit_keep_ms;
    int ready_fd; /* a line with the address is written here once it listens; -1 = none */
    /* SIGHUP: read the configuration again and change what may be changed while it runs in *o: log_level, limits, login_failures_per_minute, audit_keep_ms. */
    il_status (*reload)(void *cookie, struct http_options *o, const char **ret_restart,
                        il_error *reterr); /* *ret_restart: a key that needs a restart to count, or NULL */
    void *reload_cookie;
    /* The apps (app.h), and what each is opened with; borrowed. */
    const struct http_app *const *apps;
    void *const                  *app_cookies;
    size_t                        n_apps;
};

/* Look at an address without listening: IL_OK, or IL_INVAL. *ret_loopback: only this machine can reach it. */
il_status http_address_check(const char *text, bool *ret_loopback, il_error *reterr) MUST_USE;
/* Before the store is opened, and so before any thread is started: blocks the signals that the loop takes, keeps what we write and remember to ourselves. */
void il__http_prepare(void);
/* Runs until SIGTERM or SIGINT. Returns when all is down. IL_OK, or why it could not start. */
il_status il__http_serve(const struct http_options *o, il_error *reterr) MUST_USE;

#endif
