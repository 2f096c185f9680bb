/*
 * conn.c: a connection and its requests: timeouts, limits, interruption, redirects; see net.h.
 */
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/error.h"
#include "net/net_internal.h"

#define LOOK_MS 100                   /* how often should_stop() is called */
#define SLACK_NS (20 * IL__NS_PER_MS) /* libcurl counts in milliseconds */

struct net_conn {
    CURL  *easy;
    CURLM *multi;
    bool   is_unix;
    bool   direct;

    /* The current URL, and the text it was parsed from; NULL = none. */
    char          *url;
    struct net_url at;

    /* The current request. */
    const struct net_request *r;
    struct net_answer        *ret;
    const char               *method; /* r's, or GET after a 303 */
    int64_t                   until_ns;
    size_t                    n_head_bytes; /* of this answer */
    il_status                 refused;      /* why a callback aborted it; IL_OK = not aborted */
    curl_off_t                n_moved;      /* bytes in both directions at the last progress */
    int64_t                   moved_ns;     /* when that was */
    char                      why[CURL_ERROR_SIZE];
};

/* ---- callbacks ------------------------------------------------------------------------------- */

/* Create sockets that child processes do not inherit. */
static curl_socket_t
open_socket(void *cookie UNUSED, curlsocktype purpose UNUSED, struct curl_sockaddr *a)
{
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* Copy the value of the header `name` if this is its line; one that does not fit counts as missing.
 */
static void
note_header(const char *line, size_t n, const char *name, char *to, size_t n_to)
{
    size_t n_name = strlen(name);

    if (n <= n_name || line[n_name] != ':' || strncasecmp(line, name, n_name) != 0)
        return;
    line += n_name + 1;
    n -= n_name + 1;
    while (n > 0 && (line[0] == ' ' || line[0] == '\t')) {
        line++;
        n--;
    }
    while (n > 0 && (unsigned char)line[n - 1] <= ' ')
        n--;
    size_t n_kept = n < n_to ? n : 0;
    memcpy(to, line, n_kept);
    to[n_kept] = '\0';
}

static size_t
take_head(char *line, size_t size, size_t n, void *cookie)
{
    struct net_conn *c   = cookie;
    size_t           max = c->r->head_bytes_max;

    c->n_head_bytes += size * n;
    if (c->n_head_bytes > (max > 0 ? max : NET_HEAD_BYTES_MAX)) {
        c->refused = IL_LIMIT;
        return 0;
    }
    note_header(line, size * n, "ETag", c->ret->etag, sizeof c->ret->etag);
    note_header(line, size * n, "Last-Modified", c->ret->modified, sizeof c->ret->modified);
    note_header(line, size * n, "Content-Type", c->ret->type, sizeof c->ret->type);
    return size * n;
}

static size_t
take_body(char *data, size_t size, size_t n, void *cookie)
{
    struct net_conn          *c      = cookie;
    const struct net_request *r      = c->r;
    long                      status = 0;

    (void)il__curl->curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status); /* it has come */
    c->ret->n_bytes += (int64_t)(size * n);
    if (r->body_bytes_max > 0 && c->ret->n_bytes > r->body_bytes_max)
        c->refused = IL_LIMIT;
    else if ((status < 300 || status > 399) && r->take != NULL &&
             !r->take(r->cookie, data, size * n))
        c->refused = IL_NOMEM;
    return c->refused == IL_OK ? size * n : 0;
}

/* ---- connections ----------------------------------------------------------------------------- */

static bool
set_up(struct net_conn *c, const struct net_options *o)
{
    CURL       *e  = c->easy;
    const char *ca = getenv("SSL_CERT_FILE");
    int         ok = 0; /* OR of all results: 0 is CURLE_OK */

    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_USERAGENT, "interlock");
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L); /* send what was checked */
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 1L);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 2L);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, take_head);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_HEADERDATA, c);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->why);
    /* libcurl itself ignores it; OpenSSL and the curl command honour it. */
    if (ca != NULL && ca[0] != '\0')
        ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_CAINFO, ca);
    if (o->http_1_1)
        ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (o->unix_path != NULL)
        ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, o->unix_path);
#if LIBCURL_VERSION_NUM >= 0x075500
    /* We have checked the scheme; this is a second line of defence. Older versions of libcurl do
     * not have the option. */
    (void)il__curl->curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
#endif
    return ok == (int)CURLE_OK;
}

il_status
il__net_open(const struct net_options *o, struct net_conn **ret, il_error *reterr)
{
    il_status st = il__net_load(reterr);

    if (st != IL_OK)
        return st;
    struct net_conn *c = il__calloc(1, sizeof *c);
    if (c != NULL) {
        c->is_unix = o->unix_path != NULL;
        c->direct  = o->direct;
        c->easy    = il__curl->curl_easy_init();
        c->multi   = il__curl->curl_multi_init();
    }
    if (c == NULL || c->easy == NULL || c->multi == NULL || !set_up(c, o)) {
        il__net_close(c);
        return il__error_set(reterr, IL_NOMEM, "out of memory for a connection");
    }
    *ret = c;
    return IL_OK;
}

void
il__net_close(struct net_conn *c)
{
    if (c == NULL)
        return;
    if (c->easy != NULL) {
#if LIBCURL_VERSION_NUM >= 0x075700
        /* An interrupted request must not wait for a name server. */
        (void)il__curl->curl_easy_setopt(c->easy, CURLOPT_QUICK_EXIT, 1L);
#endif
        il__curl->curl_easy_cleanup(c->easy);
    }
    if (c->multi != NULL)
        (void)il__curl->curl_multi_cleanup(c->multi); /* nothing of it is in use */
    il__net_url_release(&c->at);
    il__free(c->url);
    il__free(c);
}

void
il__net_wake(struct net_conn *c)
{
    (void)il__curl->curl_multi_wakeup(c->multi); /* if it fails, the poll ends soon anyway */
}

/* ---- the request ----------------------------------------------------------------------------- */

static il_status
no_memory(il_error *reterr)
{
    return il__error_set(reterr, IL_NOMEM, "out of memory for a request");
}

/* Set the URL. An engine sends all requests to the same one: then there is nothing to do. */
static il_status
aim(struct net_conn *c, const char *url, il_error *reterr)
{
    int bad = 0;

    if (c->url != NULL && strcmp(c->url, url) == 0)
        return IL_OK;
    il__free(c->url);
    c->url = NULL;
    il__net_url_release(&c->at);
    il_status st = il__net_url_parse(&c->at, url, false, reterr);
    if (st != IL_OK)
        return st;
    bool straight = c->direct && strcmp(c->at.place[0], "http") == 0;
    bad |= (int)il__curl->curl_easy_setopt(c->easy, CURLOPT_URL, c->at.text);
    bad |= (int)il__curl->curl_easy_setopt(c->easy, CURLOPT_USERNAME, c->at.user);
    bad |= (int)il__curl->curl_easy_setopt(c->easy, CURLOPT_PASSWORD, c->at.password);
    bad |= (int)il__curl->curl_easy_setopt(c->easy, CURLOPT_NOPROXY, straight ? "*" : NULL);
    if (bad == 0) /* else the next request must set everything again */
        c->url = il__strdup(url);
    return c->url != NULL ? IL_OK : no_memory(reterr);
}

/* Set the method the way libcurl expects; 0 = done. */
static int
set_method(struct net_conn *c, const char *method, bool with_body)
{
    const struct net_request *r    = c->r;
    bool                      head = strcmp(method, "HEAD") == 0;
    bool                      body = with_body && (r->body != NULL || strcmp(method, "POST") == 0 ||
                              strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0);
    int                       bad  = 0;

    c->method = method;
    bad |= (int)il__curl->curl_easy_setopt(c->easy, CURLOPT_HTTPGET, 1L);
    bad |= (int)il__curl->curl_easy_setopt(c->easy, CURLOPT_NOBODY, head ? 1L : 0L);
    if (body) {
        bad |= (int)il__curl->curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                               (curl_off_t)r->n_body_bytes);
        bad |= (int)il__curl->curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS,
                                               r->body != NULL ? r->body : "");
    }
    bad |= (int)il__curl->curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, head ? NULL : method);
    return bad;
}

/* Has no byte moved for idle_ms? */
static bool
is_idle(struct net_conn *c)
{
    curl_off_t n_sent = 0;

    if (c->r->idle_ms <= 0)
        return false;
    int64_t now_ns = il__clock_boot_ns();
    (void)il__curl->curl_easy_getinfo(c->easy, CURLINFO_SIZE_UPLOAD_T, &n_sent); /* 0 otherwise */
    curl_off_t n_moved = n_sent + (curl_off_t)c->n_head_bytes + c->ret->n_bytes;
    if (n_moved != c->n_moved || c->moved_ns == 0) {
        c->n_moved  = n_moved;
        c->moved_ns = now_ns;
    }
    return now_ns - c->moved_ns >= c->r->idle_ms * IL__NS_PER_MS;
}

/* Run until there is a response: *ret is libcurl's result. */
static il_status
perform(struct net_conn *c, CURLcode *ret, il_error *reterr)
{
    int running = 1;
    int left;

    while (running > 0) {
        if (c->r->should_stop != NULL && c->r->should_stop(c->r->cookie))
            return il__error_set(reterr, IL_CANCELLED, "cancelled");
        if (is_idle(c))
            return il__error_set(reterr, IL_TIMEOUT, "no progress for %lld ms",
                                 (long long)c->r->idle_ms);
        if (il__curl->curl_multi_perform(c->multi, &running) != CURLM_OK ||
            (running > 0 &&
             il__curl->curl_multi_poll(c->multi, NULL, 0, LOOK_MS, NULL) != CURLM_OK))
            return no_memory(reterr);
    }
    const CURLMsg *m = il__curl->curl_multi_info_read(c->multi, &left);
    *ret             = m != NULL && m->msg == CURLMSG_DONE ? m->data.result : CURLE_RECV_ERROR;
    return IL_OK;
}

/* Translate a libcurl error. */
static il_status
map_error(const struct net_conn *c, CURLcode code, il_error *reterr)
{
    const char *text = c->why[0] != '\0' ? c->why : il__curl->curl_easy_strerror(code);

    if (c->refused == IL_LIMIT)
        return il__error_set(reterr, IL_LIMIT, "response too large");
    if (c->refused != IL_OK)
        return no_memory(reterr);
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        /* Or the connect timeout, which is shorter. */
        if (il__clock_boot_ns() >= c->until_ns - SLACK_NS)
            return il__error_set(reterr, IL_TIMEOUT, "no response within %lld ms",
                                 (long long)c->r->total_ms);
        return il__error_set(reterr, IL_STORE, "%s", text);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT: /* its text may contain secrets */
        return il__error_set(reterr, IL_INVAL, "%s", il__curl->curl_easy_strerror(code));
    case CURLE_OUT_OF_MEMORY:
        return no_memory(reterr);
    case CURLE_COULDNT_CONNECT:
        return il__error_set(reterr, IL_STORE, "%s",
                             c->is_unix ? "no server is listening on the socket" : text);
    default:
        return il__error_set(reterr, IL_STORE, "%s", text);
    }
}

/* One request and its response. */
static il_status
exchange(struct net_conn *c, il_error *reterr)
{
    int64_t  left_ms = (c->until_ns - il__clock_boot_ns()) / IL__NS_PER_MS;
    CURLcode code    = CURLE_OK;

    c->why[0]       = '\0';
    c->refused      = IL_OK;
    c->n_head_bytes = 0;
    c->moved_ns     = 0;
    c->ret->etag[0] = c->ret->modified[0] = c->ret->type[0] = '\0';
    if (il__curl->curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, (long)MAX(left_ms, 1)) !=
            CURLE_OK ||
        il__curl->curl_multi_add_handle(c->multi, c->easy) != CURLM_OK)
        return no_memory(reterr);
    il_status st = perform(c, &code, reterr);
    (void)il__curl->curl_multi_remove_handle(c->multi, c->easy); /* it was added */
    if (st != IL_OK)
        return st;
    if (code != CURLE_OK)
        return map_error(c, code, reterr);
    (void)il__curl->curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &c->ret->status);
    curl_off_t retry_s = 0;
    (void)il__curl->curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &retry_s); /* 0 otherwise */
    c->ret->retry_after_s = (int64_t)retry_s;
    return IL_OK;
}

/* Prepare the next request to the redirect's target, if that is allowed. */
static il_status
follow(struct net_conn *c, const struct net_url *to, il_error *reterr)
{
    long status = c->ret->status;
    bool reads  = strcmp(c->method, "GET") == 0 || strcmp(c->method, "HEAD") == 0;

    if (!il__net_url_same_place(to, &c->at))
        return il__error_set(
            reterr, IL_INVAL,
            "HTTP status %ld: refusing to follow a redirect to another host %.300s", status,
            to->shown);
    if (!reads && (status == 301 || status == 302))
        return il__error_set(reterr, IL_INVAL, "HTTP status %ld: refusing to redirect a %s request",
                             status, c->method);
    if (c->ret->n_redirects++ >= c->r->redirects_max)
        return il__error_set(reterr, IL_INVAL, "more than %u redirects", c->r->redirects_max);
    if (!reads && status == 303 && set_method(c, "GET", false) != 0)
        return no_memory(reterr);
    il__free(c->url); /* the next request sets its own */
    c->url = NULL;
    return il__curl->curl_easy_setopt(c->easy, CURLOPT_URL, to->text) == CURLE_OK
               ? IL_OK
               : no_memory(reterr);
}

/* Is the response a redirect to follow? *ret is its target then. */
static bool
redirects(const struct net_conn *c, const char **ret)
{
    long  status = c->ret->status;
    char *to     = NULL;

    if (c->r->redirects_max == 0 || status < 300 || status > 399 ||
        (status >= c->r->answer_from && status <= c->r->answer_to))
        return false;
    (void)il__curl->curl_easy_getinfo(c->easy, CURLINFO_REDIRECT_URL, &to); /* NULL otherwise */
    *ret = to;
    return to != NULL;
}

il_status
il__net_send(struct net_conn *c, const struct net_request *r, struct net_answer *ret,
             il_error *reterr)
{
    static const struct net_headers none;
    const struct net_headers       *headers = r->headers != NULL ? r->headers : &none;
    const char                     *to;
    int                             bad = 0;

    CHECK(r->total_ms > 0);
    CHECK(r->connect_ms > 0);
    CHECK(r->n_body_bytes == 0 || headers->list != NULL); /* this also drops "Expect:" */
    *ret         = (struct net_answer){ .url = "?" };
    c->r         = r;
    c->ret       = ret;
    c->until_ns  = il__clock_boot_ns() + r->total_ms * IL__NS_PER_MS;
    il_status st = aim(c, r->url, reterr);
    memcpy(ret->url, c->at.shown, sizeof ret->url);
    if (st != IL_OK)
        return st;
    bad |= set_method(c, r->method, true);
    bad |= (int)il__curl->curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, headers->list);
    bad |= (int)il__curl->curl_easy_setopt(c->easy, CURLOPT_CONNECTTIMEOUT_MS,
                                           (long)MIN(r->connect_ms, r->total_ms));
    if (bad != 0)
        return no_memory(reterr);
    st = exchange(c, reterr);
    while (st == IL_OK && redirects(c, &to)) {
        struct net_url AUTO(il__net_url_release) place = { 0 };
        st = il__net_url_parse(&place, to, true, reterr);
        if (st == IL_OK)
            st = follow(c, &place, reterr);
        if (st == IL_OK)
            st = exchange(c, reterr);
    }
    return st;
}
