/*
 * exchange.c: one connection to a server: a request out, a JSON answer back. The connection stays open for the next.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/server/server_internal.h"
#include "wire/wire.h"

#define SERVER_URL_BYTES_MAX 8192
#define LOOK_MS 100 /* how often a wait looks whether it was interrupted */

/* Sockets that the commands we run do not inherit. */
static curl_socket_t
open_socket(void *cookie UNUSED, curlsocktype purpose UNUSED, struct curl_sockaddr *a)
{
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static size_t
take_answer(char *data, size_t size, size_t n, void *cookie)
{
    struct server_exchange *x = cookie;

    il__buf_add(&x->answer, data, size * n);
    return x->answer.failed ? 0 : size * n;
}

static bool
set_up(struct server_exchange *x)
{
    const struct server_target *to = x->to;
    CURL                       *e  = x->easy;
    const char                 *ca = getenv("SSL_CERT_FILE");
    int                         ok = 0; /* or'ed: 0 is CURLE_OK */

    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_URL, to->batch);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_HTTPHEADER, to->headers);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_answer);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_WRITEDATA, x);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_ERRORBUFFER, x->why);
    ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)to->timeout_ms);
    /* libcurl itself does not look at it, OpenSSL and curl do. */
    if (ca != NULL && ca[0] != '\0')
        ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_CAINFO, ca);
    /* Not through $http_proxy: it would read the key. https:// goes through as a tunnel. */
    if (strncmp(to->batch, "http:", 5) == 0)
        ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_NOPROXY, "*");
    if (to->unix_path != NULL)
        ok |= (int)il__curl->curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, to->unix_path);
    return ok == (int)CURLE_OK;
}

struct server_exchange *
il__server_exchange_new(const struct server_target *to)
{
    struct server_exchange *x = il__calloc(1, sizeof *x);

    if (x == NULL)
        return NULL;
    x->to = to;
    il__buf_init(&x->request, SERVER_ANSWER_BYTES_MAX);
    il__buf_init(&x->answer, SERVER_ANSWER_BYTES_MAX);
    x->easy  = il__curl->curl_easy_init();
    x->multi = il__curl->curl_multi_init();
    if (x->easy == NULL || x->multi == NULL || !set_up(x)) {
        il__server_exchange_free(x);
        return NULL;
    }
    return x;
}

void
il__server_exchange_free(struct server_exchange *x)
{
    if (x->easy != NULL)
        il__curl->curl_easy_cleanup(x->easy);
    if (x->multi != NULL)
        (void)il__curl->curl_multi_cleanup(x->multi); /* nothing of it is in use */
    il__buf_release(&x->request);
    il__buf_release(&x->answer);
    il__free(x);
}

/* Carry it out; *ret is what libcurl says of it. */
static il_status
perform(struct server_exchange *x, const atomic_bool *interrupted, CURLcode *ret)
{
    int running = 1;
    int left;

    while (running > 0) {
        if (interrupted != NULL && atomic_load(interrupted))
            return IL_CANCELLED;
        if (il__curl->curl_multi_perform(x->multi, &running) != CURLM_OK)
            return IL_NOMEM;
        if (running > 0 && il__curl->curl_multi_poll(x->multi, NULL, 0, LOOK_MS, NULL) != CURLM_OK)
            return IL_NOMEM;
    }
    const CURLMsg *m = il__curl->curl_multi_info_read(x->multi, &left);
    *ret             = m != NULL && m->msg == CURLMSG_DONE ? m->data.result : CURLE_RECV_ERROR;
    return IL_OK;
}

/* What the body of an error says. */
static il_status
refused(const struct server_exchange *x, long http, const json_t *body, il_error *reterr)
{
    const json_t *error   = json_object_get(body, "error");
    const char   *message = json_string_value(json_object_get(error, "message"));
    const char   *said    = message != NULL ? message : "it gave no reason";
    il_status     st      = IL_STORE;

    if (http == 401)
        st = il__error_set(reterr, IL_STORE,
                           "%s: %s; is $INTERLOCK_API_KEY set to a key of this server?",
                           x->to->shown, said);
    else if (http == 404)
        st = il__error_set(reterr, IL_INVAL,
                           "%s: %s; is that the address of a server, with nothing behind it?",
                           x->to->shown, said);
    else if (http == 400 || http == 403 || http == 413)
        st = il__error_set(reterr, IL_INVAL, "%s: %s", x->to->shown, said);
    else if (http == 429)
        st = il__error_set(reterr, IL_LIMIT, "%s: %s", x->to->shown, said);
    else
        il__error_set(reterr, IL_STORE, "%s: answered %ld: %s", x->to->shown, http, said);
    if (reterr != NULL)
        (void)snprintf(reterr->native, sizeof reterr->native, "%ld", http);
    return st;
}

static il_status
transmit(struct server_exchange *x, int64_t timeout_ms, const atomic_bool *interrupted, il_error *reterr)
{
    CURLcode code = CURLE_OK;

    il__buf_clear(&x->answer);
    x->why[0] = '\0';
    int bad =
        (int)il__curl->curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE, (long)x->request.n_bytes);
    bad |= (int)il__curl->curl_easy_setopt(x->easy, CURLOPT_POSTFIELDS, il__buf_str(&x->request));
    bad |= (int)il__curl->curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    if (bad != 0 || il__curl->curl_multi_add_handle(x->multi, x->easy) != CURLM_OK)
        return il__error_set(reterr, IL_NOMEM, "no memory for a request");
    il_status st = perform(x, interrupted, &code);
    (void)il__curl->curl_multi_remove_handle(x->multi, x->easy); /* it is there */
    if (st != IL_OK)
        return il__error_set(reterr, st, "%s: %s", x->to->shown, il_status_text(st));
    if (code != CURLE_OK)
        return il__error_set(reterr, IL_STORE, "%s: %s", x->to->shown,
                             code == CURLE_COULDNT_CONNECT && x->to->unix_path != NULL
                                 ? "no server listens there"
                             : x->why[0] != '\0' ? x->why
                                                 : il__curl->curl_easy_strerror(code));
    return IL_OK;
}

/* Send it; status and body of the answer. */
static il_status
converse(struct server_exchange *x, int64_t timeout_ms, const atomic_bool *interrupted,
         long *ret_http, json_t **ret, il_error *reterr)
{
    il_error  why;
    il_status st = transmit(x, timeout_ms, interrupted, reterr);

    if (st != IL_OK)
        return st;
    if (il__curl->curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, ret_http) != CURLE_OK)
        return il__error_set(reterr, IL_STORE, "%s: no answer", x->to->shown);
    if (il__wire_load_answer(il__buf_str(&x->answer), x->answer.n_bytes, ret, &why) != IL_OK)
        return il__error_set(reterr, IL_STORE, "%s: answered %ld with something that is not JSON",
                             x->to->shown, *ret_http);
    return IL_OK;
}

il_status
il__server_exchange(struct server_exchange *x, int64_t timeout_ms, const atomic_bool *interrupted,
                    json_t **ret, il_error *reterr)
{
    long      http = 0;
    json_t   *body = NULL;
    il_status st   = converse(x, timeout_ms, interrupted, &http, &body, reterr);

    if (st != IL_OK)
        return st;
    if (http != 200) {
        st = refused(x, http, body, reterr);
        json_decref(body);
        return st;
    }
    *ret = body;
    return IL_OK;
}

il_status
il__server_request(struct server_exchange *x, struct il__request *r, il_error *reterr)
{
    AUTO_BUF struct il__buf url = { 0 };
    int                     bad = 0;

    il__buf_init(&url, SERVER_URL_BYTES_MAX);
    il__buf_addf(&url, "%.*s%s", (int)x->to->n_base, x->to->batch, r->path);
    il__buf_clear(&x->request);
    il__buf_adds(&x->request, r->body != NULL ? r->body : "");
    if (url.failed || x->request.failed)
        return il__error_set(reterr, IL_INVAL, "the request is too large");
    bad |= (int)il__curl->curl_easy_setopt(x->easy, CURLOPT_URL, il__buf_str(&url));
    bad |= (int)il__curl->curl_easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, r->method);
    if (bad != 0)
        return il__error_set(reterr, IL_NOMEM, "no memory for a request");
    return converse(x, x->to->timeout_ms + r->wait_ms, NULL, &r->status, &r->answer, reterr);
}
