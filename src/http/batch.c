/*
 * batch.c: several ops in one request: POST /batch with ops of any kind, and {"items":[…]} with ops
 * of one kind. Like il_apply(): in order, in as few commits as its budget allows.
 *
 * An op that the caller may not perform, or that exceeds a quota of its tenant, is refused in its
 * own result while the others proceed, as if each had arrived by its own route. A handle of the
 * library merges the ops of its threads into one batch, so a refused push must not fail a renewal.
 */
#include "http/handler.h"

#include "http/auth.h"
#include "http/limits.h"
#include "http/scope.h"

struct batch {
    struct http_each each;
    unsigned         flags;
};

static void
bad(struct http_request *r, const char *what, size_t i, const il_error *why)
{
    http_fail(r, il_status_http(why->status), il_status_name(why->status), "request", NULL,
              "%s[%zu]: %s", what, i, why->message);
}

static void
say_over(struct http_request *r, enum http_over which)
{
    char        text[HTTP_OVER_TEXT_BYTES];
    const char *code = http_limits_say(r, which, text);

    il__wire_open(&r->out, NULL);
    il__wire_put_text(&r->out, "status", code);
    il__wire_put_text(&r->out, "message", text);
    il__wire_close(&r->out);
}

static void
say_refused(struct http_request *r, const il_op *op, unsigned char verdict)
{
    if (verdict >= HTTP_OVER_BYTES) {
        say_over(r, (enum http_over)verdict);
        return;
    }
    http_say_refused(r, verdict, op->type);
}

static void
say_results(struct http_request *r, const struct http_each *e, unsigned flags)
{
    il__buf_adds(&r->out, "{\"results\":[");
    for (size_t i = 0; i < e->n; i++) {
        if (i > 0)
            il__buf_addc(&r->out, ',');
        if (e->verdicts[i] > HTTP_SCOPE_HIDDEN)
            say_refused(r, &e->ops[i], e->verdicts[i]);
        else
            il__wire_print_result(&r->out, &e->ops[i], flags);
    }
    il__buf_adds(&r->out, "]}");
    http_answer(r, 200);
}

void
http_say_results(struct http_request *r)
{
    say_results(r, r->state, 0);
}

static void
say_batch(struct http_request *r)
{
    const struct batch *b = r->state;

    say_results(r, &b->each, b->flags);
}

/* Allocate n ops. Callers with a prefix get half as many: an op may need two lookups. */
static bool
room(struct http_request *r, struct http_each *e, const char *what, const json_t *array)
{
    size_t n_max =
        r->caller != NULL && r->caller->prefix[0] != '\0' ? IL_BATCH_OPS_MAX / 2 : IL_BATCH_OPS_MAX;
    size_t n = json_array_size(array);

    if (!json_is_array(array)) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL, "field '%s': must be an array",
                  what);
        return false;
    }
    if (n == 0 || n > n_max) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "field '%s': must have 1 to %zu elements, not %zu", what, n_max, n);
        return false;
    }
    e->n        = n;
    e->ops      = http_calloc(r, n * sizeof *e->ops);
    e->verdicts = e->ops != NULL ? http_calloc(r, n) : NULL;
    return e->verdicts != NULL;
}

/* ---- ops of one kind ------------------------------------------------------------------------- */

struct http_each *
http_take_items(struct http_request *r)
{
    struct http_each *e     = http_calloc(r, sizeof *e);
    const json_t     *items = json_object_get(r->body, "items");
    const char       *name;
    json_t           *member;
    il_error          err = { 0 };

    if (e == NULL)
        return NULL;
    json_object_foreach(r->body, name, member)
    {
        if (strcmp(name, "items") == 0)
            continue;
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "unknown field '%s'; only 'items' is allowed", name);
        return NULL;
    }
    if (!http_take_query(r, NULL) || !room(r, e, "items", items))
        return NULL;
    for (size_t i = 0; i < e->n; i++) {
        il__wire_op_init(&e->ops[i], r->route->op);
        http_take_path(r, &e->ops[i]);
        if (il__wire_parse(r->route->body, NULL, json_array_get(items, i), &e->ops[i], &r->mem,
                           &err) != IL_OK) {
            bad(r, "items", i, &err);
            return NULL;
        }
        if (!http_complete(r, &e->ops[i], i))
            return NULL;
    }
    return e;
}

/* ---- ops of any kind ------------------------------------------------------------------------- */

static bool
take_ops(struct http_request *r, struct http_each *e, const json_t *ops)
{
    il_error err = { 0 };

    for (size_t i = 0; i < e->n; i++) {
        if (il__wire_parse_op(json_array_get(ops, i), &e->ops[i], &r->mem, &err) != IL_OK) {
            bad(r, "ops", i, &err);
            return false;
        }
    }
    return true;
}

/* wait_ms of the batch keeps the request open; wait_ms of its only op says how long that op
 * stays queued. */
static int64_t
poll_ms(const struct http_batch_in *in)
{
    return in->wait_ms < 0 || in->wait_ms > HTTP_WAIT_MS_MAX ? HTTP_WAIT_MS_MAX : in->wait_ms;
}

void
http_batch(struct http_request *r)
{
    struct batch        *b   = http_calloc(r, sizeof *b);
    const json_t        *ops = json_object_get(r->body, "ops");
    struct http_batch_in in  = { 0 };
    il_error             err = { 0 };

    if (b == NULL)
        return;
    if (!json_is_object(r->body)) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "the body must be an object with 'ops'");
        return;
    }
    if (il__wire_parse(&http_in_batch, &http_in_batch_ops, r->body, &in, &r->mem, &err) != IL_OK) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL, "%s", err.message);
        return;
    }
    if (!room(r, &b->each, "ops", ops) || !take_ops(r, &b->each, ops))
        return;
    if (in.wait_ms != 0 && b->each.n > 1) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "field 'wait_ms': only a batch of one op can wait");
        return;
    }
    b->flags         = in.raw != 0 ? WIRE_RAW : 0;
    b->each.by_route = true;
#ifndef IL_MUTANT_quota_refuses_batch
    b->each.by_op = true;
#endif
    r->state = b;
    http_do_each(r, &b->each, poll_ms(&in), say_batch);
}
