/*
 * server.c: the engine behind http:// and https://. It sends ops to another Interlock, which
 * applies them.
 *
 * It keeps no state and makes no decisions: the other side is a handle on the real store. Repeating
 * an op is as safe as with every engine, so a connection that breaks before the reply arrives only
 * makes the outcome of the batch unknown. The server runs the sweeps. Waiting is a long poll: the
 * op to repeat is sent with a timeout, and the server replies when something has changed. The
 * caller then repeats the op and gets the same answer (a repeated acquire renews, a repeated claim
 * returns the same jobs).
 */
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/op.h"
#include "store/postconditions.h"
#include "store/server/server_internal.h"
#include "wire/wire.h"

#define BATCH_PATH "/api/v1/batch"
#define POLL_MS_MAX 25000 /* of one long poll: below the timeout of proxies */
#define LOOK_MS_MAX 1000  /* of one that waits for a change that may have happened already */
#define PAUSE_MS 200      /* after a failed poll: the repeated op will report why */

static struct server_store *
from_base(struct il__store *base)
{
    return (struct server_store *)base;
}

/* ---- connections ----------------------------------------------------------------------------- */

static struct server_exchange *
take_exchange(struct server_store *s)
{
    il__mutex_lock(&s->mutex);
    struct server_exchange *x = s->idle;
    if (x != NULL)
        s->idle = x->next;
    il__mutex_unlock(&s->mutex);
    return x != NULL ? x : il__server_exchange_new(&s->to);
}

static void
give_exchange(struct server_store *s, struct server_exchange *x)
{
    il__mutex_lock(&s->mutex);
    x->next = s->idle;
    s->idle = x;
    il__mutex_unlock(&s->mutex);
}

/* ---- ops ------------------------------------------------------------------------------------- */

static bool
put_request(struct server_exchange *x, const il_op *const *ops, size_t n, int64_t poll_ms)
{
    bool first = true;

    il__buf_clear(&x->request);
    il__buf_adds(&x->request, "{\"raw\":true,");
    if (poll_ms > 0)
        il__buf_addf(&x->request, "\"wait_ms\":%lld,", (long long)poll_ms);
    il__buf_adds(&x->request, "\"ops\":[");
    for (size_t i = 0; i < n; i++) {
        if (il__op_refused(ops[i]))
            continue;
        if (!first)
            il__buf_addc(&x->request, ',');
        il__wire_print_op(&x->request, ops[i]);
        first = false;
    }
    il__buf_adds(&x->request, "]}");
    return !x->request.failed;
}

static il_status
take_results(const struct server_store *s, const json_t *body, il_op *const *ops, size_t n,
             il_error *reterr)
{
    const json_t *results = json_object_get(body, "results");
    size_t        k       = 0;

    for (size_t i = 0; i < n; i++) {
        if (il__op_refused(ops[i]))
            continue;
        il__op_reset(ops[i]);
        il_status st = il__wire_parse_result(json_array_get(results, k++), ops[i], reterr);
        if (st == IL_NOMEM)
            return st;
            /* Reject a result that no store can return: its users rely on these conditions. */
#ifndef IL_MUTANT_server_trusted
        if (st == IL_OK && il__store_violation(ops[i]) != NULL)
            st = IL_INVAL;
#endif
        if (st != IL_OK)
            return il__error_set(reterr, IL_STORE, "%s: unexpected response to '%s'", s->to.shown,
                                 il_op_name(ops[i]->type));
    }
    if (k != json_array_size(results))
        return il__error_set(reterr, IL_STORE, "%s: replied to %zu operations with %zu results",
                             s->to.shown, k, json_array_size(results));
    return IL_OK;
}

/*
 * Refuse ops of another tenant, which the server would execute for the tenant of the key, and rates
 * of starts, which it does not support. False: nothing to send.
 */
static bool
refuse_some(const struct server_store *s, il_op *const *ops, size_t n)
{
    bool any = false;

    for (size_t i = 0; i < n; i++) {
        if (!il__op_refused(ops[i]) && strcmp(ops[i]->tenant, s->tenant) != 0)
            il__op_end(ops[i], IL_INVAL, "the API key belongs to another tenant");
        if (!il__op_refused(ops[i]) && ops[i]->type == IL_OP_RUN_START &&
            (ops[i]->in.run.minute_max != 0 || ops[i]->in.run.hour_max != 0))
            il__op_end(ops[i], IL_INVAL,
                       "minute_max and hour_max are not supported through a server");
        any = any || !il__op_refused(ops[i]);
    }
    return any;
}

/* How many ops have results that fit into one call there; at least one. */
static size_t
prefix_of(il_op *const *ops, size_t n)
{
    size_t n_bytes = 0;
    size_t i       = 0;

    for (; i < n; i++) {
        n_bytes += il__op_refused(ops[i]) ? 0 : il__op_result_bytes_max(ops[i]);
        if (i > 0 && n_bytes > IL_RESULT_BYTES_MAX)
            break;
    }
    return i;
}

static il_status
server_apply(struct il__store *base, il_op *const *ops, size_t n, size_t *ret_done,
             il_error *reterr)
{
    struct server_store *s    = from_base(base);
    json_t              *body = NULL;

    *ret_done = n = prefix_of(ops, n);
    if (!refuse_some(s, ops, n))
        return IL_OK;
    struct server_exchange *x = take_exchange(s);
    if (x == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a connection");
    il_status st = put_request(x, (const il_op *const *)ops, n, 0)
                       ? il__server_exchange(x, s->to.timeout_ms, NULL, &body, reterr)
                       : il__error_set(reterr, IL_NOMEM, "out of memory for a request");
    if (st == IL_OK)
        st = take_results(s, body, ops, n, reterr);
    json_decref(body);
    give_exchange(s, x);
    return st;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static il_status
server_wait(struct il__store *base, const il_op *op, int64_t timeout_ms,
            const atomic_bool *interrupted)
{
    struct server_store *s       = from_base(base);
    json_t              *body    = NULL;
    int64_t              poll_ms = MIN(timeout_ms, op->status == IL_OK ? LOOK_MS_MAX : POLL_MS_MAX);
    il_status            st      = IL_NOMEM;

    struct server_exchange *x = take_exchange(s);
    if (x == NULL)
        return IL_NOMEM;
    if (put_request(x, &op, 1, poll_ms))
        st = il__server_exchange(x, s->to.timeout_ms + poll_ms, interrupted, &body, NULL);
    json_decref(body);
    give_exchange(s, x);
    if (st != IL_OK && st != IL_CANCELLED)
        (void)poll(NULL, 0, (int)MIN(timeout_ms, PAUSE_MS)); /* however long it is */
    return st;
}

static il_status
server_request(struct il__store *base, struct il__request *r, il_error *reterr)
{
    struct server_store    *s = from_base(base);
    struct server_exchange *x = il__server_exchange_new(&s->to);

    if (x == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a connection");
    il_status st = il__server_request(x, r, reterr);
    il__server_exchange_free(x);
    return st;
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool
server_overdue(struct il__store *base UNUSED)
{
    return false; /* the server sweeps */
}

static void
server_free(struct il__store *base)
{
    struct server_store *s = from_base(base);

    while (s->idle != NULL) {
        struct server_exchange *x = s->idle;
        s->idle                   = x->next;
        il__server_exchange_free(x);
    }
    il__net_headers_release(&s->to.headers);
    il__mutex_destroy(&s->mutex);
    il__board_release(&s->board);
    il__free(s->to.shown);
    il__free(s->to.batch);
    il__free(s->to.unix_path);
    il__free(s);
}

static const struct il__store_ops ops = {
    .name    = "server",
    .caps    = IL__STORE_SHARED | IL__STORE_DURABLE,
    .n_lanes = IL__LANES_MAX,
    .free    = server_free,
    .apply   = server_apply,
    .read    = server_apply,
    .overdue = server_overdue,
    .wait    = server_wait,
    .request = server_request,
};

/* sk_TENANT_ and 43 characters. The server refuses a malformed one. */
static void
read_tenant(struct server_store *s, const char *key)
{
    size_t n = strlen(key);

    (void)snprintf(s->tenant, sizeof s->tenant, "default");
    if (strncmp(key, "sk_", 3) == 0 && n > 3 + 44 && n - 3 - 44 <= IL_TENANT_BYTES_MAX)
        (void)snprintf(s->tenant, sizeof s->tenant, "%.*s", (int)(n - 3 - 44), key + 3);
}

/* Content type and key. No message contains the key, so it cannot be shown by mistake. */
static il_status
set_headers(struct server_store *s, il_error *reterr)
{
    struct net_headers *h      = &s->to.headers;
    static const char   json[] = "application/json";
    const char         *key    = getenv("INTERLOCK_API_KEY");

    read_tenant(s, key != NULL ? key : "");

    il_status st = il__net_headers_add(h, "Content-Type", json, strlen(json), reterr);
    if (st != IL_OK || key == NULL || key[0] == '\0')
        return st; /* without a key: the server will ask for one */
    if (strlen(key) > 256 || strpbrk(key, "\r\n") != NULL)
        return il__error_set(reterr, IL_INVAL, "$INTERLOCK_API_KEY is not an API key");
    return il__net_headers_add(h, "X-API-Key", key, strlen(key), reterr);
}

/* http://host:port[/path], https://…, http+unix:/path/of/socket. It must not contain a user or
 * password. */
static il_status
set_target(struct server_target *to, const struct il__store_open *o, il_error *reterr)
{
    bool                    is_unix = strcmp(o->scheme, "http+unix:") == 0;
    AUTO_BUF struct il__buf batch   = { 0 };
    size_t                  n       = strlen(o->path);

    if (o->query != NULL)
        return il__error_set(reterr, IL_INVAL, "a server URL takes no options");
    if (is_unix ? o->path[0] == '\0' : strncmp(o->path, "//", 2) != 0 || n < 3)
        return il__error_set(
            reterr, IL_INVAL,
            "invalid server URL; use http://HOST:PORT, https://HOST or http+unix:/PATH");
    if (strchr(o->path, '@') != NULL)
        return il__error_set(reterr, IL_INVAL,
                             "remove the user from the server URL and set $INTERLOCK_API_KEY");
    while (!is_unix && n > 0 && o->path[n - 1] == '/')
        n--;
    il__buf_init(&batch, 4096);
    if (is_unix)
        il__buf_adds(&batch, "http://localhost" BATCH_PATH);
    else
        il__buf_addf(&batch, "%s%.*s" BATCH_PATH, o->scheme, (int)n, o->path);
    to->timeout_ms = o->timeout_ms;
    to->n_base     = batch.n_bytes - strlen("/batch");
    to->batch      = il__buf_take(&batch);
    to->shown      = il__strdup(o->url);
    to->unix_path  = is_unix ? il__strdup(o->path) : NULL;
    if (to->batch == NULL || to->shown == NULL || (is_unix && to->unix_path == NULL))
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    return IL_OK;
}

/* Is it a server, and does it accept the key? Detects a wrong address at once. */
static il_status
greet(struct server_store *s, il_error *reterr)
{
    il_op     op  = { .type = IL_OP_LIST, .tenant = s->tenant, .in.list.limit = 1 };
    il_op    *one = &op;
    size_t    n_done;
    il_status st = server_apply(&s->base, &one, 1, &n_done, reterr);

    il_op_release(&op);
    return st;
}

il_status
il__store_server_open(const struct il__store_open *o, struct il__store **ret, il_error *reterr)
{
    il_status st = il__net_load(reterr);

    if (st != IL_OK)
        return st;
    struct server_store *s = il__calloc(1, sizeof *s);
    if (s == NULL || !il__board_init_private(&s->board)) {
        il__free(s);
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    }
    s->base = (struct il__store){ .ops = &ops, .board = &s->board, .tenant = s->tenant };
    il__mutex_init(&s->mutex, IL__MUTEX_server);
    st = set_target(&s->to, o, reterr);
    if (st == IL_OK)
        st = set_headers(s, reterr);
    if (st == IL_OK)
        st = greet(s, reterr);
    if (st != IL_OK) {
        server_free(&s->base);
        return st;
    }
    *ret = &s->base;
    return IL_OK;
}
