/*
 * server.h: struct http_server, shared by the files of this folder. All of it is used on the loop
 * only, unless stated otherwise.
 */
#ifndef IL_HTTP_SERVER_H
#define IL_HTTP_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mutex.h"
#include "http/app.h"
#include "http/conn.h"
#include "http/http.h"
#include "http/ui.h"

struct MHD_Daemon;

/*
 * libmicrohttpd's memory per connection: the head (text and a table row per header), the head of
 * the answer, and the read buffer. It touches all of it after each request, so this is the cost of
 * an idle connection.
 */
#define HTTP_POOL_BYTES ((size_t)12 * 1024)

/* One address to listen on. */
struct http_listener {
    struct http_source  source; /* first */
    struct http_server *server;
    struct MHD_Daemon  *daemon;
    int                 fd; /* the listening socket */
    /* "127.0.0.1:7600", "[::1]:7600", "unix:/path": the actual address */
    char address[140];
    char path[110]; /* of a unix socket, removed on exit; "" = none */
    bool metrics;   /* only /metrics, /health and /ready are served here */
};
#define HTTP_LISTENERS_MAX 2

/* Messages to the loop from other threads. Only the first of a batch writes to the eventfd. */
struct http_inbox {
    _Atomic(struct http_item *) newest;
    int                         fd;
};

struct http_server {
    struct http_options  options; /* a copy: SIGHUP changes it */
    struct http_options *o;       /* &options */
    il                  *h;
    struct il__async    *async;
    struct il__data     *data;

    struct http_log       *log;
    struct http_metrics   *metrics;
    struct http_leases    *leases;
    struct http_refusals  *refusals;
    struct http_limits    *limits;
    struct http_auth      *auth;
    struct http_audit     *audit;
    struct http_streams   *streams;
    struct http_threads   *errands;
    struct http_pool      *pool;
    struct http_row_locks *row_locks;
    struct http_samples   *samples;
    struct http_ui_link    link; /* ui_session.c */

    /* app.c: the states of the first n_open_apps of o->apps */
    void  *app_states[HTTP_APPS_MAX];
    size_t n_open_apps;
    /* One app starts at a time. The loop never takes it: in_use() and start() may block. */
    struct il__mutex app_mutex;
    atomic_bool      app_ready[HTTP_APPS_MAX]; /* start() has returned IL_OK; set with the mutex */
    bool             app_runs[HTTP_APPS_MAX];  /* and the loop knows it; only used there */

    /* loop.c */
    pthread_t            thread; /* the loop's */
    int                  epoll_fd, signal_fd;
    struct http_source   inbox_source, signal_source;
    struct http_inbox    inbox;
    struct http_listener listeners[HTTP_LISTENERS_MAX];
    size_t               n_listeners;
    int64_t              now_ns;    /* CLOCK_BOOTTIME at the start of this turn */
    int64_t              tick_ns;   /* when the ticks of the other parts are due */
    bool                 run_mhd;   /* something was resumed: libmicrohttpd has work */
    bool                 announced; /* that it listens */
    bool                 stopping;
    int64_t              stop_by_ns; /* stopping: when to give up on what is left */

    struct http_conns    conns;
    int64_t              began_ns; /* when the server was started */
    int64_t              ready_ns; /* status.c: when store and data store were last reachable */
    char                *openapi;  /* status.c: /openapi.json, built on first use */
    struct http_request *spare;    /* that can be used again */
    size_t               n_spare;
    size_t               n_requests; /* under way */
    struct il__call     *hold;       /* the call being submitted */
    struct http_request *gathered,
        *gathered_last;      /* requests whose calls are submitted at the end of this turn */
    struct il__heap delayed; /* of requests: http_delay() */
    bool            direct;  /* the store is called directly: memory */
    uint64_t        n_ids;   /* request ids given out */
    char            id_base[16];
    bool            store_down; /* as the last call found it */
};

/* ---- loop.c ---------------------------------------------------------------------------------- */

il_status http_loop_open(struct http_server *s, il_error *reterr) MUST_USE;
/* Watch a daemon that was started. */
il_status http_loop_add(struct http_server *s, struct http_listener *l, il_error *reterr) MUST_USE;
void      http_loop_close(struct http_server *s);
/* Run until told to stop and everything is answered or the time is up. */
void http_loop_run(struct http_server *s);
/* From any thread: item->fn(item) on the loop. */
void http_inbox_put(struct http_server *s, struct http_item *item);
void http_inbox_drain(struct http_server *s);
bool http_on_loop(const struct http_server *s);

/* ---- reload.c -------------------------------------------------------------------------------- */

void http_reload(struct http_server *s);

/* ---- shutdown.c ------------------------------------------------------------------------------ */

/* Stop accepting, end waits, finish what is in progress. On the loop; safe to repeat. */
void http_shutdown_start(struct http_server *s);
/* Closes idle connections, too. */
bool http_shutdown_is_over(struct http_server *s);
/* The loop has ended: give up on the requests that are left. */
void http_shutdown_cut_off(struct http_server *s);

/* ---- open_stores.c --------------------------------------------------------------------------- */

/* Open s->h and s->data, and wait while they cannot be reached; s->listeners already have their
 * sockets then. IL_OK with s->stopping: a signal ended the wait. */
il_status http_stores_open(struct http_server *s, il_error *reterr) MUST_USE;

/* ---- server.c -------------------------------------------------------------------------------- */

void http_say_listening(struct http_server *s);

/* ---- systemd.c ------------------------------------------------------------------------------- */

void http_notify(const char *state); /* tell systemd */
/* Is standard output connected to the journal? */
bool http_is_in_journal(void);

/* ---- listen.c -------------------------------------------------------------------------------- */

il_status http_listen(struct http_listener *l, const char *text, il_error *reterr) MUST_USE;
void      http_listen_end(struct http_listener *l); /* no new connections */

/* ---- request.c ------------------------------------------------------------------------------- */

il_status http_daemon_start(struct http_server *s, struct http_listener *l, il_error *reterr)
    MUST_USE;
/* The client of a request has gone: end what waits for it. */
void http_request_client_left(struct http_request *r);
/* Its connection is closed, and no other thread uses it: free what it has. */
void http_request_end(struct http_request *r);
/* The answer will not be read: stop waiting for it. */
void http_request_abandon(struct http_request *r);
/* Has the server given up on the remaining requests? Then nothing more is done for them, and
 * they are not answered. */
bool http_request_is_cut_off(struct http_request *r) MUST_USE;
/* Suspended requests will get no answer: the next MHD_run() or MHD_stop_daemon() closes them. */
void http_requests_abandon(struct http_server *s);
void http_requests_release(struct http_server *s);
/* The head and the key were accepted. */
void http_request_accept(struct http_request *r);

/* ---- ops.c ----------------------------------------------------------------------------------- */

/* Submit the calls collected in this turn. */
void http_calls_flush(struct http_server *s);
/* Release the results of the ops; n_bytes is what the request still holds for its client. */
void http_results_drop(struct http_request *r, size_t n_bytes);

/* ---- delay.c --------------------------------------------------------------------------------- */

/* Resume delayed requests whose time has come. Returns the next time in ns, or INT64_MAX. */
int64_t http_delayed_tick(struct http_server *s);
/* The client of a request has gone: if it is delayed, end it. */
void http_delayed_drop(struct http_request *r);

/* ---- app.c ----------------------------------------------------------------------------------- */

il_status http_apps_open(struct http_server *s, il_error *reterr) MUST_USE;
/* Call then(r), after the app of the request's route has started; or answer why it cannot. */
void http_app_ensure(struct http_request *r, http_fn *then);
void http_apps_stop(struct http_server *s);   /* on the loop: start to shut them down */
void http_apps_reload(struct http_server *s); /* SIGHUP */
void http_apps_tick(struct http_server *s, int64_t now_ns);
void http_apps_print(struct http_server *s, struct il__buf *out);
/* Waits until they are closed. meanwhile() is called periodically on this thread. */
void http_apps_close(struct http_server *s, void (*meanwhile)(struct http_server *s));

/* ---- head.c ---------------------------------------------------------------------------------- */

/* The head is complete: refuse it (answered, r->close), or find the route and check the key;
 * http_request_accept() follows. */
void http_head(struct http_request *r, const char *version);

/* ---- answer.c -------------------------------------------------------------------------------- */

/* Send the pending answer. False: it cannot be sent; close the connection. */
bool http_answer_queue(struct http_request *r) MUST_USE;

#endif
