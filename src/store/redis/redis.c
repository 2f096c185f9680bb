/*
 * redis.c: the Redis engine: a transport for src/store/remote, whose verbs are the Lua functions in
 * lua/.
 *
 * A batch is one function call, which executes its requests in order. When a request asks back or
 * fails, the ones after it are not executed (lua/apply.lua), and the caller sends them again.
 */
#include <inttypes.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/op.h"
#include "store/redis/redis_internal.h"

/*
 * All other clients wait while a call runs. So it has at most this many requests, which take a
 * millisecond at most, or this many finishes, each of which costs the server a fourth as much.
 */
#define REQUESTS_MAX 32
#define FINISHES_MAX 128

/* ---- errors of the server -------------------------------------------------------------------- */

static const struct {
    const char           *prefix;
    enum redis_error_kind kind;
    il_status             status;
    const char           *means;
} errors[] = {
    { "ERR Function not found", REDIS_ERROR_RELOAD, IL_STORE, "the function library is missing" },
    { "ERR interlock: say hello", REDIS_ERROR_RELOAD, IL_STORE, "the store was flushed" },
    { "OOM ", REDIS_ERROR_OP, IL_FULL,
      "the server is out of memory (maxmemory); new data is refused until some is released" },
    { "READONLY ", REDIS_ERROR_DROP, IL_STORE, "the server is a replica" },
    { "LOADING ", REDIS_ERROR_DROP, IL_STORE, "the server is loading its data" },
    { "MASTERDOWN ", REDIS_ERROR_DROP, IL_STORE, "the server is a replica without a master" },
    { "NOAUTH ", REDIS_ERROR_DROP, IL_STORE, "the server requires a password" },
    { "WRONGPASS ", REDIS_ERROR_DROP, IL_STORE, "wrong user name or password" },
    { "ERR AUTH ", REDIS_ERROR_DROP, IL_STORE, "the URL has a password, but the server has none" },
    { "ERR invalid password", REDIS_ERROR_DROP, IL_STORE, "wrong password" },
    { "ERR DB index is out of range", REDIS_ERROR_DROP, IL_STORE,
      "no such database on the server" },
    { "NOPERM ", REDIS_ERROR_CALL, IL_STORE, "permission denied for this user" },
    { "MISCONF ", REDIS_ERROR_CALL, IL_STORE,
      "the server refuses writes because it cannot save them" },
    { "NOREPLICAS ", REDIS_ERROR_CALL, IL_STORE,
      "the server refuses writes because it has too few replicas" },
    { "BUSY ", REDIS_ERROR_CALL, IL_STORE, "the server is busy running a script" },
    { "CLUSTERDOWN ", REDIS_ERROR_CALL, IL_STORE, "the cluster is down" },
    { "MOVED ", REDIS_ERROR_CALL, IL_STORE,
      "cluster: this server does not serve the store's slot" },
};

enum redis_error_kind
il__redis_map(const struct redis_url *u, const char *text, il_error *reterr)
{
    size_t    i      = 0;
    il_error  unused = { .status = IL_OK };
    il_error *e      = reterr != NULL ? reterr : &unused;

    while (i < ARRAY_LEN(errors) && strncmp(text, errors[i].prefix, strlen(errors[i].prefix)) != 0)
        i++;
    bool known = i < ARRAY_LEN(errors);
    (void)il__error_set(e, known ? errors[i].status : IL_STORE, "%s: %s%s%.300s%s", u->shown,
                        known ? errors[i].means : "", known ? " (" : "the server says: ", text,
                        known ? ")" : "");
    /* The first word of the server's text. */
    (void)snprintf(e->native, sizeof e->native, "%.*s",
                   (int)MIN(strcspn(text, " "), sizeof e->native - 1), text);
    return known ? errors[i].kind : REDIS_ERROR_OP;
}

/* ---- a batch --------------------------------------------------------------------------------- */

/*
 * What is refused when the server's memory is full: ops that add something new. Ops that release,
 * keep alive, show or finish existing things stay usable; otherwise a full store could never become
 * less full. The first ones here may be a sign of life: once refused, they are sent again to the
 * function that checks for that.
 */
#define TAKES_OR_RENEWS 3
static const char *const takes[] = {
    "acquire",   "once_begin", "run_start",  "run_stage", "push",
    "queue_set", "cron_set",   "cache_fill", "x_tick",    "x_learn",
};

/* A request begins with {"op":"NAME", or is packed. n_names: how many of takes[] to check. */
static bool
is_among(const struct remote_request *r, size_t n_names)
{
    static const char begin[] = "{\"op\":\"";
    const char       *name    = il__buf_str(&r->json) + sizeof begin - 1;

    if (r->json.data[0] != '{')
        return r->json.data[0] == 'A';
    CHECK(strncmp(il__buf_str(&r->json), begin, sizeof begin - 1) == 0);
    for (size_t i = 0; i < n_names; i++) {
        size_t n = strlen(takes[i]);
        if (strncmp(name, takes[i], n) == 0 && name[n] == '"')
            return true;
    }
    return false;
}

/* The type of c->result: replies that blobs point into, each at the first request it answers. */
struct batch {
    size_t      n;
    redisReply *replies[];
};

static void
batch_free(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        if (b->replies[i] != NULL)
            il__redis_api.freeReplyObject(b->replies[i]);
    }
    il__free(b);
}

static struct remote_blob
blob_of(const redisReply *r)
{
    if (r->type != REDIS_REPLY_STRING)
        return (struct remote_blob){ 0 };
    return (struct remote_blob){ r->str, r->len };
}

/* Head and value, then three for each part. False: the call's `failed` is set. */
static bool
take_reply(struct remote_call *call, size_t i, const redisReply *r)
{
    static const struct remote_blob none = { 0 };

    if ((r->elements > 1 && (r->elements - 2) % 3 != 0) ||
        r->element[0]->type != REDIS_REPLY_STRING) {
        call->failed = true;
        return false;
    }
    bool ok = il__remote_take_row(call, i, r->element[0]->str, r->element[0]->len,
                                  r->elements > 1 ? blob_of(r->element[1]) : none, none);
    for (size_t k = 2; ok && k < r->elements; k += 3) {
        const redisReply *json = r->element[k];
        ok                     = json->type == REDIS_REPLY_STRING &&
             il__remote_take_row(call, i, json->str, json->len, blob_of(r->element[k + 1]),
                                 blob_of(r->element[k + 2]));
    }
    call->failed = call->failed || !ok;
    return ok;
}

/* Only one request failed: it gets a reply that says so. */
static bool
take_error(struct remote_call *call, size_t i, il_error *why)
{
    struct remote_request AUTO_REQUEST r    = { 0 };
    static const struct remote_blob    none = { 0 };

    CHECK(why != NULL);
    for (char *at = why->message; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || (unsigned char)*at >= 0x7f)
            *at = '?'; /* of a server's text only; ours has none */
    }
    il__remote_begin(&r, "error");
    il__remote_put_number(&r, "status", why->status);
    il__remote_put_text(&r, "detail", why->message);
    if (!il__remote_end(&r))
        call->failed = true;
    return !call->failed && il__remote_take_row(call, i, r.json.data, r.json.n_bytes, none, none);
}

/* The outcome of a function call. */
enum outcome {
    CARRIED_OUT, /* as far as possible: one that asked back or failed is the last */
    RELOAD,      /* no: the library, or the store's row, is missing */
    ALONE,       /* no: one of the requests is unacceptable, the others may be fine */
    REFUSED,     /* no: the server accepts none now */
    FAILED,      /* no, and the connection is unusable */
};

/* The replies to requests from `from` on. */
static enum outcome
take_replies(struct redis_store *s, struct remote_call *call, size_t from, const redisReply *r,
             il_error *why)
{
    const redisReply *first = NULL; /* of the finishes */

    for (size_t i = 0; i < r->elements; i++) {
        redisReply *one = r->element[i];
        bool        ok;
        il__redis_complete(one, &first);
        if (one->type == REDIS_REPLY_ERROR) {
            if (il__redis_map(&s->url, one->str, why) == REDIS_ERROR_RELOAD)
                return i == 0 ? RELOAD : CARRIED_OUT; /* what came before has happened */
            ok = take_error(call, from + i, why);     /* it is this request's, whatever it says */
        } else {
            ok = il__redis_is_packed(one) ? il__redis_take_packed(call, from + i, one)
                                          : one->type == REDIS_REPLY_ARRAY && one->elements > 0 &&
                                                take_reply(call, from + i, one);
        }
        if (!ok) {
            call->failed = true;
            break;
        }
    }
    return CARRIED_OUT;
}

static enum outcome
take(struct redis_store *s, struct remote_call *call, size_t from, size_t n, const redisReply *r,
     il_error *why)
{
    if (r->type == REDIS_REPLY_ARRAY && r->elements <= n)
        return take_replies(s, call, from, r, why);
    if (r->type == REDIS_REPLY_INTEGER && n == 1) {
        call->failed = !il__redis_take_packed(call, from, r);
        return CARRIED_OUT;
    }
    switch (il__redis_map(&s->url, r->type == REDIS_REPLY_ERROR ? r->str : "no array", why)) {
    case REDIS_ERROR_RELOAD:
        return RELOAD;
    case REDIS_ERROR_CALL:
        return REFUSED;
    case REDIS_ERROR_DROP:
        return FAILED;
    case REDIS_ERROR_OP:
    default:
        if (n > 1)
            return ALONE;
        call->failed = !take_error(call, from, why);
        return CARRIED_OUT;
    }
}

static bool
is_full(const redisReply *r)
{
    return r->type == REDIS_REPLY_ERROR && strncmp(r->str, "OOM ", 4) == 0;
}

/* Call a function with n requests from `from` on. */
static il_status
exchange(struct redis_store *s, struct redis_conn *c, enum redis_function f,
         struct remote_call *call, size_t from, size_t n, int64_t deadline_ns, il_error *reterr)
{
    struct batch *b = call->result;

    il__redis_put_call(s, c, f, call->now_ms, call->wall_ms, call->requests + from, n);
    if (b->replies[from] != NULL)
        il__redis_api.freeReplyObject(TAKE(b->replies[from])); /* of the attempt before */
    il_status st = il__redis_send(c, deadline_ns, reterr);
    return st == IL_OK ? il__redis_recv(c, deadline_ns, &b->replies[from], reterr) : st;
}

/* Send n requests from `from` on as one call, and process the reply. */
static il_status
run(struct redis_store *s, struct redis_conn *c, struct remote_call *call, size_t from, size_t n,
    int64_t deadline_ns, enum outcome *ret, il_error *reterr)
{
    struct batch       *b = call->result;
    enum redis_function f = call->reads ? REDIS_READ : REDIS_FREE;

    for (size_t i = 0; !call->reads && i < n; i++) {
        if (is_among(&call->requests[from + i], ARRAY_LEN(takes)))
            f = REDIS_WRITE;
    }
    il_status st = exchange(s, c, f, call, from, n, deadline_ns, reterr);
    if (st == IL_OK && n == 1 && f == REDIS_WRITE && is_full(b->replies[from]) &&
        is_among(&call->requests[from], TAKES_OR_RENEWS))
        st = exchange(s, c, REDIS_OWN, call, from, n, deadline_ns, reterr);
    if (st == IL_OK)
        *ret = take(s, call, from, n, b->replies[from], reterr);
    return st;
}

/* Each by itself: when memory is full, a release must not fail because of its neighbours. */
static il_status
run_alone(struct redis_store *s, struct redis_conn *c, struct remote_call *call,
          int64_t deadline_ns, enum outcome *ret, il_error *reterr)
{
    il_status st = IL_OK;

    *ret = CARRIED_OUT;
    for (size_t i = 0; st == IL_OK && *ret == CARRIED_OUT && !call->failed && i < call->n; i++) {
        st = run(s, c, call, i, 1, deadline_ns, ret, reterr);
        if (st == IL_OK && il__remote_asked(call, i))
            break;
    }
    return st;
}

static il_status
call_on(struct redis_store *s, struct redis_conn *c, struct remote_call *call, il_error *reterr)
{
    int64_t      deadline_ns = il__clock_boot_ns() + s->timeout_ms * IL__NS_PER_MS;
    enum outcome came        = CARRIED_OUT;
    il_status    st          = il__redis_connect(s, c, deadline_ns, reterr);

    if (st == IL_OK && c->policy[0] != '\0') {
        st = il__redis_refuse_policy(c, reterr);
        il__redis_conn_drop(c); /* the next one may find it changed */
    }
    if (st != IL_OK) {
        /* Nothing was sent. */
        (void)snprintf(reterr->native, sizeof reterr->native, "%s", IL__NATIVE_BUSY);
        return st;
    }
    il__redis_listen_await(s, deadline_ns);
    st = run(s, c, call, 0, call->n, deadline_ns, &came, reterr);
    if (st == IL_OK && came == RELOAD) {
        /* The library's state is lost with it, and the store may be, too: say hello again. */
        st = c->writes ? il__redis_hello(s, c, deadline_ns, reterr)
                       : il__redis_library_load(s, c, deadline_ns, reterr);
        if (st == IL_OK)
            st = run(s, c, call, 0, call->n, deadline_ns, &came, reterr);
    }
    if (st == IL_OK && came == ALONE)
        st = run_alone(s, c, call, deadline_ns, &came, reterr);
    if (st != IL_OK)
        return st;
    if (came == FAILED) {
        il__redis_conn_drop(c);
        il__redis_suspect(s);
    }
    /* The requests before a refusal were executed; the rest is sent again, and refused then. */
    return came == CARRIED_OUT || call->n_replies > 0 ? IL_OK : IL_STORE;
}

static il_status
call_either(struct redis_store *s, struct remote_call *call, il_error *reterr)
{
    if (!call->reads) {
        unsigned  i    = il__connections_take(&s->connections);
        il_status done = call_on(s, &s->writers[i], call, reterr);
        il__connections_give(&s->connections, i);
        return done;
    }
    il__mutex_lock(&s->reader_mutex);
    il_status st = call_on(s, &s->reader, call, reterr);
    il__mutex_unlock(&s->reader_mutex);
    return st;
}

/* A listing, with the names of classic clients' locks; it is the only request of its call
 * (redis_weight()). */
static il_status
call_listing(struct redis_store *s, struct remote_call *call, il_error *reterr)
{
    struct remote_request AUTO_REQUEST named    = { 0 };
    const struct remote_request       *requests = call->requests;
    il_status                          st = il__redis_classic_request(s, requests, &named, reterr);

    if (st != IL_OK)
        return st;
    call->requests = &named;
    st             = call_either(s, call, reterr);
    call->requests = requests;
    return st;
}

static il_status
redis_call(struct remote_store *remote, struct remote_call *call, il_error *reterr)
{
    struct redis_store *s = container_of(remote, struct redis_store, remote);
    struct batch       *b = il__calloc(1, sizeof *b + call->n * sizeof b->replies[0]);
    il_error            why;

    if (b == NULL) {
        call->refused = true;
        return il__error_set(reterr, IL_NOMEM, "out of memory for a batch");
    }
    b->n         = call->n;
    call->result = b;
    if (reterr == NULL)
        reterr = &why;
    return il__redis_classic_lists(s, call) ? call_listing(s, call, reterr)
                                            : call_either(s, call, reterr);
}

static void
redis_done(struct remote_store *remote UNUSED, struct remote_call *call)
{
    batch_free(call->result);
    call->result = NULL;
}

/* The functions have already notified the others (lua/apply.lua). */
static void
redis_wake(struct remote_store *remote UNUSED, const uint32_t *slots UNUSED, size_t n UNUSED)
{
}

/* ---- leases that this store cannot have ------------------------------------------------------ */

/* The lease TTL that an op requests; 0: none. */
static int64_t
ttl_of(const il_op *op)
{
    switch (op->type) {
    case IL_OP_ACQUIRE:
    case IL_OP_RENEW:
        return op->in.lock.ttl_ms;
    case IL_OP_RUN_START:
        return op->in.run.ttl_ms;
    default:
        return 0;
    }
}

/*
 * After a promotion or a restart, nothing is granted for as long as a forgotten lease could still
 * run; so no lease may be longer than that.
 */
static bool
is_too_long(const struct redis_store *s, const il_op *op)
{
    return ttl_of(op) > s->url.max_ttl_ms;
}

/*
 * A classic lock of tenant "a:b" on "c" has the same name as one of tenant "a" on "b:c". So the
 * tenant is the part before the first colon, and other tenants have no pipelines here: a lease that
 * excludes no classic client would not be a lock.
 */
static bool
is_ambiguous(const struct redis_store *s, const il_op *op)
{
#ifdef IL_MUTANT_classic_tenants_meet
    return false;
#endif
    return s->url.classic && (op->type == IL_OP_ACQUIRE || op->type == IL_OP_RUN_START) &&
           strncmp(op->key, "pipeline:", 9) == 0 && strchr(op->tenant, ':') != NULL;
}

static il_status
redis_apply(struct il__store *base, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    struct redis_store *s = container_of(il__remote_from(base), struct redis_store, remote);
    char                text[160];

    for (size_t i = 0; i < n; i++) {
        if (il__op_refused(ops[i]))
            continue;
        if (is_too_long(s, ops[i])) {
            (void)snprintf(
                text, sizeof text,
                "leases of this store may last at most %lld s; raise max_ttl= in the store URL",
                (long long)(s->url.max_ttl_ms / 1000));
            il__op_end(ops[i], IL_INVAL, text);
        } else if (is_ambiguous(s, ops[i])) {
            il__op_end(
                ops[i], IL_INVAL,
                "with classic=yes, a tenant whose name contains a colon cannot have pipelines");
        }
    }
    return s->apply(base, ops, n, ret_done, reterr);
}

/* ---- opening and freeing --------------------------------------------------------------------- */

static void
redis_free(struct remote_store *remote)
{
    struct redis_store *s = container_of(remote, struct redis_store, remote);

    il__redis_listen_stop(s);
    for (unsigned i = 0; i < REDIS_WRITERS; i++)
        il__redis_conn_release(&s->writers[i]);
    il__connections_release(&s->connections);
    il__mutex_destroy(&s->hello_mutex);
    il__redis_conn_release(&s->reader);
    il__redis_classic_release(s);
    il__mutex_destroy(&s->reader_mutex);
    il__redis_tls_release(s->ctx);
    il__redis_url_release(&s->url);
    il__remote_release(&s->remote);
    il__free(s);
}

/*
 * All other clients wait while a call runs, so a call contains at most one list or count, one claim
 * of the maximum size, or a megabyte of values.
 */
static size_t
redis_weight(const il_op *op)
{
    size_t weight = op->type == IL_OP_JOB_FINISH ? 1 : FINISHES_MAX / REQUESTS_MAX;

    if (il__op_looks(op->type))
        return FINISHES_MAX;
    if (op->type == IL_OP_JOB_CLAIM)
        weight += (size_t)FINISHES_MAX * op->in.job.limit / IL_CLAIM_JOBS_MAX;
    return weight + FINISHES_MAX * il__op_data_bytes(op) / IL_BLOB_BYTES_MAX;
}

static const struct remote_transport redis_transport = {
    .name           = "redis",
    .caps           = IL__STORE_SHARED,
    .n_lanes        = REDIS_WRITERS,
    .n_requests_max = FINISHES_MAX,
    .weight         = redis_weight,
    .encode         = il__redis_encode,
    .decode         = il__redis_decode,
    .call           = redis_call,
    .done           = redis_done,
    .wake           = redis_wake,
    .report         = il__redis_report,
    .free           = redis_free,
};

/* Our client name on the server, new for each open store. */
static void
set_name(struct redis_store *s)
{
    uint64_t random = (uint64_t)il__clock_boot_ns();

    IGNORE(getrandom(&random, sizeof random, GRND_NONBLOCK) < 0); /* the clock will do */
    (void)snprintf(s->flags, sizeof s->flags, "%c%016" PRIx64, s->url.classic ? 'c' : '-', random);
}

static il_status
open_parts(struct redis_store *s, const struct il__store_open *o, il_error *reterr)
{
    int64_t deadline_ns = il__clock_boot_ns() + o->timeout_ms * IL__NS_PER_MS;

    set_name(s);
    il_status st = il__redis_load(reterr);
    if (st == IL_OK && s->url.tls)
        st = il__redis_tls_init(&s->url, &s->ctx, reterr);
    for (unsigned i = 0; i < REDIS_WRITERS; i++)
        s->writers[i].ctx = s->ctx;
    s->reader.ctx       = s->ctx;
    s->classic.conn.ctx = s->ctx;
    if (st == IL_OK)
        st = il__redis_connect(s, &s->writers[0], deadline_ns, reterr);
    if (st == IL_OK && s->facts.is_synced)
        s->remote.ops.caps |= IL__STORE_DURABLE;
    if (st == IL_OK)
        st = il__redis_listen_start(s, reterr);
    return st;
}

il_status
il__store_redis_open(const struct il__store_open *o, struct il__store **ret, il_error *reterr)
{
    struct redis_store *s = il__calloc(1, sizeof *s);

    if (s == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    bool ok = il__remote_init(&s->remote, &redis_transport, o);
    il__mutex_init(&s->reader_mutex, IL__MUTEX_reader);
    il__mutex_init(&s->hello_mutex, IL__MUTEX_hello);
    il__connections_init(&s->connections, REDIS_WRITERS);
    for (unsigned i = 0; i < REDIS_WRITERS; i++) {
        il__redis_conn_init(&s->writers[i], &s->url, NULL);
        s->writers[i].writes = true;
    }
    il__redis_conn_init(&s->reader, &s->url, NULL);
    il__redis_classic_init(s);
    s->apply               = s->remote.ops.apply;
    s->remote.ops.apply    = redis_apply;
    s->remote.ops.attend   = il__redis_attend;
    s->remote.ops.announce = il__redis_announce;
    s->timeout_ms          = o->timeout_ms;
    s->test_clock          = o->test_clock;
    s->existing            = o->existing;
    il_status st           = ok ? il__redis_url_parse(&s->url, o->scheme, o->path, o->query, reterr)
                                : il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    if (st == IL_OK)
        st = open_parts(s, o, reterr);
    if (st != IL_OK) {
        redis_free(&s->remote);
        return st;
    }
    *ret = &s->remote.base;
    return IL_OK;
}
