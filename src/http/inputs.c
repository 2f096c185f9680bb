/*
 * inputs.c: parses path, query and body of a request by the tables of its route. Errors name the
 * offending field.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "http/bucket.h"
#include "http/handler.h"
#include "http/server.h"

static bool
refuse(struct http_request *r, const il_error *err)
{
    if (err->status == IL_NOMEM)
        http_fail_nomem(r);
    else
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL, "%s", err->message);
    return false;
}

bool
http_query_next(char **at, char **ret_name, char **ret_value)
{
    char *name = *at;

    while (*name == '&')
        name++;
    *ret_name = *name != '\0' ? name : NULL;
    if (*name == '\0')
        return true;
    char *end = name + strcspn(name, "&");
    *at       = *end != '\0' ? end + 1 : end;
    *end      = '\0';

    char *value = strchr(name, '=');
    if (value != NULL)
        *value++ = '\0';
    *ret_value = value != NULL ? value : end;
    return http_decode(name, true) && (value == NULL || http_decode(value, true));
}

/* ?wait=30s: how long the request may be kept open. */
static il_status
take_wait(struct http_request *r, const char *text, il_error *reterr)
{
    int64_t ms;

    if (r->wait_ms != 0)
        return il__error_set(reterr, IL_INVAL, "field 'wait': given twice");
    il_status st = il_parse_duration(text, &ms, reterr);
    if (st != IL_OK)
        return st;
    r->wait_ms = ms < 0 || ms > HTTP_WAIT_MS_MAX ? HTTP_WAIT_MS_MAX : ms;
    return IL_OK;
}

static const struct wire_object no_query = { .name = "Nothing" };

static il_status
take_pair(struct http_request *r, const struct wire_object *table, const char *name,
          const char *value, void *into, il_error *reterr)
{
    if ((r->route->flags & (HTTP_WAITS | HTTP_CREATES)) != 0 && strcmp(name, "wait") == 0)
        return take_wait(r, value, reterr);
    return il__wire_parse_text(table, name, value, into, &r->mem, reterr);
}

/* Reject duplicate names: proxies and servers disagree on which one counts. */
static bool
is_new(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return false;
    return true;
}

static il_status
take_pairs(struct http_request *r, const struct wire_object *table, void *into, il_error *reterr)
{
    /* at most the fields of the table, and 'wait': any others are refused */
    const char *names[WIRE_FIELDS_MAX + 1];
    size_t      n_names = 0;
    char       *at      = il__arena_strdup(&r->mem, r->query);
    char       *name;
    char       *value;

    if (at == NULL)
        return il__error_nomem(reterr);
    for (;;) {
        if (!http_query_next(&at, &name, &value))
            return il__error_set(reterr, IL_INVAL,
                                 "the query string contains an invalid escape or a control "
                                 "character, or is not UTF-8");
        if (name == NULL)
            return IL_OK;
        if (!is_new(names, n_names, name))
            return il__error_set(reterr, IL_INVAL, "field '%.40s': given twice", name);
        il_status st = take_pair(r, table, name, value, into, reterr);
        if (st != IL_OK)
            return st;
        CHECK(n_names < ARRAY_LEN(names));
        names[n_names++] = name;
    }
}

bool
http_take_query(struct http_request *r, void *into)
{
    const struct wire_object *table = r->route->query != NULL ? r->route->query : &no_query;
    il_error                  err   = { 0 };

    if (r->query != NULL && take_pairs(r, table, into, &err) != IL_OK)
        return refuse(r, &err);
    if (il__wire_complete(table, into, &err) != IL_OK)
        return refuse(r, &err);
    return true;
}

/* An empty body counts as an empty object, so that the error names the missing field. */
static json_t *
body_of(struct http_request *r)
{
    if (r->body == NULL)
        r->body = json_object();
    return r->body;
}

bool
http_take_body(struct http_request *r, void *into)
{
    il_error err  = { 0 };
    json_t  *body = body_of(r);

    CHECK(r->route->body != NULL);
    if (body == NULL) {
        http_fail_nomem(r);
        return false;
    }
    if (il__wire_parse(r->route->body, NULL, body, into, &r->mem, &err) != IL_OK)
        return refuse(r, &err);
    return true;
}

/* Where {name} of a path goes in an op. */
static const char **
place_of(il_op *op, const char *name, size_t n_bytes)
{
    if (n_bytes == 1 && name[0] == 'q')
        return &op->key;
    if (n_bytes == 4 && memcmp(name, "name", 4) == 0)
        return &op->in.cron.name;
    CHECK(n_bytes == 2 && memcmp(name, "id", 2) == 0);
    return op->type >= IL_OP_RUN_START && op->type <= IL_OP_RUN_LOG ? &op->in.run.id
                                                                    : &op->in.job.id;
}

void
http_take_path(struct http_request *r, il_op *op)
{
    for (size_t i = 0; i < HTTP_PATH_ARGS_MAX; i++) {
        size_t      n_bytes;
        const char *name = http_route_arg(r->route->path, i, &n_bytes);
        if (name == NULL)
            return;
        *place_of(op, name, n_bytes) = r->args[i];
    }
}

int64_t
http_poll_ms(const struct http_request *r)
{
    int64_t ms = r->wait_ms;

    /* The wait of a start says how long the run stays queued, possibly for others to start it:
     * it does not keep the request open. */
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

bool
http_take_op(struct http_request *r)
{
    CHECK(r->route->op != IL_OP_NONE);
    il__wire_op_init(&r->op, r->route->op);
    http_take_path(r, &r->op);
    if (!http_take_query(r, &r->op))
        return false;
    return (r->route->body == NULL || http_take_body(r, &r->op)) && http_complete(r, &r->op, 0);
}

/* Refuse arguments that a route does not take; a misspelt or misplaced one would be ignored
 * silently. */
static bool
superfluous(struct http_request *r)
{
    const struct http_route *route = r->route;

    if (route->query == NULL && !http_take_query(r, NULL))
        return true;
    if (route->body != NULL || r->body == NULL ||
        (json_is_object(r->body) && json_object_size(r->body) == 0))
        return false;
    http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL, "this call takes no body");
    return true;
}

void
http_handle(struct http_request *r)
{
    if (r->route->bucket == NULL || http_bucket_take(r))
        http_app_ensure(r, r->route->fn);
}

void
http_run(struct http_request *r)
{
    if (superfluous(r))
        return;
    if (r->idempotency_key != NULL && (r->route->flags & (HTTP_CREATES | HTTP_ONCE)) != 0) {
        http_once_begin(r);
        return;
    }
    if (r->idempotency_key != NULL && strcmp(r->route->id, "batch") == 0) {
        http_fail(r, 400, il_status_name(IL_INVAL), "idempotency", NULL,
                  "Idempotency-Key is not supported for batches; give each op its own id to make "
                  "the batch repeatable");
        return;
    }
    r->wait_ms = 0; /* the handler parses the query again */
    http_handle(r);
}
