/*
 * fetch.c: one HTTP request of a step or a probe, through libcurl, which is loaded when the first is made.
 *
 * Redirections are followed here, not by libcurl: that would take the headers of the file, which may be secrets, to whatever host the answer names. What is told of a request is its method and its URL without user, password
 * and query; never a header's value.
 */
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>

#include "apps/runner/runner_internal.h"
#include "apps/runner/step_run.h"
#include "base/clock.h"
#include "base/error.h"
#include "store/server/curl.h"

#define CONNECT_MS_MAX 10000
#define LOOK_MS 50 /* how often it is looked whether it should stop, should nobody say so */
#define REDIRECTS_MAX 5
#define URL_BYTES_MAX 16384
#define HEADER_BYTES_MAX 16384
#define BODY_BYTES_MAX ((size_t)4 << 20)
#define PARTS 3 /* scheme, host, port */

struct exchange {
    const struct fetch  *f;
    struct fetch_answer *ret;
    CURL                *easy;
    CURLM               *multi;
    struct curl_slist   *headers;
    char                *parts[PARTS]; /* of the first URL: redirections stay there */
    char                *user, *password;
    struct il__buf       body;
    const char          *method;
    int64_t              until_ns;
    char                 why[CURL_ERROR_SIZE];
};

static const CURLUPart parts_of_url[PARTS] = { CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT };

static void PRINTF_LIKE(3, 4) fail(struct exchange *x, bool final, const char *fmt, ...)
{
    struct fetch_answer *ret = x->ret;
    va_list              ap;

    size_t n = (size_t)snprintf(ret->error, sizeof ret->error, "%s %s: ", x->method, ret->url);
    va_start(ap, fmt);
    if (n < sizeof ret->error)
        (void)vsnprintf(ret->error + n, sizeof ret->error - n, fmt, ap);
    va_end(ap);
    ret->success = false;
    ret->final   = final;
}

/* ---- URLs ------------------------------------------------------------------------------------------------------------------ */

static char *
part(CURLU *u, CURLUPart which, unsigned flags)
{
    char *text = NULL;

    return il__curl->curl_url_get(u, which, &text, flags) == CURLUE_OK ? text : NULL;
}

static void
free_part(char **text)
{
    if (*text != NULL)
        il__curl->curl_free(*text);
    *text = NULL;
}

/* What may be shown of it: no user, no password, no query. */
static void
show(CURLU *u, char out[FETCH_URL_BYTES])
{
    char AUTO(free_part) *scheme = part(u, CURLUPART_SCHEME, 0);
    char AUTO(free_part) *host   = part(u, CURLUPART_HOST, 0);
    char AUTO(free_part) *port   = part(u, CURLUPART_PORT, 0);
    char AUTO(free_part) *path   = part(u, CURLUPART_PATH, 0);

    (void)snprintf(out, FETCH_URL_BYTES, "%s://%s%s%s%s", scheme != NULL ? scheme : "?",
                   host != NULL ? host : "?", port != NULL ? ":" : "", port != NULL ? port : "",
                   path != NULL ? path : "/");
}

static void
free_url(CURLU **u)
{
    if (*u != NULL)
        il__curl->curl_url_cleanup(*u);
}

static bool
set_url(struct exchange *x, CURLU *u)
{
    char AUTO(free_part) *url = NULL;

    (void)il__curl->curl_url_set(u, CURLUPART_USER, NULL, 0); /* they are given apart */
    (void)il__curl->curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
    (void)il__curl->curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
    url = part(u, CURLUPART_URL, 0);
    return url != NULL && il__curl->curl_easy_setopt(x->easy, CURLOPT_URL, url) == CURLE_OK;
}

/* The URL of the file, with its parameters. */
static bool
take_url(struct exchange *x)
{
    struct il__buf AUTO_BUF text              = { 0 };
    CURLU                   AUTO(free_url) *u = il__curl->curl_url();
    il_error                err;

    il__buf_init(&text, URL_BYTES_MAX);
    if (il__pipeline_expand(&x->f->http->url, x->f->values, PIPELINE_URL, &text, &err) != IL_OK) {
        fail(x, true, "%s", err.message);
        return false;
    }
    if (u == NULL || il__curl->curl_url_set(u, CURLUPART_URL, il__buf_str(&text), 0) != CURLUE_OK) {
        fail(x, true, "the URL is not one"); /* not shown: nobody knows what of it is secret */
        return false;
    }
    show(u, x->ret->url);
    for (size_t i = 0; i < PARTS; i++)
        x->parts[i] = part(u, parts_of_url[i], CURLU_DEFAULT_PORT);
    if (x->parts[0] == NULL || x->parts[1] == NULL ||
        (strcmp(x->parts[0], "http") != 0 && strcmp(x->parts[0], "https") != 0)) {
        fail(x, true, "the URL must begin with http:// or https://");
        return false;
    }
    x->user     = part(u, CURLUPART_USER, CURLU_URLDECODE);
    x->password = part(u, CURLUPART_PASSWORD, CURLU_URLDECODE);
    if (!set_url(x, u)) {
        fail(x, false, "no memory");
        return false;
    }
    return true;
}

/* ---- the request ----------------------------------------------------------------------------------------------------------- */

static bool
add_header(struct exchange *x, const char *line)
{
    struct curl_slist *more = il__curl->curl_slist_append(x->headers, line);

    if (more != NULL)
        x->headers = more;
    return more != NULL;
}

static bool
is_token(const char *name)
{
    static const char others[] = "!#$%&'*+-.^_`|~0123456789"
                                 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

    return name[0] != '\0' && strspn(name, others) == strlen(name);
}

static bool
take_header(struct exchange *x, const struct pipeline_pair *h)
{
    struct il__buf AUTO_BUF value = { 0 }, line = { 0 };
    il_error                err;

    il__buf_init(&value, HEADER_BYTES_MAX);
    il__buf_init(&line, HEADER_BYTES_MAX * 2);
    if (!is_token(h->name)) {
        fail(x, true, "'%.100s' is no name of a header", h->name);
        return false;
    }
    if (il__pipeline_expand(&h->value, x->f->values, PIPELINE_PLAIN, &value, &err) != IL_OK) {
        fail(x, true, "header %.100s: %s", h->name, err.message);
        return false;
    }
    /* A value with a line break would be another header, or another request. */
    for (size_t i = 0; i < value.n_bytes; i++) {
        if ((unsigned char)value.data[i] < ' ' && value.data[i] != '\t') {
            fail(x, true, "header %.100s: its value has a control character", h->name);
            return false;
        }
    }
    il__buf_addf(&line, value.n_bytes > 0 ? "%s: " : "%s;", h->name); /* as libcurl wants an empty one */
    il__buf_add(&line, value.data, value.n_bytes);
    if (line.failed || !add_header(x, il__buf_str(&line))) {
        fail(x, false, "header %.100s: no memory", h->name);
        return false;
    }
    return true;
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

static bool
take_headers(struct exchange *x)
{
    const struct pipeline_http *h = x->f->http;
    char                        line[512];
    bool                        ok = true;

    for (size_t i = 0; i < h->n_headers; i++) {
        if (!take_header(x, &h->headers[i]))
            return false;
    }
    if (x->f->idempotency_key != NULL && !has_header(h, "Idempotency-Key")) {
        (void)snprintf(line, sizeof line, "Idempotency-Key: %s", x->f->idempotency_key);
        ok = add_header(x, line);
    }
    if (h->body.text != NULL && !has_header(h, "Content-Type"))
        ok = ok && add_header(x, h->body_escape == PIPELINE_JSON
                                     ? "Content-Type: application/json"
                                     : "Content-Type: text/plain; charset=utf-8");
    ok = ok && add_header(x, "Expect:"); /* no pause before the body */
    if (!ok)
        fail(x, false, "no memory");
    return ok;
}

static bool
take_body(struct exchange *x)
{
    const struct pipeline_http *h = x->f->http;
    il_error                    err;

    il__buf_init(&x->body, BODY_BYTES_MAX);
    if (h->body.text == NULL)
        return true;
    il_status st = il__pipeline_expand(&h->body, x->f->values, h->body_escape, &x->body, &err);
    if (st != IL_OK || x->body.failed)
        fail(x, true, "the body: %s", st != IL_OK ? err.message : "it is too long");
    return st == IL_OK && !x->body.failed;
}

/* Sockets that the commands we run do not inherit. */
static curl_socket_t
open_socket(void *cookie UNUSED, curlsocktype purpose UNUSED, struct curl_sockaddr *a)
{
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static size_t
take_answer(char *data, size_t size, size_t n, void *cookie)
{
    struct exchange *x      = cookie;
    long             status = 0;

    (void)il__curl->curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    x->ret->n_bytes += (int64_t)(size * n);
    if ((status < 300 || status > 399) && x->f->take != NULL)
        x->f->take(x->f->cookie, data, size * n);
    return size * n;
}

/* Methods, as libcurl wants them. */
static int
set_method(struct exchange *x, const char *method, bool with_body)
{
    int  ok   = 0; /* or'ed: 0 is CURLE_OK */
    bool head = strcmp(method, "HEAD") == 0;
    bool body = with_body && (x->f->http->body.text != NULL || strcmp(method, "POST") == 0 ||
                              strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0);

    x->method = method;
    ok |= (int)il__curl->curl_easy_setopt(x->easy, CURLOPT_HTTPGET, 1L);
    ok |= (int)il__curl->curl_easy_setopt(x->easy, CURLOPT_NOBODY, head ? 1L : 0L);
    if (body) {
        ok |= (int)il__curl->curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE, (long)x->body.n_bytes);
        ok |= (int)il__curl->curl_easy_setopt(x->easy, CURLOPT_POSTFIELDS, il__buf_str(&x->body));
    }
    ok |= (int)il__curl->curl_easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, head ? NULL : method);
    return ok;
}

static bool
set_up(struct exchange *x)
{
    CURL       *e  = x->easy;
    const char *ca = getenv("SSL_CERT_FILE");
    int         ok = 0;

    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_HTTPHEADER, x->headers);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_USERAGENT, "interlock");
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 1L);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 2L);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_answer);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_WRITEDATA, x);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_ERRORBUFFER, x->why);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS,
                                          (long)MIN(x->f->timeout_ms, CONNECT_MS_MAX));
    /* libcurl itself does not look at it, OpenSSL and curl do. */
    if (ca != NULL && ca[0] != '\0')
        ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_CAINFO, ca);
    if (x->user != NULL)
        ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_USERNAME, x->user);
    if (x->password != NULL)
        ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_PASSWORD, x->password);
    ok |= set_method(x, x->f->http->method, true);
#if LIBCURL_VERSION_NUM >= 0x075500
    /* We have looked at the scheme; this is for what we may have overlooked. An older libcurl does not know it. */
    (void)il__curl->curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
#endif
    if (ok != (int)CURLE_OK)
        fail(x, false, "no memory");
    return ok == (int)CURLE_OK;
}

/* ---- carrying it out ------------------------------------------------------------------------------------------------------- */

static bool
should_stop(const struct exchange *x)
{
    if (x->f->a != NULL)
        return runner_attempt_should_stop(x->f->a);
    return x->f->runner != NULL && runner_is_stopping(x->f->runner);
}

static void
wake(void *multi)
{
    (void)il__curl->curl_multi_wakeup(multi); /* should it fail: the poll ends soon */
}

/* One request and its answer. CURLE_OK, or what libcurl says; CURLE_ABORTED_BY_CALLBACK: it should stop. */
static CURLcode
perform(struct exchange *x)
{
    int      running = 1;
    int      left;
    CURLcode code = CURLE_OK;

    if (il__curl->curl_multi_add_handle(x->multi, x->easy) != CURLM_OK)
        return CURLE_OUT_OF_MEMORY;
    while (running > 0 && code == CURLE_OK) {
        if (should_stop(x))
            code = CURLE_ABORTED_BY_CALLBACK;
        else if (il__curl->curl_multi_perform(x->multi, &running) != CURLM_OK)
            code = CURLE_OUT_OF_MEMORY;
        else if (running > 0 && il__curl->curl_multi_poll(x->multi, NULL, 0, LOOK_MS, NULL) != CURLM_OK)
            code = CURLE_OUT_OF_MEMORY;
    }
    if (code == CURLE_OK) {
        const CURLMsg *m = il__curl->curl_multi_info_read(x->multi, &left);
        code             = m != NULL && m->msg == CURLMSG_DONE ? m->data.result : CURLE_RECV_ERROR;
    }
    (void)il__curl->curl_multi_remove_handle(x->multi, x->easy); /* it is there */
    return code;
}

static void
explain(struct exchange *x, CURLcode code)
{
    switch (code) {
    case CURLE_ABORTED_BY_CALLBACK:
        x->ret->stopped = true;
        fail(x, false, "it was told to stop");
        return;
    case CURLE_OPERATION_TIMEDOUT:
        /* Or the one to connect, which is shorter. libcurl counts in milliseconds. */
        x->ret->timed_out = il__clock_boot_ns() >= x->until_ns - 20 * IL__NS_PER_MS;
        if (x->ret->timed_out)
            fail(x, false, "no answer within the time");
        else
            fail(x, false, "%s", x->why[0] != '\0' ? x->why : il__curl->curl_easy_strerror(code));
        return;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
        fail(x, true, "%s", il__curl->curl_easy_strerror(code));
        return;
    default:
        fail(x, false, "%s", x->why[0] != '\0' ? x->why : il__curl->curl_easy_strerror(code));
    }
}

/* Where the answer sends us, if we may go there; false: not. */
static bool
follow(struct exchange *x)
{
    CURLU AUTO(free_url) *u = il__curl->curl_url();
    char *to                = NULL;
    char  shown[FETCH_URL_BYTES];
    long  status = x->ret->status;
    bool  reads  = strcmp(x->method, "GET") == 0 || strcmp(x->method, "HEAD") == 0;

    (void)il__curl->curl_easy_getinfo(x->easy, CURLINFO_REDIRECT_URL, &to);
    if (to == NULL || u == NULL || il__curl->curl_url_set(u, CURLUPART_URL, to, 0) != CURLUE_OK)
        return false;
    show(u, shown);
    bool same = true;
    for (size_t i = 0; i < PARTS; i++) {
        char AUTO(free_part) *p = part(u, parts_of_url[i], CURLU_DEFAULT_PORT);
        same = same && p != NULL && x->parts[i] != NULL && strcasecmp(p, x->parts[i]) == 0;
    }
    if (!same) {
        fail(x, true, "answered %ld: it redirects to %s, which is another place and not followed",
             status, shown);
        return false;
    }
    if (!reads && (status == 301 || status == 302)) {
        fail(x, true, "answered %ld: a %s is not redirected by that", status, x->method);
        return false;
    }
    if (x->ret->n_redirects++ >= REDIRECTS_MAX) {
        fail(x, true, "more than %d redirections", REDIRECTS_MAX);
        return false;
    }
    if (!reads && status == 303 && set_method(x, "GET", false) != 0)
        return false;
    return set_url(x, u);
}

/* What the status means. */
static void
judge(struct exchange *x)
{
    long status = x->ret->status;

    if (x->ret->success || x->ret->error[0] != '\0')
        return;
    bool later = status == 408 || status == 425 || status == 429 || status >= 500;
    fail(x, !later, "answered %ld", status);
}

static void
exchange(struct exchange *x)
{
    const struct pipeline_http *h = x->f->http;

    for (;;) {
        int64_t left_ms = (x->until_ns - il__clock_boot_ns()) / IL__NS_PER_MS;
        x->why[0]       = '\0';
        if (il__curl->curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, (long)MAX(left_ms, 1)) != CURLE_OK) {
            fail(x, false, "no memory");
            return;
        }
        CURLcode code = perform(x);
        if (code != CURLE_OK) {
            explain(x, code);
            return;
        }
        (void)il__curl->curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &x->ret->status);
        x->ret->success = x->ret->status >= h->expect_from && x->ret->status <= h->expect_to;
        if (x->ret->success || x->ret->status < 300 || x->ret->status > 399 || !follow(x)) {
            judge(x);
            return;
        }
    }
}

static void
release(struct exchange *x)
{
    if (x->easy != NULL) {
#if LIBCURL_VERSION_NUM >= 0x075700
        /* Who was told to stop does not wait for a name server. */
        (void)il__curl->curl_easy_setopt(x->easy, CURLOPT_QUICK_EXIT, 1L);
#endif
        il__curl->curl_easy_cleanup(x->easy);
    }
    if (x->multi != NULL)
        (void)il__curl->curl_multi_cleanup(x->multi); /* nothing of it is in use */
    il__curl->curl_slist_free_all(x->headers);
    for (size_t i = 0; i < PARTS; i++)
        free_part(&x->parts[i]);
    free_part(&x->user);
    free_part(&x->password);
    il__buf_release(&x->body);
}

void
runner_fetch(const struct fetch *f, struct fetch_answer *ret)
{
    int64_t         begun_ns = il__clock_boot_ns();
    struct exchange x        = { .f        = f,
                                 .ret      = ret,
                                 .method   = f->http->method,
                                 .until_ns = begun_ns + f->timeout_ms * IL__NS_PER_MS };
    il_error        err;

    *ret = (struct fetch_answer){ .url = "?" };
    if (il__server_curl_load(&err) != IL_OK) {
        fail(&x, true, "%s", err.message);
        return;
    }
    x.easy  = il__curl->curl_easy_init();
    x.multi = il__curl->curl_multi_init();
    if (x.easy == NULL || x.multi == NULL) {
        fail(&x, false, "no memory");
    } else if (take_url(&x) && take_headers(&x) && take_body(&x) && set_up(&x)) {
        if (f->a != NULL)
            runner_attempt_on_stop(f->a, wake, x.multi);
        exchange(&x);
        if (f->a != NULL)
            runner_attempt_on_stop(f->a, NULL, NULL);
    }
    release(&x);
    ret->took_ms = (il__clock_boot_ns() - begun_ns) / IL__NS_PER_MS;
}
