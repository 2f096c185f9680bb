/*
 * fetch.c: one HTTP request of a step or a probe: expands the texts of the file, sends the request
 * through src/net, whose rules apply (net.h), and checks the response against what the file
 * expects.
 *
 * Messages about a request show its method and its URL without user, password and query, and never
 * the value of a header.
 */
#include <stdio.h>
#include <strings.h>

#include "apps/runner/runner_internal.h"
#include "apps/runner/step_run.h"
#include "base/clock.h"
#include "base/error.h"
#include "net/net.h"

#define CONNECT_MS_MAX 10000
#define REDIRECTS_MAX 5
#define URL_BYTES_MAX 16384
#define HEADER_BYTES_MAX 16384
#define BODY_BYTES_MAX ((size_t)4 << 20)

_Static_assert(FETCH_URL_BYTES == NET_URL_BYTES, "what is shown of a URL");

/* A request with its texts expanded. */
struct call {
    const struct fetch *f;
    struct il__buf      url, body;
    struct net_headers  headers;
};

static void
release(struct call *c)
{
    il__buf_release(&c->url);
    il__buf_release(&c->body);
    il__net_headers_release(&c->headers);
}

static void PRINTF_LIKE(4, 5)
    fail(const struct fetch *f, struct fetch_answer *ret, bool final, const char *fmt, ...)
{
    va_list ap;

    size_t n =
        (size_t)snprintf(ret->error, sizeof ret->error, "%s %s: ", f->http->method, ret->url);
    va_start(ap, fmt);
    if (n < sizeof ret->error)
        (void)vsnprintf(ret->error + n, sizeof ret->error - n, fmt, ap);
    va_end(ap);
    ret->success = false;
    ret->final   = final;
}

/* ---- the request ----------------------------------------------------------------------------- */

static il_status
add_header(struct call *c, const char *name, const char *value, il_error *reterr)
{
    return il__net_headers_add(&c->headers, name, value, strlen(value), reterr);
}

static il_status
expand_header(struct call *c, const struct pipeline_pair *h, il_error *reterr)
{
    struct il__buf AUTO_BUF value = { 0 };
    il_error                err;

    il__buf_init(&value, HEADER_BYTES_MAX);
    il_status st = il__pipeline_expand(&h->value, c->f->values, PIPELINE_PLAIN, &value, &err);
    if (st != IL_OK)
        return il__error_set(reterr, st, "header %.100s: %s", h->name, err.message);
    return il__net_headers_add(&c->headers, h->name, value.data, value.n_bytes, reterr);
}

static bool
has_header(const struct pipeline_http *h, const char *name)
{
    for (size_t i = 0; i < h->n_headers; i++) {
        if (strcasecmp(h->headers[i].name, name) == 0)
            return true;
    }
    return false;
}

static il_status
expand_headers(struct call *c, il_error *reterr)
{
    const struct fetch         *f  = c->f;
    const struct pipeline_http *h  = f->http;
    il_status                   st = IL_OK;

    for (size_t i = 0; st == IL_OK && i < h->n_headers; i++)
        st = expand_header(c, &h->headers[i], reterr);
    if (st == IL_OK && f->idempotency_key != NULL && !has_header(h, "Idempotency-Key"))
        st = add_header(c, "Idempotency-Key", f->idempotency_key, reterr);
    if (st == IL_OK && h->body.text != NULL && !has_header(h, "Content-Type"))
        st = add_header(c, "Content-Type",
                        h->body_escape == PIPELINE_JSON ? "application/json"
                                                        : "text/plain; charset=utf-8",
                        reterr);
    return st;
}

static il_status
expand_body(struct call *c, il_error *reterr)
{
    const struct pipeline_http *h = c->f->http;
    il_error                    err;

    il__buf_init(&c->body, BODY_BYTES_MAX);
    if (h->body.text == NULL)
        return IL_OK;
    il_status st = il__pipeline_expand(&h->body, c->f->values, h->body_escape, &c->body, &err);
    if (st != IL_OK || c->body.failed)
        return il__error_set(reterr, IL_INVAL, "cannot expand the body: %s",
                             st != IL_OK ? err.message : "too long");
    return IL_OK;
}

/* Expand the texts of the file; `shown` gets the URL as it may be shown, once expanded. */
static il_status
expand(struct call *c, char shown[NET_URL_BYTES], il_error *reterr)
{
    il__buf_init(&c->url, URL_BYTES_MAX);
    il_status st =
        il__pipeline_expand(&c->f->http->url, c->f->values, PIPELINE_URL, &c->url, reterr);
    if (st != IL_OK)
        return st;
    il__net_url_show(il__buf_str(&c->url), shown);
    st = expand_headers(c, reterr);
    if (st == IL_OK)
        st = expand_body(c, reterr);
    return st;
}

/* ---- sending it ------------------------------------------------------------------------------ */

static bool
should_stop(void *cookie)
{
    const struct call  *c = cookie;
    const struct fetch *f = c->f;

    if (f->a != NULL)
        return runner_attempt_should_stop(f->a);
    return f->runner != NULL && runner_is_stopping(f->runner);
}

static void
wake(void *conn)
{
    il__net_wake(conn);
}

static bool
take(void *cookie, const void *data, size_t n_bytes)
{
    const struct call  *c = cookie;
    const struct fetch *f = c->f;

    if (f->take != NULL)
        f->take(f->cookie, data, n_bytes);
    return true;
}

static il_status
send_over(struct net_conn *conn, struct call *c, struct net_answer *answer, il_error *reterr)
{
    const struct fetch         *f = c->f;
    const struct pipeline_http *h = f->http;
    struct net_request          r = { .method        = h->method,
                                      .url           = il__buf_str(&c->url),
                                      .headers       = &c->headers,
                                      .connect_ms    = CONNECT_MS_MAX,
                                      .total_ms      = f->timeout_ms,
                                      .redirects_max = REDIRECTS_MAX,
                                      .answer_from   = h->expect_from,
                                      .answer_to     = h->expect_to,
                                      .should_stop   = should_stop,
                                      .take          = take,
                                      .cookie        = c };

    if (h->body.text != NULL) {
        r.body         = il__buf_str(&c->body);
        r.n_body_bytes = c->body.n_bytes;
    }
    if (f->a != NULL)
        runner_attempt_on_stop(f->a, wake, conn);
    il_status st = il__net_send(conn, &r, answer, reterr);
    if (f->a != NULL)
        runner_attempt_on_stop(f->a, NULL, NULL);
    return st;
}

/* What the status means. */
static void
judge(const struct fetch *f, struct fetch_answer *ret)
{
    long status = ret->status;
    bool later  = status == 408 || status == 425 || status == 429 || status >= 500;

    ret->success = status >= f->http->expect_from && status <= f->http->expect_to;
    if (!ret->success)
        fail(f, ret, !later, "HTTP status %ld", status);
}

void
runner_fetch(const struct fetch *f, struct fetch_answer *ret)
{
    static const struct net_options options;
    struct call                     AUTO(release) c = { .f = f };
    struct net_answer               answer          = { .url = "?" };
    struct net_conn                *conn            = NULL;
    int64_t                         begun_ns        = il__clock_boot_ns();
    il_error                        err             = { .message = "" };

    *ret         = (struct fetch_answer){ .url = "?" };
    il_status st = il__net_open(&options, &conn, &err);
    if (st == IL_OK)
        st = expand(&c, answer.url, &err);
    bool sent = st == IL_OK; /* earlier failures recur in every attempt, except for memory */
    if (sent)
        st = send_over(conn, &c, &answer, &err);
    il__net_close(conn);
    ret->status      = answer.status;
    ret->n_redirects = answer.n_redirects;
    ret->n_bytes     = answer.n_bytes;
    memcpy(ret->url, answer.url, sizeof ret->url);
    ret->stopped   = st == IL_CANCELLED;
    ret->timed_out = st == IL_TIMEOUT;
    if (st == IL_OK)
        judge(f, ret);
    else
        fail(f, ret, st == IL_INVAL || st == IL_LIMIT || (!sent && st != IL_NOMEM), "%s",
             err.message);
    ret->took_ms = (il__clock_boot_ns() - begun_ns) / IL__NS_PER_MS;
}
