/*
 * one.c: from an op that was taken to its answer: what most routes share.
 */
#include "http/one.h"

#include "base/clock.h"
#include "http/scope.h"

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
    il__wire_print_page(&r->out, o, items, item_bytes, n, next, 0);
    http_answer(r, 200);
}

int64_t
http_poll_ms(const struct http_request *r)
{
    int64_t ms = r->wait_ms;

    /* A start's own wait is how long it queues, which others may do for it: it does not keep the request open. */
    if (ms == 0 && r->op.type != IL_OP_RUN_START)
        ms = il__wire_wait_ms(&r->op);
    return ms < 0 || ms > HTTP_WAIT_MS_MAX ? HTTP_WAIT_MS_MAX : ms;
}

int64_t
http_at_ms(int64_t remaining_ms)
{
    return remaining_ms >= 0 ? il__clock_wall_ms() + remaining_ms : 0;
}

bool
http_complete(struct http_request *r, il_op *op, size_t i)
{
    const char **id  = NULL;
    il_error     err = { 0 };

    if (op->type == IL_OP_JOB_PUSH)
        id = &op->in.job.id;
    else if (op->type == IL_OP_RUN_START)
        id = &op->in.run.id;
    if (id != NULL && *id == NULL && (*id = http_new_id(r, i)) == NULL)
        return false;
    if (il__wire_op_complete(op, &r->mem, &err) == IL_OK)
        return true;
    http_fail(r, il_status_http(err.status), il_status_name(err.status), "request", NULL, "%s",
              err.message);
    return false;
}

void
http_do_taken(struct http_request *r, http_fn *then)
{
    if (http_complete(r, &r->op, 0))
        http_go(r, http_poll_ms(r), then);
}

void
http_do(struct http_request *r, http_fn *then)
{
    if (http_take_op(r))
        http_do_taken(r, then);
}

/* ---- keys with a prefix -------------------------------------------------------------------------------------------------------- */

/* What is hidden looks like what is not there. */
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
        op->status = IL_OK;
        break;
    default:
        op->status = IL_NOT_FOUND;
        break;
    }
}

static void
many_applied(struct http_request *r)
{
    struct http_many *m = r->state;

    for (size_t i = 0; i < m->n_parts; i++) {
        m->ops[m->places[i]] = m->parts[i];
        m->parts[i].mem      = NULL; /* moved */
    }
    r->ops   = m->ops;
    r->n_ops = m->n;
    r->state = m->state;
    m->then(r);
}

/* Apply those that are allowed. Nothing is left to do when there are none. */
static void
many_apply(struct http_request *r, struct http_many *m)
{
    m->n_parts = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (m->verdicts[i] == HTTP_SCOPE_HIDDEN)
            hide(&m->ops[i]);
        if (m->verdicts[i] != HTTP_SCOPE_OK)
            continue;
        m->places[m->n_parts]  = i;
        m->parts[m->n_parts++] = m->ops[i];
    }
    r->ops   = m->parts;
    r->n_ops = m->n_parts;
    if (m->n_parts > 0)
        http_apply(r, m->n == 1 ? m->wait_ms : 0, many_applied);
    else
        many_applied(r);
}

/* Whose the run or job is that an op names. */
static const char *
owner_of(const il_op *look)
{
    if (look->status != IL_OK)
        return NULL;
    if (look->type == IL_OP_RUN_GET)
        return look->out.n_runs > 0 ? look->out.runs[0].key : NULL;
    return look->out.n_jobs > 0 ? look->out.jobs[0].queue : NULL;
}

/* A push or a start with a new id names nothing yet. */
static bool
may_be_new(const il_op *op, const il_op *look)
{
    return look->status == IL_NOT_FOUND &&
           ((op->type == IL_OP_JOB_PUSH && look->in.job.id == op->in.job.id) ||
            op->type == IL_OP_RUN_START);
}

static void
many_looked(struct http_request *r)
{
    struct http_many *m = r->state;

    for (size_t i = 0; i < m->n_parts; i++) {
        const il_op *look = &m->parts[i];
        size_t       at   = m->places[i];
        if (!may_be_new(&m->ops[at], look) && !http_scope_has(r->caller, owner_of(look)) &&
            m->verdicts[at] == HTTP_SCOPE_OK)
            m->verdicts[at] = HTTP_SCOPE_HIDDEN;
        il_op_release(&m->parts[i]);
    }
    many_apply(r, m);
}

static void
look_for(struct http_many *m, size_t at, il_op_type type, const char *id)
{
    il_op *look = &m->parts[m->n_parts];

    if (id == NULL)
        return;
    *look = (il_op){ .type = type };
    if (type == IL_OP_RUN_GET)
        look->in.run.id = id;
    else
        look->in.job.id = id;
    m->places[m->n_parts++] = at;
}

/* The runs and jobs that op `at` names by their ids. */
static void
look_for_op(struct http_many *m, size_t at)
{
    const il_op *op = &m->ops[at];

    if (op->type >= IL_OP_RUN_START && op->type <= IL_OP_RUN_LOG) {
        look_for(m, at, IL_OP_RUN_GET, op->in.run.id);
        return;
    }
    look_for(m, at, IL_OP_JOB_GET, op->in.job.id);
    if (op->type == IL_OP_JOB_PUSH)
        look_for(m, at, IL_OP_JOB_GET, op->in.job.parent);
}

static bool
nothing_refused(const struct http_request *r, const struct http_many *m)
{
    for (size_t i = 0; i < m->n; i++) {
        if (m->verdicts[i] != HTTP_SCOPE_OK)
            return false;
    }
    return r->caller == NULL || r->caller->prefix[0] == '\0';
}

void
http_many(struct http_request *r, struct http_many *m, int64_t wait_ms, http_fn *then)
{
    size_t n_max = 2 * m->n; /* a push may name its parent too */

    if (nothing_refused(r, m)) {
        r->ops   = m->ops;
        r->n_ops = m->n;
        http_apply(r, m->n == 1 ? wait_ms : 0, then);
        return;
    }
    m->wait_ms = wait_ms;
    m->then    = then;
    m->state   = r->state;
    m->n_parts = 0;
    m->parts   = http_alloc(r, n_max * sizeof *m->parts);
    m->places  = http_alloc(r, n_max * sizeof *m->places);
    if (m->parts == NULL || m->places == NULL) {
        http_fail_nomem(r);
        return;
    }
    for (size_t i = 0; i < m->n; i++) {
        if (m->verdicts[i] != HTTP_SCOPE_OK)
            continue;
        enum http_scope verdict = http_scope(r->caller, &m->ops[i]);
        if (verdict == HTTP_SCOPE_BY_ID)
            look_for_op(m, i);
        else
            m->verdicts[i] = (unsigned char)verdict;
    }
    r->state = m;
    if (m->n_parts == 0) {
        many_apply(r, m);
        return;
    }
    /* Ids of another kind than the op's are not there, or not its: the op itself says so. */
    r->ops   = m->parts;
    r->n_ops = m->n_parts;
    http_submit(r, 0, many_looked);
}

struct go {
    struct http_many m;
    http_fn         *then;
    void            *state;
};

static void
gone(struct http_request *r)
{
    struct go *go = r->state;

    r->state = go->state;
    for (size_t i = 0; i < go->m.n; i++) {
        if (go->m.verdicts[i] == HTTP_SCOPE_FORBIDDEN) {
            http_scope_refuse(r, HTTP_SCOPE_FORBIDDEN);
            return;
        }
    }
    go->then(r);
}

void
http_go(struct http_request *r, int64_t wait_ms, http_fn *then)
{
    if (r->ops == NULL || r->n_ops == 0) {
        r->ops   = &r->op;
        r->n_ops = 1;
    }
    if (r->caller == NULL || r->caller->prefix[0] == '\0') {
        http_apply(r, wait_ms, then);
        return;
    }
    struct go     *go       = http_alloc(r, sizeof *go);
    unsigned char *verdicts = http_alloc(r, r->n_ops);
    if (go == NULL || verdicts == NULL) {
        http_fail_nomem(r);
        return;
    }
    memset(verdicts, HTTP_SCOPE_OK, r->n_ops);
    *go      = (struct go){ .m     = { .ops = r->ops, .n = r->n_ops, .verdicts = verdicts },
                            .then  = then,
                            .state = r->state };
    r->state = go;
    http_many(r, &go->m, wait_ms, gone);
}
