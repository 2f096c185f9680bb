/*
 * request.c: the life of a request between libmicrohttpd and the handlers. Ops are in ops.c,
 * errands in errands.c.
 *
 * libmicrohttpd calls on_request() when the head is complete, for each piece of the body, and when
 * the whole body has arrived. Until there is an answer the connection is then suspended:
 * libmicrohttpd ignores it, so the loop watches its socket (conn.c). When the answer is ready the
 * connection is resumed, and on_request() is called once more and queues the answer. Everything
 * here runs on the loop.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "http/auth.h"
#include "http/limits.h"
#include "http/list_stream.h"
#include "http/log.h"
#include "http/metrics.h"
#include "http/mhd.h"
#include "http/pool.h"
#include "http/route.h"
#include "http/server.h"

#define OUT_BYTES_MAX (64 * 1024 * 1024)
#define SPARE_MAX 256
#define SPARE_BYTES_MAX 16384 /* size of the buffers that a reusable request keeps */
/* of an unwanted body: read and discard it, so that the client reads the answer and the
 * connection can be reused */
#define DRAIN_BYTES_MAX (3 << 19)

/* ---- creating and freeing -------------------------------------------------------------------- */

static struct http_request *
take_request(struct http_server *s)
{
    struct http_request *r = s->spare;

    if (r == NULL) {
        r = il__calloc(1, sizeof *r);
        if (r != NULL)
            il__buf_init(&r->out, OUT_BYTES_MAX);
        return r;
    }
    s->spare = r->next;
    s->n_spare--;
    /* Reset everything except the call, which is large and initialised at each use. */
    void          *mem = r->mem;
    struct il__buf out = r->out;
    memset(r, 0, offsetof(struct http_request, call));
    memset(&r->then, 0, sizeof *r - offsetof(struct http_request, then));
    r->mem = mem;
    r->out = out;
    return r;
}

static void
free_request(struct http_request *r)
{
    il__arena_free(&r->mem);
    il__buf_release(&r->out);
    il__free(r);
}

static void
give_request(struct http_server *s, struct http_request *r)
{
    json_decref(r->body);
    if (s->n_spare >= SPARE_MAX || r->n_expected > SPARE_BYTES_MAX ||
        r->out.capacity > SPARE_BYTES_MAX) {
        free_request(r);
        return;
    }
    il__arena_clear(&r->mem);
    il__buf_clear(&r->out);
    r->out.failed = false;
    r->next       = s->spare;
    s->spare      = r;
    s->n_spare++;
}

void
http_requests_release(struct http_server *s)
{
    CHECK(s->n_requests == 0);
    while (s->spare != NULL) {
        struct http_request *r = s->spare;
        s->spare               = r->next;
        free_request(r);
    }
}

/* Copy path and query of the target, which libmicrohttpd will modify. */
static bool
copy_target(struct http_request *r, const char *target)
{
    r->target   = target;
    r->n_target = strlen(target);
    char *copy  = il__arena_alloc(&r->mem, r->n_target + 1);
    if (copy == NULL)
        return false;
    memcpy(copy, target, r->n_target + 1);
    r->path    = copy;
    char *mark = strchr(copy, '?');
    if (mark != NULL) {
        *mark    = '\0';
        r->query = mark + 1;
    }
    return true;
}

static struct http_conn *
conn_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        il__mhd->MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

/* The request line has arrived. The return value becomes the request's *con_cls; NULL:
 * on_request() closes the connection. */
static void *
on_target(void *cookie, const char *target, struct MHD_Connection *mhd)
{
    struct http_listener *l = cookie;
    struct http_server   *s = l->server;
    struct http_conn     *c = conn_of(mhd);
    struct http_request  *r = c != NULL ? take_request(s) : NULL;

    if (r == NULL)
        return NULL;
    if (!copy_target(r, target != NULL ? target : "")) {
        free_request(r);
        return NULL;
    }
    r->server   = s;
    r->conn     = mhd;
    r->c        = c;
    r->peer     = http_conn_peer(c);
    r->began_ns = il__clock_boot_ns();
    c->request  = r;
    s->n_requests++;
    return r;
}

void
http_request_end(struct http_request *r)
{
    struct http_server *s = r->server;

    CHECK(r->c == NULL && !r->in_errand && s->n_requests > 0);
    if (r->ended != NULL)
        r->ended(r);
    if (r->list != NULL)
        http_list_end(r);
    http_results_drop(r, 0);
    http_limits_body_end(r);
    http_auth_end(r);
    s->n_requests--;
    give_request(s, r);
}

static void
on_end(void *cookie UNUSED, struct MHD_Connection *mhd UNUSED, void **context,
       enum MHD_RequestTerminationCode how)
{
    struct http_request *r = *context;

    *context = NULL;
    if (r == NULL)
        return;
    struct http_server *s = r->server;
    CHECK(!r->in_call && (!r->in_errand || r->list != NULL));
    http_delayed_drop(r);
    if (r->on_hang_up != NULL && how != MHD_REQUEST_TERMINATED_COMPLETED_OK && !r->hung_up) {
        r->conn    = NULL;
        r->hung_up = true;
        r->on_hang_up(r);
    }
    if (r->stage != HTTP_STAGE_NEW) {
        http_log_request(r);
        http_metrics_request(r);
    }
    if (r->response != NULL)
        il__mhd->MHD_destroy_response(r->response);
    CHECK(r->c->request == r);
    r->c->request = NULL;
    if (!r->c->cut)
        http_conn_phase(s, r->c, HTTP_PHASE_IDLE);
    r->conn = NULL;
    r->c    = NULL;
    r->left = r->in_errand; /* a list is still being produced: its errand ends the request */
    if (r->left)
        http_pool_client_left(r);
    else
        http_request_end(r);
}

static void
on_connection(void *cookie, struct MHD_Connection *mhd, void **context,
              enum MHD_ConnectionNotificationCode what)
{
    struct http_listener *l = cookie;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        struct http_conn *c = http_conn_new(l->server, mhd);
        if (c != NULL)
            c->listener = l;
        *context = c;
    } else if (*context != NULL) {
        http_conn_free(l->server, *context);
        *context = NULL;
    }
}

static enum MHD_Result
on_accept(void *cookie, const struct sockaddr *from, socklen_t n_bytes UNUSED)
{
    struct http_listener *l = cookie;

    return http_conn_admit(l->server, from) ? MHD_YES : MHD_NO;
}

/* Decoding is done in inputs.c, strictly. */
static size_t
on_unescape(void *cookie UNUSED, struct MHD_Connection *mhd UNUSED, char *text)
{
    return strlen(text);
}

/* ---- head, body, handler --------------------------------------------------------------------- */

void
http_request_accept(struct http_request *r)
{
    CHECK(r->stage == HTTP_STAGE_HEAD);
    if (!http_limits_body(r))
        return;
    if (r->n_expected > 0) {
        r->room = http_alloc(r, r->n_expected + 1);
        if (r->room == NULL) {
            http_fail_nomem(r);
            return;
        }
        r->text = r->room;
    }
    r->stage = HTTP_STAGE_BODY;
    if (r->suspended)
        http_resume(r);
}

static void
gather(struct http_request *r, const char *data, size_t n_bytes)
{
    if (r->answered || r->room == NULL)
        return; /* it is only read */
    CHECK(n_bytes <= r->n_expected - r->n_bytes);
    memcpy(r->room + r->n_bytes, data, n_bytes);
    r->n_bytes += n_bytes;
}

/* The request is complete. */
static void
run(struct http_request *r)
{
    il_error err;

    r->stage = HTTP_STAGE_RUN;
    http_conn_phase(r->server, r->c, HTTP_PHASE_WORK);
    if (r->n_bytes > 0) {
        r->room[r->n_bytes] = '\0';
        il_status st        = il__wire_load_for(r->route != NULL ? r->route->body : NULL, r->text,
                                         r->n_bytes, &r->body, &err);
        if (st != IL_OK) {
            http_fail(r, il_status_http(st), il_status_name(st), "request", NULL, "%s",
                      err.message);
            return;
        }
    }
    http_run(r);
}

/* The answer is ready before the body: read the body if it is small, so that the connection can
 * be reused. */
static bool
reads_on(struct http_request *r)
{
    if (r->close || r->n_expected > DRAIN_BYTES_MAX || (r->expects && r->n_expected > 0))
        return false;
    http_conn_phase(r->server, r->c, r->n_expected > 0 ? HTTP_PHASE_BODY : HTTP_PHASE_WORK);
    return true;
}

/* Return the request to libmicrohttpd. `early`: the body has not been read yet. */
static enum MHD_Result
leave(struct http_request *r, bool early)
{
    if (r->queued)
        return MHD_YES;
    if (r->answered) {
        if (early && reads_on(r))
            return MHD_YES;
        if (early && r->n_expected > 0 && !r->hung_up)
            http_conn_linger(r->server, r->c);
        return http_answer_queue(r) ? MHD_YES : MHD_NO;
    }
    if (r->hung_up && !r->in_call && !r->in_errand)
        return MHD_NO;
    if (r->stage == HTTP_STAGE_BODY) {
        if (early)
            http_conn_phase(r->server, r->c, r->n_expected > 0 ? HTTP_PHASE_BODY : HTTP_PHASE_WORK);
        return MHD_YES;
    }
    r->head_again = early;
    if (early)
        http_conn_phase(r->server, r->c, HTTP_PHASE_WORK);
    http_suspend(r);
    return MHD_YES;
}

static enum MHD_Result
on_request(void *cookie UNUSED, struct MHD_Connection *mhd UNUSED, const char *url UNUSED,
           const char *method, const char *version, const char *data, size_t *n_bytes,
           void **context)
{
    struct http_request *r = *context;

    if (r == NULL)
        return MHD_NO;
    bool early    = r->stage == HTTP_STAGE_NEW || r->head_again;
    r->head_again = false;
    if (r->stage == HTTP_STAGE_NEW) {
        r->stage  = HTTP_STAGE_HEAD;
        r->method = method;
        http_head(r, version);
    } else if (*n_bytes > 0) {
        gather(r, data, *n_bytes);
        *n_bytes = 0;
        return MHD_YES;
    } else if (!early && r->stage == HTTP_STAGE_BODY && !r->answered) {
        run(r);
    }
    return leave(r, early);
}

/* ---- waiting --------------------------------------------------------------------------------- */

void
http_suspend(struct http_request *r)
{
    CHECK(!r->suspended);
    r->suspended = true;
    il__mhd->MHD_suspend_connection(r->c->mhd);
}

void
http_resume(struct http_request *r)
{
    if (!r->suspended)
        return;
    r->suspended       = false;
    r->server->run_mhd = true;
    il__mhd->MHD_resume_connection(r->c->mhd);
}

void
http_request_abandon(struct http_request *r)
{
    if (r->hung_up)
        return;
    r->hung_up = true;
    r->conn    = NULL;
    http_calls_flush(r->server); /* its own may be there */
    if (r->in_call)
        il__async_cancel(r->server->async, &r->call);
    if (r->on_hang_up != NULL)
        r->on_hang_up(r);
    http_delayed_drop(r);
    if (r->list != NULL)
        http_list_client_left(r);
    http_pool_client_left(r);
    if (r->streams)
        http_resume(r); /* its reader ends it */
}

void
http_request_client_left(struct http_request *r)
{
    bool waits = r->in_call && r->call.wait_until_ns != 0;

    /* A client may close its sending side and still read, so whatever does not take long is
     * answered anyway. For a connection that is not suspended, libmicrohttpd notices it. */
    if (r->suspended && (waits || r->delayed || r->pooled || r->streams))
        http_request_abandon(r);
}

bool
http_request_is_cut_off(struct http_request *r)
{
    if (r->server->async != NULL)
        return false;
    r->answered = true;
    http_resume(r);
    return true;
}

void
http_requests_abandon(struct http_server *s)
{
    for (size_t i = 0; i < HTTP_PHASE_COUNT; i++) {
        for (struct http_conn *c = s->conns.lists[i].first; c != NULL; c = c->next) {
            struct http_request *r = c->request;
            if (r == NULL || !r->suspended)
                continue;
            r->in_errand = false; /* dropped with the errands */
            r->pooled    = false;
            CHECK(!r->in_call);
            http_request_abandon(r);
            http_resume(r);
        }
    }
}

/* ---- helpers --------------------------------------------------------------------------------- */

void *
http_alloc(struct http_request *r, size_t n_bytes)
{
    return il__arena_alloc(&r->mem, n_bytes);
}

void *
http_calloc(struct http_request *r, size_t n_bytes)
{
    void *zeroed = http_alloc(r, n_bytes);

    if (zeroed != NULL)
        memset(zeroed, 0, n_bytes);
    else
        http_fail_nomem(r);
    return zeroed;
}

const char *
http_request_header(struct http_request *r, const char *name)
{
    if (strcmp(name, "X-API-Key") == 0)
        return r->api_key;
    if (strcmp(name, "Authorization") == 0)
        return r->authorization;
    return r->conn != NULL ? il__mhd->MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, name)
                           : NULL;
}

il_status
http_daemon_start(struct http_server *s, struct http_listener *l, il_error *reterr)
{
    l->server = s;
    /* In strict mode, versions before 1.0 close the connection where head.c can still say why. */
    l->daemon = il__mhd->MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, on_accept, l, on_request, l,
        MHD_OPTION_LISTEN_SOCKET, l->fd, MHD_OPTION_CONNECTION_LIMIT, s->o->connections_max,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_POOL_BYTES, MHD_OPTION_STRICT_FOR_CLIENT,
        http_mhd_strict ? 1 : 0, MHD_OPTION_URI_LOG_CALLBACK, on_target, l,
        MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, l, MHD_OPTION_END);
    if (l->daemon == NULL)
        return il__error_set(reterr, IL_NOMEM, "libmicrohttpd cannot start on %s", l->address);
    return IL_OK;
}
