/*
 * serve.c: the server of the generated site; see serve.h.
 *
 * One thread per connection, so that a slow answer may simply wait. The threads share the options,
 * which do not change, the number of requests, which is atomic, the output, whose lines are written
 * with one call each, and a descriptor that becomes readable when the server stops and ends every
 * wait.
 */
#include "apps/ingest/site/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "http/mhd.h"
#include "http/server.h"
#include "wire/wire.h"

#define CONNECTIONS_MAX 256
#define IDLE_S 60
#define BLOCK_BYTES 16384
#define SLOW_BYTES 16
#define SLOW_MS 100
#define LINE_BYTES_MAX (64 << 10)
#define TRUTH "/truth/"

struct site {
    const struct site_serve *o;
    struct http_listener     listener;
    atomic_uint_fast64_t     n_requests; /* of pages */
    int                      stop_fd;
};

/* A request until it is answered. */
struct request {
    char *url;
    bool  begun; /* its head was seen */
};

/* The body of an answer; lives as long as libmicrohttpd's response. */
struct body {
    struct site      *site;
    struct il__buf    page;
    enum site_failure failure;
};

/* Returns false if the server stops meanwhile. */
static bool
wait_ms(const struct site *site, int64_t ms)
{
    struct pollfd stop = { .fd = site->stop_fd, .events = POLLIN };

    return ms == 0 || poll(&stop, 1, (int)ms) == 0;
}

/* ---- log ------------------------------------------------------------------------------------- */

/* A line that is lost because there is no memory, or no reader, is no reason to stop. */
static void
log_request(struct site *site, const char *method, const char *url, unsigned status,
            enum site_failure failure)
{
    static const char *const names[] = {
#define X(id, name) name,
        SITE_FAILURES(X)
#undef X
    };
    AUTO_BUF struct il__buf line;

    if (!site->o->json)
        return;
    il__buf_init(&line, LINE_BYTES_MAX);
    il__wire_open(&line, NULL);
    il__wire_put_text(&line, "method", method);
    il__wire_put_text(&line, "path", url);
    il__wire_put_int(&line, "status", status);
    il__wire_put_text(&line, "failure", failure == SITE_FAIL_NOT ? NULL : names[failure]);
    il__wire_close(&line);
    il__buf_addc(&line, '\n');
    if (line.failed)
        return;
    (void)fwrite(il__buf_str(&line), 1, line.n_bytes, site->o->out); /* locks the stream */
    (void)fflush(site->o->out);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static ssize_t
read_body(void *cookie, uint64_t at, char *out, size_t n_max)
{
    const struct body *body = cookie;
    uint64_t           n    = body->page.n_bytes;

    if (body->failure == SITE_FAIL_TRUNCATE)
        n /= 2;
    if (body->failure == SITE_FAIL_HUGE && at >= n) {
        if (at >= SITE_HUGE_BYTES)
            return MHD_CONTENT_READER_END_OF_STREAM;
        memset(out, ' ', n_max);
        return (ssize_t)n_max;
    }
    if (at >= n)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    n_max = MIN(n_max, n - at);
    if (body->failure == SITE_FAIL_SLOW) {
        n_max = MIN(n_max, (size_t)SLOW_BYTES);
        if (!wait_ms(body->site, SLOW_MS))
            return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    memcpy(out, body->page.data + at, n_max);
    return (ssize_t)n_max;
}

static void
free_body(void *cookie)
{
    struct body *body = cookie;

    il__buf_release(&body->page);
    il__free(body);
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool
is_unchanged(struct MHD_Connection *conn, const struct site_answer *answer)
{
    const char *etag = il__mhd->MHD_lookup_connection_value(conn, MHD_HEADER_KIND, "If-None-Match");
    const char *since =
        il__mhd->MHD_lookup_connection_value(conn, MHD_HEADER_KIND, "If-Modified-Since");

    if (answer->status != MHD_HTTP_OK)
        return false;
    if (etag != NULL)
        return strcmp(etag, "*") == 0 || strstr(etag, answer->etag) != NULL;
    return since != NULL && strcmp(since, answer->last_modified) == 0;
}

static bool
add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return value[0] == '\0' || il__mhd->MHD_add_response_header(response, name, value) == MHD_YES;
}

/* The same page under another name of this host: a client that must not follow it could. */
static bool
add_location(struct MHD_Response *response, const struct site *site, const char *url)
{
    AUTO_BUF struct il__buf text;
    const char             *colon = strrchr(site->listener.address, ':');

    CHECK(colon != NULL);
    il__buf_init(&text, LINE_BYTES_MAX);
    il__buf_addf(&text, "http://localhost%s%s", colon, url);
    return !text.failed && add_header(response, "Location", il__buf_str(&text));
}

static bool
add_headers(struct MHD_Response *response, const struct body *body, const char *url,
            unsigned status, const struct site_answer *answer)
{
    bool type = body->failure == SITE_FAIL_TYPE;

    return add_header(response, "Content-Type", type ? "image/png" : answer->content_type) &&
           add_header(response, "ETag", answer->etag) &&
           add_header(response, "Last-Modified", answer->last_modified) &&
           (status != MHD_HTTP_TOO_MANY_REQUESTS || add_header(response, "Retry-After", "1")) &&
           (status != MHD_HTTP_FOUND || add_location(response, body->site, url)) &&
           (status != MHD_HTTP_METHOD_NOT_ALLOWED || add_header(response, "Allow", "GET, HEAD"));
}

/* Consumes the body. */
static enum MHD_Result
respond(struct MHD_Connection *conn, struct body *body, const char *url, unsigned status,
        const struct site_answer *answer)
{
    uint64_t n_bytes = body->failure == SITE_FAIL_HUGE ? MHD_SIZE_UNKNOWN : body->page.n_bytes;
    struct MHD_Response *response = il__mhd->MHD_create_response_from_callback(
        n_bytes, BLOCK_BYTES, read_body, body, free_body);
    enum MHD_Result result = MHD_NO;

    if (response == NULL) {
        free_body(body);
        return MHD_NO;
    }
    if (add_headers(response, body, url, status, answer))
        result = il__mhd->MHD_queue_response(conn, status, response);
    il__mhd->MHD_destroy_response(response);
    return result;
}

static unsigned
status_of(struct MHD_Connection *conn, const char *method, const struct site_answer *answer,
          enum site_failure failure)
{
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return MHD_HTTP_METHOD_NOT_ALLOWED;
    switch (failure) {
    case SITE_FAIL_503:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    case SITE_FAIL_429:
        return MHD_HTTP_TOO_MANY_REQUESTS;
    case SITE_FAIL_REDIRECT:
        return MHD_HTTP_FOUND;
    case SITE_FAIL_NOT:
        return is_unchanged(conn, answer) ? MHD_HTTP_NOT_MODIFIED : answer->status;
    default:
        return answer->status;
    }
}

/* The options for the page that request number `n` is for. */
static struct site_options
options_at(const struct site *site, uint64_t n)
{
    struct site_options options = site->o->site;
    uint64_t            every   = site->o->change_every;

    if (every > 0)
        options.revision = MIN(options.revision + n / every, (uint64_t)SITE_REVISION_MAX);
    return options;
}

static enum MHD_Result
answer_request(struct site *site, struct MHD_Connection *conn, const char *method, const char *url)
{
    bool               truth = strncmp(url, TRUTH, strlen(TRUTH)) == 0;
    uint64_t           n     = atomic_load(&site->n_requests);
    enum site_failure  how   = SITE_FAIL_NOT;
    struct site_answer answer;

    if (!truth) {
        n = atomic_fetch_add(&site->n_requests, 1) + 1;
        if (site->o->fail_every > 0 && n % site->o->fail_every == 0)
            how = site->o->fail_how;
        if (!wait_ms(site, site->o->delay_ms))
            return MHD_NO;
    }
    if (how == SITE_FAIL_CUT) {
        log_request(site, method, url, 0, how);
        return MHD_NO;
    }
    struct site_options options = options_at(site, n);
    struct body        *body    = il__calloc(1, sizeof *body);
    if (body == NULL)
        return MHD_NO;
    body->site    = site;
    body->failure = how;
    il__buf_init(&body->page, truth ? SITE_TRUTH_BYTES_MAX : SITE_PAGE_BYTES_MAX);
    if (!il__site_page(&options, url, &body->page, &answer)) {
        free_body(body);
        return MHD_NO;
    }
    unsigned status = status_of(conn, method, &answer, how);
    log_request(site, method, url, status, how);
    return respond(conn, body, url, status, &answer);
}

/* ---- libmicrohttpd --------------------------------------------------------------------------- */

/* libmicrohttpd would decode the path and take the query away. */
static void *
on_target(void *cookie UNUSED, const char *target, struct MHD_Connection *conn UNUSED)
{
    struct request *r = il__calloc(1, sizeof *r);

    if (r != NULL)
        r->url = il__strdup(target != NULL ? target : "");
    return r;
}

static void
on_end(void *cookie UNUSED, struct MHD_Connection *conn UNUSED, void **context,
       enum MHD_RequestTerminationCode how UNUSED)
{
    struct request *r = *context;

    *context = NULL;
    if (r != NULL)
        il__free(r->url);
    il__free(r);
}

static enum MHD_Result
on_request(void *cookie, struct MHD_Connection *conn, const char *path UNUSED, const char *method,
           const char *version UNUSED, const char *upload UNUSED, size_t *n_upload, void **context)
{
    struct request *r = *context;

    if (r == NULL || r->url == NULL)
        return MHD_NO;
    if (!r->begun || *n_upload > 0) {
        r->begun  = true;
        *n_upload = 0; /* a body means nothing here */
        return MHD_YES;
    }
    return answer_request(cookie, conn, method, r->url);
}

/* ---- the server ------------------------------------------------------------------------------ */

static il_status
check_address(const char *text, il_error *reterr)
{
    bool      loopback = false;
    il_status st       = http_address_check(text, &loopback, reterr);

    if (st != IL_OK)
        return st;
    if (!loopback || strncmp(text, "unix:", 5) == 0)
        return il__error_set(reterr, IL_INVAL,
                             "'%.80s' is not a loopback address; use 127.0.0.1:PORT", text);
    return IL_OK;
}

static void
announce(const struct site *site)
{
    const char *before = site->o->json ? "{\"url\":\"" : "", *after = site->o->json ? "\"}" : "";

    (void)fprintf(site->o->out, "%shttp://%s%s\n", before, site->listener.address, after);
    (void)fflush(site->o->out); /* a missing reader is no reason to stop */
}

static il_status
run(struct site *site, const sigset_t *signals, il_error *reterr)
{
    struct http_listener *l      = &site->listener;
    uint64_t              one    = 1;
    int                   number = 0;

    l->daemon = il__mhd->MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
            MHD_USE_ITC,
        0, NULL, NULL, on_request, site, MHD_OPTION_LISTEN_SOCKET, l->fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_S, MHD_OPTION_URI_LOG_CALLBACK, on_target, NULL, MHD_OPTION_NOTIFY_COMPLETED,
        on_end, NULL, MHD_OPTION_END);
    if (l->daemon == NULL)
        return il__error_set(reterr, IL_NOMEM, "libmicrohttpd cannot start on %s", l->address);
    announce(site);
    CHECK(sigwait(signals, &number) == 0);
    CHECK(write(site->stop_fd, &one, sizeof one) == (ssize_t)sizeof one);
    (void)il__mhd->MHD_quiesce_daemon(l->daemon); /* our socket */
    il__mhd->MHD_stop_daemon(l->daemon);          /* after the last of its threads */
    return IL_OK;
}

il_status
il__site_serve(const struct site_serve *o, il_error *reterr)
{
    struct site site = { .o = o, .listener = { .fd = -1 }, .stop_fd = -1 };
    sigset_t    signals;
    il_status   st = check_address(o->listen, reterr);

    if (st == IL_OK)
        st = http_mhd_load(reterr);
    if (st == IL_OK)
        st = http_listen(&site.listener, o->listen, reterr);
    if (st != IL_OK)
        return st;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    /* The server's threads inherit the mask, so that sigwait() gets the signal. */
    CHECK(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    site.stop_fd = eventfd(0, EFD_CLOEXEC);
    if (site.stop_fd < 0)
        st = il__error_set(reterr, IL_NOMEM, "cannot create an eventfd: %s", strerror(errno));
    else
        st = run(&site, &signals, reterr);
    if (site.stop_fd >= 0)
        (void)close(site.stop_fd);
    http_listen_end(&site.listener);
    return st;
}
