/*
 * open_stores.c: opens store and data store, and waits for them.
 *
 * A server that starts before its database, as after a power failure, waits for it: it listens,
 * reports on /health that it is alive, answers everything else with 503, and retries every second.
 * An error that a retry cannot fix (a wrong password, the schema of a newer version) ends the
 * start.
 *
 * Meanwhile only the log and the loop's descriptors are open, so the usual handlers cannot be used:
 * a separate libmicrohttpd daemon with its own thread answers with constants. Its listening sockets
 * are handed over to the server; connections that arrive in between wait in the backlog.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "http/log.h"
#include "http/mhd.h"
#include "http/server.h"

#define RETRY_MS 1000
#define REMIND_NS (60 * 1000 * (int64_t)IL__NS_PER_MS)
#define BODY_BYTES_MAX ((size_t)64 << 20) /* as much as any configuration allows */
#define SILENCE_S 10U                     /* a client silent for this long is cut off */

/* ---- answers while waiting ------------------------------------------------------------------- */

static const char healthy[] = "{\"status\":\"ok\"}";
static const char waiting[] =
    "{\"success\":false,\"error\":{\"code\":\"STORE_UNAVAILABLE\",\"source\":\"store\",\"message\":"
    "\"the server is waiting for its store\",\"details\":{}}}";

static enum MHD_Result
respond(struct MHD_Connection *conn, unsigned status, const char *text, size_t n_bytes)
{
    char                *body = (char *)(uintptr_t)text; /* constant, and only read */
    struct MHD_Response *response =
        il__mhd->MHD_create_response_from_buffer(n_bytes, body, MHD_RESPMEM_PERSISTENT);

    if (response == NULL)
        return MHD_NO;
    /* An answer without one of the headers is still an answer. */
    (void)il__mhd->MHD_add_response_header(response, "Content-Type", "application/json");
    (void)il__mhd->MHD_add_response_header(response, "Cache-Control", "no-store");
    (void)il__mhd->MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    (void)il__mhd->MHD_add_response_header(response, "Connection", "close");
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
        (void)il__mhd->MHD_add_response_header(response, "Retry-After", "1");
    enum MHD_Result queued = il__mhd->MHD_queue_response(conn, status, response);
    il__mhd->MHD_destroy_response(response);
    return queued; /* MHD_NO closes the connection */
}

/*
 * On libmicrohttpd's thread: once with the head, then for each part of the body, then at its end.
 * The body is read and discarded: a client cut off while sending would not see the answer. *state
 * counts its bytes, from 1.
 */
static enum MHD_Result
on_request(void *cookie UNUSED, struct MHD_Connection *conn, const char *path, const char *method,
           const char *version UNUSED, const char *body UNUSED, size_t *n_body, void **state)
{
    bool   get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    size_t n   = (size_t)(uintptr_t)*state;

    if (n == 0 || *n_body > 0) {
        n += *n_body + (n == 0);
        *n_body = 0;
        *state  = (void *)(uintptr_t)n;
        return n <= BODY_BYTES_MAX ? MHD_YES : MHD_NO;
    }
    if (get && (strcmp(path, "/health") == 0 || strcmp(path, "/api/v1/health") == 0))
        return respond(conn, MHD_HTTP_OK, healthy, sizeof healthy - 1);
    return respond(conn, MHD_HTTP_SERVICE_UNAVAILABLE, waiting, sizeof waiting - 1);
}

static il_status
start_one(struct http_server *s, const char *text, bool metrics, il_error *reterr)
{
    struct http_listener *l  = &s->listeners[s->n_listeners];
    il_status             st = http_listen(l, text, reterr);

    if (st != IL_OK)
        return st;
    l->metrics = metrics;
    s->n_listeners++;
    l->daemon = il__mhd->MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC, 0, NULL, NULL, on_request,
        NULL, MHD_OPTION_LISTEN_SOCKET, l->fd, MHD_OPTION_CONNECTION_LIMIT, s->o->connections_max,
        MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HTTP_POOL_BYTES, MHD_OPTION_END);
    if (l->daemon == NULL)
        return il__error_set(reterr, IL_NOMEM, "libmicrohttpd cannot start on %s", l->address);
    return IL_OK;
}

/* The sockets stay open: the server continues with them. */
static void
stop_answering(struct http_server *s)
{
    for (size_t i = 0; i < s->n_listeners; i++) {
        struct http_listener *l = &s->listeners[i];
        if (l->daemon == NULL)
            continue;
        (void)il__mhd->MHD_quiesce_daemon(l->daemon); /* our socket */
        il__mhd->MHD_stop_daemon(l->daemon);
        l->daemon = NULL;
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

static il_status
open_data(struct http_server *s, il_error *reterr)
{
    struct il__data_open open = { .store_url   = s->o->store_url,
                                  .data_url    = s->o->data_url,
                                  .pepper_file = s->o->pepper_file };

    il_status st = il__data_open(&open, &s->data, reterr);
    if (st == IL_OK)
        http_log(s, HTTP_EVENT_starting, "tenants and keys are in %s", il__data_where(s->data));
    return st;
}

/* Where the data store is, for is_unreachable(). */
static const char *
data_url(const struct http_options *o)
{
    if (o->data_url != NULL)
        return o->data_url;
    return strncmp(o->store_url, "redis", 5) == 0 ? "sqlite:" : o->store_url;
}

/* Open the stores that are not open yet. *ret_unreachable: it failed, but may succeed later. */
static il_status
try_open(struct http_server *s, bool *ret_unreachable, il_error *reterr)
{
    const char *url = s->o->store_url;
    il_status   st  = IL_OK;

    if (s->h == NULL)
        st = s->o->open_store(s->o->open_cookie, &s->h, reterr);
    if (st == IL_OK) {
        url = data_url(s->o);
        st  = open_data(s, reterr);
    }
    *ret_unreachable = st != IL_OK && s->o->is_unreachable(url, reterr);
    return st;
}

/* Sleep until the next attempt. False: stopped by a signal. */
static bool
sleep_on(struct http_server *s)
{
    struct pollfd           fd = { s->signal_fd, POLLIN, 0 };
    struct signalfd_siginfo info;

    (void)poll(&fd, 1, RETRY_MS); /* interrupted: retry sooner */
    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGHUP) /* nothing to reload yet: retry at once */
            return false;
    }
    return true;
}

static void
say_down(struct http_server *s, const il_error *err)
{
    http_log(s, s->h == NULL ? HTTP_EVENT_store_down : HTTP_EVENT_data_down,
             "waiting for the %s; /ready returns 503: %s", s->h == NULL ? "store" : "data store",
             err->message);
    http_log_flush(s);
}

static il_status
answer_meanwhile(struct http_server *s, il_error *reterr)
{
    const char *metrics = s->o->metrics_listen;
    il_status   st      = start_one(s, s->o->listen, false, reterr);

    return st == IL_OK && metrics != NULL ? start_one(s, metrics, true, reterr) : st;
}

static il_status
wait_open(struct http_server *s, il_error *reterr)
{
    bool      unreachable = true;
    int64_t   said_ns     = il__clock_boot_ns();
    il_error  why         = *reterr;
    il_status st          = answer_meanwhile(s, reterr);

    if (st != IL_OK)
        return st;
    http_say_listening(s);
    say_down(s, &why);
    /* A server that loses its store later stays active as well. */
    http_notify("READY=1\nSTATUS=waiting for the store");
    while (unreachable) {
        bool for_data = s->h != NULL;
        if (!sleep_on(s)) {
            http_log(s, HTTP_EVENT_stopping, NULL);
            s->stopping = true;
            return IL_OK;
        }
        st            = try_open(s, &unreachable, reterr);
        bool progress = s->h != NULL && !for_data;
        if (progress)
            http_log(s, HTTP_EVENT_store_up, NULL);
        if (st == IL_OK && for_data)
            http_log(s, HTTP_EVENT_data_up, NULL);
        if (unreachable && (progress || il__clock_boot_ns() - said_ns >= REMIND_NS)) {
            said_ns = il__clock_boot_ns();
            say_down(s, reterr);
        }
    }
    return st;
}

il_status
http_stores_open(struct http_server *s, il_error *reterr)
{
    bool      unreachable = false;
    il_error  err         = { 0 };
    il_status st          = try_open(s, &unreachable, &err);

#ifdef IL_MUTANT_start_gives_up
    unreachable = false;
#endif
    if (unreachable) {
        st = wait_open(s, &err);
        stop_answering(s);
    }
    if (st != IL_OK && reterr != NULL)
        *reterr = err;
    return st;
}
