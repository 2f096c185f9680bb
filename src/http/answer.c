/*
 * answer.c: turns the result that a handler stored in a request into a libmicrohttpd response.
 * Bodies are not copied: they stay in r->out, which lives until the answer has been sent.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "http/handler.h"
#include "http/log.h"
#include "http/mhd.h"
#include "http/server.h"

static const char no_memory[] =
    "{\"success\":false,\"error\":{\"code\":\"OUT_OF_MEMORY\",\"source\":\"request\",\"message\":"
    "\"out of memory\",\"details\":{}}}";

void
http_header(struct http_request *r, const char *name, const char *value)
{
    CHECK(r->n_headers < ARRAY_LEN(r->headers));
    r->headers[r->n_headers].name  = name;
    r->headers[r->n_headers].value = value;
    r->n_headers++;
}

void
http_retry_after(struct http_request *r, int64_t ms)
{
    enum {
        TEXT_BYTES = 24
    };
    char *text = http_alloc(r, TEXT_BYTES);

    if (text == NULL)
        return; /* the header is optional */
    (void)snprintf(text, TEXT_BYTES, "%lld", (long long)MAX((ms + 999) / 1000, 1));
    http_header(r, "Retry-After", text);
}

struct constant_header {
    const char *name, *value;
};

static bool
add_headers(struct http_request *r, struct MHD_Response *response)
{
    static const struct constant_header usual[] = {
        { "Cache-Control", "no-store" },
        { "X-Content-Type-Options", "nosniff" },
        { "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'" },
    };
    static const struct constant_header of_files[] = {
        { "Cache-Control", "no-cache" },
        { "X-Content-Type-Options", "nosniff" },
        { "Referrer-Policy", "no-referrer" },
        { "Cross-Origin-Opener-Policy", "same-origin" },
        { "Content-Security-Policy",
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
          "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
          "frame-ancestors 'none'" },
    };
    __typeof__(il__mhd->MHD_add_response_header) header = il__mhd->MHD_add_response_header;
    const char *type = r->content_type != NULL ? r->content_type : "application/json";
    bool        ok   = header(response, "X-Request-Id", r->id) == MHD_YES;

    if (r->bare)
        return ok && header(response, "Connection", "close") == MHD_YES;
    if (r->streams || r->out.n_bytes > 0 || r->content_type != NULL)
        ok = ok && header(response, "Content-Type", type) == MHD_YES;
    const struct constant_header *constant   = r->is_file ? of_files : usual;
    size_t                        n_constant = r->is_file ? ARRAY_LEN(of_files) : ARRAY_LEN(usual);
    for (size_t i = 0; i < n_constant; i++)
        ok = ok && header(response, constant[i].name, constant[i].value) == MHD_YES;
    for (size_t i = 0; i < r->n_headers; i++)
        ok = ok && header(response, r->headers[i].name, r->headers[i].value) == MHD_YES;
    if (r->close || r->server->stopping)
        ok = ok && header(response, "Connection", "close") == MHD_YES;
    return ok;
}

/* Returns the response, or NULL: the connection is closed instead. */
static void
answer_with(struct http_request *r, int status, struct MHD_Response *response)
{
    CHECK(!r->answered);
    r->answered = true;
    r->status   = status;
    http_results_drop(r, r->bytes_out); /* the answer is printed; its inputs can be freed */
    if (response != NULL && !add_headers(r, response)) {
        il__mhd->MHD_destroy_response(response);
        response = NULL;
    }
    r->response = response;
    if (r->suspended)
        http_resume(r);
}

/* Text that outlives the answer, which libmicrohttpd takes as void *. */
static struct MHD_Response *
response_of(const void *text, size_t n_bytes)
{
    void *data;

    memcpy(&data, &text, sizeof data);
    return il__mhd->MHD_create_response_from_buffer(n_bytes, data, MHD_RESPMEM_PERSISTENT);
}

void
http_answer(struct http_request *r, int status)
{
    const char *text    = r->out.data;
    size_t      n_bytes = r->out.n_bytes;

    if (r->once != NULL && http_once_answer(r, status))
        return;
    if (r->out.failed) {
        status          = 503;
        text            = no_memory;
        n_bytes         = sizeof no_memory - 1;
        r->content_type = NULL;
    }
    if (status == 204)
        n_bytes = 0;
    r->bytes_out = n_bytes;
    answer_with(r, status, r->hung_up ? NULL : response_of(n_bytes > 0 ? text : "", n_bytes));
}

void
http_answer_constant(struct http_request *r, int status, const void *data, size_t n_bytes)
{
    r->bytes_out = n_bytes;
    answer_with(r, status, r->hung_up ? NULL : response_of(data, n_bytes));
}

void
http_answer_stream(struct http_request *r, struct MHD_Response *response)
{
    r->streams = true;
    answer_with(r, 200, response);
}

bool
http_answer_queue(struct http_request *r)
{
    struct MHD_Response *response = TAKE(r->response);
    enum MHD_Result      rc;

    CHECK(r->answered);
    if (response == NULL || r->hung_up) {
        if (response != NULL)
            il__mhd->MHD_destroy_response(response);
        return false;
    }
    /* A stream, and a list that is still being produced, has no deadline for its client here. */
    bool open_end = r->streams && (r->list == NULL || r->in_errand);
    http_conn_phase(r->server, r->c, open_end ? HTTP_PHASE_WORK : HTTP_PHASE_ANSWER);
    rc        = il__mhd->MHD_queue_response(r->conn, (unsigned)r->status, response);
    r->queued = rc == MHD_YES;
    /* Drop our reference. If the response was refused this was the last one, so the response and
     * the stream behind it are now freed. */
    il__mhd->MHD_destroy_response(response);
    return r->queued;
}

/* ---- errors ---------------------------------------------------------------------------------- */

void
http_fail(struct http_request *r, int status, const char *code, const char *source,
          const char *details, const char *fmt, ...)
{
    char    message[1024];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof message, fmt, ap); /* cut when it is longer */
    va_end(ap);
    r->code = code;
    il__buf_clear(&r->out);
    r->content_type = NULL;
    il__buf_adds(&r->out, "{\"success\":false,\"error\":{\"code\":");
    il__wire_print_text(&r->out, code);
    il__buf_adds(&r->out, ",\"source\":");
    il__wire_print_text(&r->out, source);
    il__buf_adds(&r->out, ",\"message\":");
    il__wire_print_text(&r->out, message);
    il__buf_adds(&r->out, ",\"details\":");
    il__buf_adds(&r->out, details != NULL ? details : "{}");
    il__buf_adds(&r->out, "}}");
    http_answer(r, status);
}

void
http_fail_nomem(struct http_request *r)
{
    http_fail(r, 503, "OUT_OF_MEMORY", "request", NULL, "out of memory");
}

void
http_fail_call(struct http_request *r)
{
    il_status st = r->call.status;

    CHECK(st != IL_OK);
    /* Only the caller's own mistakes are reported in full; store errors go to the log. */
    if (st == IL_INVAL) {
        http_fail(r, il_status_http(st), il_status_name(st), "request", NULL, "%s",
                  r->call.error.message);
        return;
    }
    if (r->hung_up) {
        http_fail(r, il_status_http(IL_CANCELLED), il_status_name(IL_CANCELLED), "request", NULL,
                  "the client disconnected");
        return;
    }
    if (st == IL_CANCELLED) {
        http_retry_after(r, 1000);
        http_fail(r, 503, "SHUTTING_DOWN", "request", NULL, "the server is shutting down");
        return;
    }
    if (st == IL_LIMIT) {
        http_retry_after(r, 1000);
        http_fail(r, 503, "RESULTS_FULL", "request", NULL, "%s; nothing was done; try again later",
                  r->call.error.message);
        return;
    }
    if (il_status_retryable(st))
        http_retry_after(r, 1000);
    http_fail(r, il_status_http(st), il_status_name(st), "store", NULL, "%s",
              st == IL_STORE && r->store_text != NULL ? r->store_text : il_status_text(st));
}

/* ---- by tables ------------------------------------------------------------------------------- */

void
http_say(struct http_request *r, int status, const struct wire_object *o, const void *from)
{
    il__wire_print(&r->out, o, from, 0);
    http_answer(r, status);
}

void
http_say_page(struct http_request *r, const struct wire_object *o, const void *items,
              size_t item_bytes, size_t n, const char *next)
{
    il__wire_print_page(&r->out, o, items, item_bytes, n, next);
    http_answer(r, 200);
}
