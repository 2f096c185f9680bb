/*
 * exchange.c: one connection to a server: sends a request and reads the JSON reply. The connection
 * stays open for the next request.
 */
#include "base/error.h"
#include "store/server/server_internal.h"
#include "wire/error.h"

#define SERVER_URL_BYTES_MAX 8192

struct server_exchange *
il__server_exchange_new(const struct server_target *to)
{
    struct net_options      o = { .unix_path = to->unix_path, .http_1_1 = true, .direct = true };
    struct server_exchange *x = il__calloc(1, sizeof *x);

    if (x == NULL || il__net_open(&o, &x->conn, NULL) != IL_OK) {
        il__free(x);
        return NULL;
    }
    x->to = to;
    il__buf_init(&x->request, SERVER_ANSWER_BYTES_MAX);
    il__buf_init(&x->answer, SERVER_ANSWER_BYTES_MAX);
    return x;
}

void
il__server_exchange_free(struct server_exchange *x)
{
    il__net_close(x->conn);
    il__buf_release(&x->request);
    il__buf_release(&x->answer);
    il__free(x);
}

/*
 * Can a call fail as a whole with this status? Those of single ops cannot be trusted here: the
 * caller would take them for the outcome of its op.
 */
static bool
is_of_a_call(il_status st)
{
    switch (st) {
    case IL_INVAL:
    case IL_NOMEM:
    case IL_STORE:
    case IL_FULL:
    case IL_CORRUPT:
    case IL_NEWER:
    case IL_LIMIT:
        return true;
    default:
        return false;
    }
}

/* A batch was refused as a whole. */
static il_status
refused(const struct server_exchange *x, long http, const json_t *body, il_error *reterr)
{
    struct wire_error e;

    il__wire_error_read(http, body, &e);
    if (http == 404)
        e.status = IL_INVAL; /* every server has this path */
    else if (!is_of_a_call(e.status))
        e.status = IL_STORE;
    return il__wire_error_set(&e, x->to->shown,
                              http == 401
                                  ? "; check that $INTERLOCK_API_KEY is a key of this server"
                              : http == 404 ? "; check the server URL: it must not contain a path"
                                            : "",
                              reterr);
}

static bool
is_interrupted(void *cookie)
{
    const struct server_exchange *x = cookie;

    return x->interrupted != NULL && atomic_load(x->interrupted);
}

static bool
take_answer(void *cookie, const void *data, size_t n_bytes)
{
    struct server_exchange *x = cookie;

    il__buf_add(&x->answer, data, n_bytes);
    return !x->answer.failed;
}

/* Send x->request; returns status and body of the reply. */
static il_status
converse(struct server_exchange *x, const char *method, const char *url, int64_t timeout_ms,
         long *ret_http, json_t **ret, il_error *reterr)
{
    struct net_request r = { .method         = method,
                             .url            = url,
                             .headers        = &x->to->headers,
                             .connect_ms     = x->to->timeout_ms,
                             .total_ms       = timeout_ms,
                             .body_bytes_max = SERVER_ANSWER_BYTES_MAX,
                             .should_stop    = is_interrupted,
                             .take           = take_answer,
                             .cookie         = x };
    struct net_answer  answer;
    il_error           why;

    if (x->request.n_bytes > 0) {
        r.body         = il__buf_str(&x->request);
        r.n_body_bytes = x->request.n_bytes;
    }
    il__buf_clear(&x->answer);
    il_status st = il__net_send(x->conn, &r, &answer, &why);
    if (st == IL_CANCELLED || st == IL_NOMEM)
        return il__error_set(reterr, st, "%s: %s", x->to->shown, il_status_text(st));
    if (st != IL_OK)
        return il__error_set(reterr, IL_STORE, "%s: %s", x->to->shown, why.message);
    *ret_http = answer.status;
    if (il__wire_load_answer(il__buf_str(&x->answer), x->answer.n_bytes, ret, &why) != IL_OK)
        return il__error_set(reterr, IL_STORE, "%s: HTTP status %ld with a body that is not JSON",
                             x->to->shown, *ret_http);
    return IL_OK;
}

il_status
il__server_exchange(struct server_exchange *x, int64_t timeout_ms, const atomic_bool *interrupted,
                    json_t **ret, il_error *reterr)
{
    long    http = 0;
    json_t *body = NULL;

    x->interrupted = interrupted;
    il_status st   = converse(x, "POST", x->to->batch, timeout_ms, &http, &body, reterr);
    x->interrupted = NULL;
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

    il__buf_init(&url, SERVER_URL_BYTES_MAX);
    il__buf_addf(&url, "%.*s%s", (int)x->to->n_base, x->to->batch, r->path);
    il__buf_clear(&x->request);
    il__buf_adds(&x->request, r->body != NULL ? r->body : "");
    if (url.failed || x->request.failed)
        return il__error_set(reterr, IL_INVAL, "request too large");
    return converse(x, r->method, il__buf_str(&url), x->to->timeout_ms + r->wait_ms, &r->status,
                    &r->answer, reterr);
}
