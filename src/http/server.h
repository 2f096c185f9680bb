/*
 * server.h: struct http_server: what the files of this folder share. Everything in it is the loop's unless it says otherwise.
 */
#ifndef IL_HTTP_SERVER_H
#define IL_HTTP_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "http/app.h"
#include "http/conn.h"
#include "http/http.h"

struct MHD_Daemon;

/*
 * What libmicrohttpd has for each connection: the head (text and a row of a table per header), the head of the answer, and reading. It touches all of
 * it after each request, so this is what an idle connection costs.
 */
#define HTTP_POOL_BYTES ((size_t)12 * 1024)

/* One address to listen on. */
struct http_listener {
    struct http_source  source; /* first */
    struct http_server *server;
    struct MHD_Daemon  *daemon;
    int                 fd; /* the listening socket */
    char address[140]; /* "127.0.0.1:7600", "[::1]:7600", "unix:/path": as it is, not as it was asked for */
    char path[110]; /* of a unix socket, removed at the end; "" = none */
    bool metrics;   /* only /metrics, /health and /ready are served here */
};
#define HTTP_LISTENERS_MAX 2

/* Messages to the loop from other threads. The first of a batch writes to the eventfd, the others see that it will come. */
struct http_inbox {
    _Atomic(struct http_item *) newest;
    int                         fd;
};

struct http_server {
    struct http_options  options; /* ours: SIGHUP changes it */
    struct http_options *o;       /* &options */
    il                  *h;
    struct il__async    *async;
    struct il__data     *data;

    struct http_log     *log;
    struct http_metrics *metrics;
    struct http_limits  *limits;
    struct http_auth    *auth;
    struct http_audit   *audit;
    struct http_streams *streams;
    struct http_office  *office, *slow;

    /* app.c: what the first n_open_apps of o->apps gave when they were opened */
    void  *app_states[HTTP_APPS_MAX];
    size_t n_open_apps;

    /* loop.c */
    pthread_t            thread; /* the loop's */
    int                  epoll_fd, signal_fd;
    struct http_source   inbox_source, signal_source;
    struct http_inbox    inbox;
    struct http_listener listeners[HTTP_LISTENERS_MAX];
    size_t               n_listeners;
    int64_t              now_ns;  /* CLOCK_BOOTTIME at the start of this turn */
    int64_t              tick_ns; /* when the ticks of the other parts are due */
    bool                 run_mhd; /* something was resumed: libmicrohttpd has work */
    bool                 stopping;
    int64_t              stop_by_ns; /* stopping: give up on what is left then */

    struct http_conns    conns;
    int64_t              began_ns; /* when the server was started */
    int64_t              ready_ns; /* status.c: when store and data store were found to be there */
    char                *openapi;  /* status.c: /openapi.json, made when it is first asked for */
    struct http_request *spare;    /* that can be used again */
    size_t               n_spare;
    size_t               n_requests; /* under way */
    struct il__call     *hold;       /* the call that is being submitted */
    struct http_request *gathered,
        *gathered_last;     /* whose calls are handed over at the end of this turn */
    struct il__heap parked; /* of requests: http_park() */
    bool            direct; /* the store is called directly: memory */
    uint64_t        n_ids;  /* request ids given out */
    char            id_base[16];
    bool            store_down; /* as the last call found it */
};

/* ---- loop.c --------------------------------------------------------------------------------------------------------------- */

il_status http_loop_open(struct http_server *s, il_error *reterr) MUST_USE;
/* Watch a daemon that was started. */
il_status http_loop_add(struct http_server *s, struct http_listener *l, il_error *reterr) MUST_USE;
void      http_loop_close(struct http_server *s);
/* Until it is told to stop and has: everything answered, or the time over. */
void http_loop_run(struct http_server *s);
/* Stop accepting, end what waits, finish what is under way. */
void http_loop_stop(struct http_server *s);
/* From any thread: item->fn(item) on the loop. */
void http_inbox_put(struct http_server *s, struct http_item *item);
void http_inbox_drain(struct http_server *s);
bool http_on_loop(const struct http_server *s);

/* ---- listen.c ------------------------------------------------------------------------------------------------------------- */

il_status http_listen(struct http_listener *l, const char *text, il_error *reterr) MUST_USE;
void      http_listen_end(struct http_listener *l); /* nobody can connect any more */

/* ---- request.c ------------------------------------------------------------------------------------------------------------ */

il_status http_daemon_start(struct http_server *s, struct http_listener *l, il_error *reterr) MUST_USE;
/* The client of a request is gone: what waits for it is ended. */
void http_request_hang_up(struct http_request *r);
/* Nobody will read the answer: it is not waited for any longer. */
void http_request_abandon(struct http_request *r);
/* No answer will come any more for those that are suspended: they are closed by the next MHD_run() or MHD_stop_daemon(). */
void http_requests_abandon(struct http_server *s);
void http_requests_release(struct http_server *s);
/* The head was accepted, and so was the key. */
void http_request_accept(struct http_request *r);

/* ---- call.c --------------------------------------------------------------------------------------------------------------- */

/* Hand over the calls that were gathered. */
void http_calls_flush(struct http_server *s);
/* Go on with parked requests whose time has come. When the next one's does: ns, or INT64_MAX. */
int64_t http_parked_tick(struct http_server *s);
/* The client of a request is gone: if it is parked, it ends. */
void http_parked_drop(struct http_request *r);

/* ---- app.c ---------------------------------------------------------------------------------------------------------------- */

il_status http_apps_open(struct http_server *s, il_error *reterr) MUST_USE;
void      http_apps_stop(struct http_server *s);   /* on the loop: they begin to end */
void      http_apps_reload(struct http_server *s); /* SIGHUP */
void      http_apps_tick(struct http_server *s, int64_t now_ns);
void      http_apps_print(struct http_server *s, struct il__buf *out);
/* Waits for them. meanwhile() is called now and then, on this thread. */
void http_apps_close(struct http_server *s, void (*meanwhile)(struct http_server *s));

/* ---- head.c --------------------------------------------------------------------------------------------------------------- */

/* The head is complete: refuse it (answered, r->close), or find the route and ask for the key: http_request_accept() follows. */
void http_head(struct http_request *r, const char *version);

/* ---- answer.c ------------------------------------------------------------------------------------------------------------- */

/* The answer that waits goes out. False: it cannot, the connection is to be closed. */
bool http_answer_queue(struct http_request *r) MUST_USE;

#endif
