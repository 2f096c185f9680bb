/*
 * authorise.c: decides whether the caller may have these ops applied. This is the only way from a
 * handler to the store: http_do() and its variants end in http_submit() (ops.c), which has no other
 * caller.
 *
 * judge() checks each op, in this order:
 *   tenant      the caller's own; another tenant only for the role admin
 *   permission  in a batch, that of the op's own route; otherwise http_auth() has already checked
 *               the route of the request, before its body was read
 *   owner       stored responses of an Idempotency-Key belong to the server, runs of an app to it
 *   prefix      of the caller's key (scope.c)
 * An op that names a run or a job only by id is preceded by a lookup of its key.
 */
#define HTTP_SUBMITS

#include "http/auth.h"
#include "http/handler.h"
#include "http/limits.h"
#include "http/ops.h"
#include "http/scope.h"

/* ---- checks on the op alone ------------------------------------------------------------------ */

/* An op without a tenant gets the caller's. */
static bool
is_own_tenant(const struct http_request *r, il_op *op)
{
    if (op->tenant == NULL)
        op->tenant = r->caller->tenant;
    return http_may_reach(r->caller, op->tenant);
}

static bool
is_permitted(const struct http_request *r, const struct http_each *e, const il_op *op)
{
#ifdef IL_MUTANT_batch_without_permission
    return true;
#endif
    return !e->by_route || http_may_call(r->caller, http_route_of_op(op->type));
}

static enum http_scope
judge(const struct http_request *r, const struct http_each *e, il_op *op)
{
    if (!is_own_tenant(r, op))
        return HTTP_SCOPE_FORBIDDEN;
    if (!is_permitted(r, e, op))
        return HTTP_SCOPE_NO_PERMISSION;
#ifndef IL_MUTANT_answers_by_once
    if (http_once_reserved(op))
        return HTTP_SCOPE_RESERVED;
#endif
    if (http_scope_is_app_key(r, op))
        return HTTP_SCOPE_RESERVED;
    enum http_scope verdict = http_scope(r->caller, op);
    if ((verdict != HTTP_SCOPE_OK && verdict != HTTP_SCOPE_BY_ID) || !http_scope_asks_app(r, op))
        return verdict;
    if (op->type != IL_OP_RUN_START) /* names its key; the others name their run by id */
        return HTTP_SCOPE_BY_ID;
    return http_scope_run(r, op->key) == HTTP_SCOPE_OK ? verdict : HTTP_SCOPE_RESERVED;
}

/* ---- applying the permitted ops -------------------------------------------------------------- */

/* A hidden object looks like one that does not exist. */
static void
hide(il_op *op)
{
    il_op_release(op);
    switch (op->type) {
    case IL_OP_GET:
        op->status = IL_NOT_HELD;
        break;
    case IL_OP_CHECK_FENCE:
        op->status = IL_STALE;
        break;
    case IL_OP_LIST:
    case IL_OP_RUN_LIST:
    case IL_OP_JOB_LIST:
    case IL_OP_QUEUE_LIST:
    case IL_OP_CRON_LIST:
    case IL_OP_CACHE_STATS:
    case IL_OP_ORDER_LIST:
    case IL_OP_HISTORY:
        op->status = IL_OK;
        break;
    default:
        op->status = IL_NOT_FOUND;
        break;
    }
}

static void
applied(struct http_request *r)
{
    struct http_each *e = r->each;

    for (size_t i = 0; i < e->n_parts; i++) {
        e->ops[e->places[i]] = e->parts[i];
        e->parts[i].mem      = NULL; /* moved */
    }
    r->ops   = e->ops;
    r->n_ops = e->n;
    e->then(r);
}

/* False: the whole request is refused and has been answered. */
static bool
is_whole(struct http_request *r, const struct http_each *e)
{
    for (size_t i = 0; e->whole && i < e->n; i++) {
        if (e->verdicts[i] > HTTP_SCOPE_HIDDEN) {
            http_refuse_op(r, e->verdicts[i]);
            return false;
        }
    }
    return true;
}

/* All verdicts are known: apply the permitted ops; the others have their status already. */
static void
apply(struct http_request *r)
{
    struct http_each *e = r->each;

    for (size_t i = 0; i < e->n; i++) {
        if (e->verdicts[i] == HTTP_SCOPE_BY_ID) /* no objection found */
            e->verdicts[i] = HTTP_SCOPE_OK;
    }
    if (!is_whole(r, e))
        return;
    if (e->by_op)
        http_limits_judge(r, e->ops, e->n, e->verdicts);
    e->n_parts = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (e->verdicts[i] == HTTP_SCOPE_HIDDEN)
            hide(&e->ops[i]);
        if (e->verdicts[i] == HTTP_SCOPE_UNKNOWN) {
            il_op_release(&e->ops[i]);
            e->ops[i].status = IL_LIMIT;
        }
        if (e->verdicts[i] != HTTP_SCOPE_OK)
            continue;
        e->places[e->n_parts]  = i;
        e->parts[e->n_parts++] = e->ops[i];
    }
    if (e->n_parts > 0)
        http_submit(r, e->parts, e->n_parts, e->wait_ms, applied);
    else
        applied(r);
}

/* ---- lookups --------------------------------------------------------------------------------- */

/* The key of the run, or the queue of the job, that an op names. */
static const char *
owner_of(const il_op *look)
{
    if (look->status != IL_OK)
        return NULL;
    if (look->type == IL_OP_RUN_GET)
        return look->out.n_runs > 0 ? look->out.runs[0].key : NULL;
    return look->out.n_jobs > 0 ? look->out.jobs[0].queue : NULL;
}

/* A push or a start with a new id refers to nothing yet. */
static bool
may_be_new(const il_op *op, const il_op *look)
{
    return look->status == IL_NOT_FOUND &&
           ((op->type == IL_OP_JOB_PUSH && look->in.job.id == op->in.job.id) ||
            op->type == IL_OP_RUN_START);
}

/* A begin on an existing key replays its answer or takes over a claim: it adds no row. */
static enum http_scope
judge_once(const il_op *look)
{
    bool exists = look->status == IL_REPLAY || look->status == IL_BUSY;

#ifdef IL_MUTANT_full_forgets_answers
    exists = false;
#endif
    if (exists)
        return (enum http_scope)HTTP_OVER_BUT_EXISTS;
    return look->status == IL_LIMIT ? HTTP_SCOPE_UNKNOWN : HTTP_SCOPE_OK;
}

/* The verdict on an op after one of its lookups; `before` is the previous verdict. */
static enum http_scope
judge_look(const struct http_request *r, const il_op *op, const il_op *look, enum http_scope before)
{
    if (look->type == IL_OP_ONCE_GET)
        return judge_once(look);
    if (look->status != IL_OK && look->status != IL_NOT_FOUND)
        return HTTP_SCOPE_UNKNOWN; /* the lookups together were too large */
    if (before != HTTP_SCOPE_BY_ID)
        return before;
    if (!may_be_new(op, look) && !http_scope_has(r->caller, owner_of(look)))
        return HTTP_SCOPE_HIDDEN;
    if (http_scope_asks_app(r, op) && http_scope_run(r, owner_of(look)) != HTTP_SCOPE_OK)
        return HTTP_SCOPE_RESERVED;
    return before;
}

static void
looked(struct http_request *r)
{
    struct http_each *e = r->each;

    for (size_t i = 0; i < e->n_parts; i++) {
        unsigned char *verdict = &e->verdicts[e->places[i]];
        *verdict = (unsigned char)judge_look(r, &e->ops[e->places[i]], &e->parts[i], *verdict);
        il_op_release(&e->parts[i]);
    }
    apply(r);
}

static void
look_for(struct http_each *e, size_t at, il_op_type type, const char *id)
{
    il_op *look = &e->parts[e->n_parts];

    if (id == NULL)
        return;
    *look = (il_op){ .type = type, .tenant = e->ops[at].tenant };
    if (type == IL_OP_ONCE_GET)
        look->key = id;
    else if (type == IL_OP_RUN_GET)
        look->in.run.id = id;
    else
        look->in.job.id = id;
    e->places[e->n_parts++] = at;
}

/* The runs and jobs that op `at` names by id. An id of another kind than the op's does not exist
 * or does not belong to it: the op itself will report that. */
static void
look_for_op(struct http_each *e, size_t at)
{
    const il_op *op = &e->ops[at];

    if (op->type >= IL_OP_RUN_START && op->type <= IL_OP_RUN_LOG) {
        look_for(e, at, IL_OP_RUN_GET, op->in.run.id);
        return;
    }
    look_for(e, at, IL_OP_JOB_GET, op->in.job.id);
    if (op->type == IL_OP_JOB_PUSH)
        look_for(e, at, IL_OP_JOB_GET, op->in.job.parent);
}

/* over: something exceeds a quota; find out which ops. */
static void
look(struct http_request *r, struct http_each *e, bool over)
{
    size_t n_max = 2 * e->n; /* a push may name its parent too */

    e->n_parts = 0;
    e->parts   = http_calloc(r, n_max * sizeof *e->parts);
    e->places  = e->parts != NULL ? http_calloc(r, n_max * sizeof *e->places) : NULL;
    if (e->places == NULL)
        return;
    for (size_t i = 0; i < e->n; i++) {
        if (e->verdicts[i] == HTTP_SCOPE_BY_ID)
            look_for_op(e, i);
        if (over && e->verdicts[i] == HTTP_SCOPE_OK && e->ops[i].type == IL_OP_ONCE_BEGIN)
            look_for(e, i, IL_OP_ONCE_GET, e->ops[i].key);
    }
    if (e->n_parts > 0)
        http_submit(r, e->parts, e->n_parts, 0, looked);
    else
        apply(r);
}

/* ---- entry points ---------------------------------------------------------------------------- */

void
http_do_each(struct http_request *r, struct http_each *e, int64_t wait_ms, http_fn *then)
{
    bool over       = e->by_op && http_limits_over(r, e->ops, e->n);
    bool look_first = over;

    CHECK(r->caller != NULL);
    for (size_t i = 0; i < e->n; i++) {
        e->verdicts[i] = (unsigned char)judge(r, e, &e->ops[i]);
        look_first     = look_first || e->verdicts[i] != HTTP_SCOPE_OK;
    }
    r->each    = e;
    e->wait_ms = e->n == 1 ? wait_ms : 0;
    e->then    = then;
    if (look_first)
        look(r, e, over);
    else
        http_submit(r, e->ops, e->n, e->wait_ms, then);
}

void
http_do_ops(struct http_request *r, il_op *ops, size_t n, int64_t wait_ms, http_fn *then)
{
    struct http_each *e        = http_calloc(r, sizeof *e);
    unsigned char    *verdicts = e != NULL ? http_calloc(r, n) : NULL;

    if (verdicts == NULL)
        return;
    *e = (struct http_each){ .ops = ops, .n = n, .verdicts = verdicts, .whole = true };
    http_do_each(r, e, wait_ms, then);
}

void
http_do(struct http_request *r, http_fn *then)
{
    if (http_take_op(r))
        http_do_ops(r, &r->op, 1, http_poll_ms(r), then);
}

static void
op_done(struct http_request *r)
{
    if (r->ops->status == IL_OK)
        r->route->then(r);
    else
        http_fail_op(r, r->ops, NULL);
}

void
http_do_route(struct http_request *r)
{
    http_do(r, op_done);
}

void
http_do_own(struct http_request *r, il_op *op, int64_t wait_ms, http_fn *then)
{
    CHECK(r->caller == NULL || http_once_reserved(op)); /* clients cannot name these */
    if (r->caller != NULL)
        op->tenant = r->caller->tenant;
    http_submit(r, op, 1, wait_ms, then);
}
