/*
 * batch.c: several ops in one request: POST /batch with all sorts, and {"items":[…]} of one sort. One commit; the results in order.
 *
 * An op that the caller may not do is refused in its own result, and the others go on: as if each had come by its own route.
 */
#include "http/one.h"

#include "http/auth.h"
#include "http/scope.h"

/* Why an op of a batch was not applied; beside enum http_scope. */
enum {
    VERDICT_NO_PERMISSION = HTTP_SCOPE_BY_ID + 1
};

struct batch {
    struct http_many m; /* first */
    unsigned         flags;
};

static void
bad(struct http_request *r, const char *what, size_t i, const il_error *why)
{
    http_fail(r, il_status_http(why->status), il_status_name(why->status), "request", NULL,
              "%s[%zu]: %s", what, i, why->message);
}

static void
say_refused(struct http_request *r, const il_op *op, unsigned char verdict)
{
    il__wire_open(&r->out, NULL);
    il__wire_put_text(&r->out, "status", "FORBIDDEN");
    if (verdict == VERDICT_NO_PERMISSION) {
        const struct http_route *route = il__http_route_of_op(op->type);
        char                     name[HTTP_PERMISSION_BYTES], text[160];
        http_note_forbidden(r, route);
        http_permission_of(route, name);
        (void)snprintf(text, sizeof text, "the key lacks the role '%s', or the permission '%s'",
                       http_permission_name(route->permission), name);
        il__wire_put_text(&r->out, "message", text);
    } else {
        il__wire_put_text(&r->out, "message",
                          "this key may not change what does not begin with its prefix");
    }
    il__wire_close(&r->out);
}

static void
say_results(struct http_request *r, const struct http_many *m, unsigned flags)
{
    il__buf_adds(&r->out, "{\"results\":[");
    for (size_t i = 0; i < m->n; i++) {
        if (i > 0)
            il__buf_addc(&r->out, ',');
        if (m->verdicts[i] > HTTP_SCOPE_HIDDEN)
            say_refused(r, &m->ops[i], m->verdicts[i]);
        else
            il__wire_print_result(&r->out, &m->ops[i], flags);
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

    say_results(r, &b->m, b->flags);
}

/* Room for n ops. Those whose key has a prefix are looked up two at a time. */
static bool
room(struct http_request *r, struct http_many *m, const char *what, const json_t *array)
{
    size_t n_max =
        r->caller != NULL && r->caller->prefix[0] != '\0' ? IL_BATCH_OPS_MAX / 2 : IL_BATCH_OPS_MAX;
    size_t n = json_array_size(array);

    if (!json_is_array(array)) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "field '%s': an array is expected", what);
        return false;
    }
    if (n == 0 || n > n_max) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "field '%s': it has %zu elements, 1 to %zu are possible", what, n, n_max);
        return false;
    }
    m->n        = n;
    m->ops      = http_alloc(r, n * sizeof *m->ops);
    m->verdicts = http_alloc(r, n);
    if (m->ops == NULL || m->verdicts == NULL) {
        http_fail_nomem(r);
        return false;
    }
    memset(m->ops, 0, n * sizeof *m->ops);
    memset(m->verdicts, HTTP_SCOPE_OK, n);
    return true;
}

/* ---- of one sort --------------------------------------------------------------------------------------------------------------- */

struct http_many *
http_take_items(struct http_request *r)
{
    struct http_many *m     = http_alloc(r, sizeof *m);
    const json_t     *items = json_object_get(r->body, "items");
    const char       *name;
    json_t           *member;
    il_error          err = { 0 };

    if (m == NULL) {
        http_fail_nomem(r);
        return NULL;
    }
    *m = (struct http_many){ 0 };
    json_object_foreach(r->body, name, member)
    {
        if (strcmp(name, "items") == 0)
            continue;
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "unknown field '%s': beside 'items' there is none", name);
        return NULL;
    }
    if (!http_take_query(r, NULL) || !room(r, m, "items", items))
        return NULL;
    for (size_t i = 0; i < m->n; i++) {
        il__wire_op_init(&m->ops[i], r->route->op);
        il__http_take_path(r, &m->ops[i]);
        if (il__wire_parse(r->route->body, NULL, json_array_get(items, i), &m->ops[i], &r->mem,
                           &err) != IL_OK) {
            bad(r, "items", i, &err);
            return NULL;
        }
        if (!http_complete(r, &m->ops[i], i))
            return NULL;
    }
    return m;
}

/* ---- of all sorts --------------------------------------------------------------------------------------------------------------- */

static bool
take_ops(struct http_request *r, struct http_many *m, const json_t *ops)
{
    il_error err = { 0 };

    for (size_t i = 0; i < m->n; i++) {
        if (il__wire_parse_op(json_array_get(ops, i), &m->ops[i], &r->mem, &err) != IL_OK) {
            bad(r, "ops", i, &err);
            return false;
        }
#ifndef IL_MUTANT_batch_without_permission
        if (!http_may(r->caller, il__http_route_of_op(m->ops[i].type)))
            m->verdicts[i] = VERDICT_NO_PERMISSION;
#endif
    }
    return true;
}

/* wait_ms of the batch keeps the request open; that of its only op says how long it stays in its queue. */
static int64_t
poll_ms(const struct http_batch_in *in)
{
    return in->wait_ms < 0 || in->wait_ms > HTTP_WAIT_MS_MAX ? HTTP_WAIT_MS_MAX : in->wait_ms;
}

void
http_batch(struct http_request *r)
{
    struct batch        *b   = http_alloc(r, sizeof *b);
    const json_t        *ops = json_object_get(r->body, "ops");
    struct http_batch_in in  = { 0 };
    il_error             err = { 0 };

    if (b == NULL) {
        http_fail_nomem(r);
        return;
    }
    *b = (struct batch){ 0 };
    if (!json_is_object(r->body)) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "the body must be an object with 'ops'");
        return;
    }
    if (il__wire_parse(&http_in_batch, &http_in_batch_ops, r->body, &in, &r->mem, &err) != IL_OK) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL, "%s", err.message);
        return;
    }
    if (!room(r, &b->m, "ops", ops) || !take_ops(r, &b->m, ops))
        return;
    if (in.wait_ms != 0 && b->m.n > 1) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "field 'wait_ms': only a batch of one op can wait");
        return;
    }
    b->flags = in.raw != 0 ? WIRE_RAW : 0;
    r->state = b;
    http_many(r, &b->m, poll_ms(&in), say_batch);
}
