/*
 * openapi.c: generates /openapi.json (OpenAPI 3.1) from routes.def and the tables of request and
 * response bodies. Everything said about a route here comes from its row; a test checks the answers
 * of every route against the result.
 */
#include <ctype.h>
#include <stdio.h>

#include "http/admin.h"
#include "http/app.h"
#include "http/auth.h"
#include "http/bucket.h"
#include "http/handler.h"
#include "http/ui.h"
#include "wire/json.h"

#define NAME_BYTES 80
#define REF "#/components/schemas/"

/* ---- schemas --------------------------------------------------------------------------------- */

static json_t *
ref_to(const char *name)
{
    return json_pack("{s:s+}", "$ref", REF, name);
}

/* The schema of an object and of the objects in it, each once. */
static void
add_schema(struct json_maker *m, const struct wire_object *o)
{
    if (json_object_get(m->schemas, o->name) != NULL)
        return;
    il__json_set(m, m->schemas, o->name, il__wire_schema(o, WIRE_IN_JSON));
    for (size_t i = 0; i < o->n_fields; i++) {
        if (o->fields[i].object != NULL)
            add_schema(m, o->fields[i].object);
    }
}

static json_t *
schema_of(struct json_maker *m, const struct wire_object *o)
{
    add_schema(m, o);
    return ref_to(o->name);
}

/* "lock_acquire" as "LockAcquire". */
static const char *
camel(const char *id, const char *suffix, char out[NAME_BYTES])
{
    size_t n     = 0;
    bool   upper = true;

    for (; *id != '\0' && n + 1 < NAME_BYTES; id++) {
        if (*id == '_') {
            upper = true;
            continue;
        }
        out[n++] = (char)(upper ? toupper((unsigned char)*id) : *id);
        upper    = false;
    }
    (void)snprintf(out + n, NAME_BYTES - n, "%s", suffix);
    return out;
}

/* The name under which a path argument appears in a body. */
static const char *
field_of_arg(const char *arg, size_t n_bytes, char out[NAME_BYTES])
{
    (void)snprintf(out, NAME_BYTES, "%.*s", (int)n_bytes,
                   n_bytes == 1 && arg[0] == 'q' ? "queue" : arg);
    if (n_bytes == 1 && arg[0] == 'q')
        (void)snprintf(out, NAME_BYTES, "queue");
    return out;
}

/* The inputs of an op, except those in the path. */
static json_t *
inputs_of(struct json_maker *m, const struct http_route *route, const struct wire_object *o,
          enum wire_use use)
{
    json_t     *s = il__wire_schema(o, use);
    size_t      n_bytes;
    const char *arg;

    for (size_t i = 0; (arg = http_route_arg(route->path, i, &n_bytes)) != NULL; i++) {
        char    field[NAME_BYTES];
        json_t *required = json_object_get(s, "required");
        (void)field_of_arg(arg, n_bytes, field);
        /* admin routes have no such field */
        (void)json_object_del(json_object_get(s, "properties"), field);
        for (size_t k = json_array_size(required); k-- > 0;) {
            if (strcmp(json_string_value(json_array_get(required, k)), field) == 0)
                (void)json_array_remove(required, k);
        }
        if (required != NULL && json_array_size(required) == 0)
            (void)json_object_del(s, "required");
    }
    for (size_t i = 0; i < o->n_fields; i++) {
        if (o->fields[i].object != NULL)
            add_schema(m, o->fields[i].object);
    }
    return s;
}

static json_t *
array_of(const char *name, json_t *item)
{
    return json_pack("{s:s, s:[s], s:{s:{s:s, s:o}}, s:b}", "type", "object", "required", name,
                     "properties", name, "type", "array", "items", item, "additionalProperties", 0);
}

static json_t *
page_of(json_t *item)
{
    return json_pack("{s:s, s:[s,s], s:{s:{s:s, s:o}, s:{s:[s,s], s:s}}, s:b}", "type", "object",
                     "required", "items", "next", "properties", "items", "type", "array", "items",
                     item, "next", "type", "string", "null", "description",
                     "cursor of the next page; null on the last page", "additionalProperties", 0);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* An op: its inputs, and its name. */
static void
add_op(struct json_maker *m, json_t *ops, il_op_type type)
{
    const char *wire = il_op_name(type);
    json_t     *op   = il__wire_schema(&il__wire_inputs[type], WIRE_IN_JSON);
    char        name[NAME_BYTES];

    if (json_object_get(op, "required") == NULL)
        il__json_set(m, op, "required", json_array());
    il__json_set(m, json_object_get(op, "properties"), "op", json_pack("{s:s}", "const", wire));
    il__json_append(m, json_object_get(op, "required"), json_string("op"));
    il__json_set(m, m->schemas, camel(wire, "Op", name), op);
    il__json_append(m, ops, ref_to(name));
}

/* The outcome of one of several; missing fields are omitted. */
static void
add_status(struct json_maker *m, json_t *result)
{
    json_t *properties = json_object_get(result, "properties");

    il__json_set(m, result, "required", json_pack("[s]", "status"));
    il__json_set(m, properties, "status",
                 json_pack("{s:s, s:s}", "type", "string", "description",
                           "name of a status, such as OK or LOCK_HELD; or FORBIDDEN, KEY_RESERVED, "
                           "QUOTA_EXCEEDED, STORAGE_QUOTA_EXCEEDED if the op was refused"));
    il__json_set(m, properties, "message",
                 json_pack("{s:s, s:s}", "type", "string", "description", "why the op failed"));
}

/* A result: the outputs of the op, and a status. */
static void
add_result(struct json_maker *m, json_t *results, const char *wire, const struct wire_object *told)
{
    json_t *result     = il__wire_schema(told, WIRE_IN_JSON);
    json_t *properties = json_object_get(result, "properties");
    char    name[NAME_BYTES];

    add_status(m, result);
    il__json_set(m, properties, "detail", json_pack("{s:[s,s]}", "type", "string", "null"));
    il__json_set(m, properties, "holder",
                 json_pack("{s:s, s:s}", "type", "string", "description",
                           "acquire, cache_lookup: the given or generated holder"));
    for (size_t i = 0; i < told->n_fields; i++) {
        if (told->fields[i].object != NULL)
            add_schema(m, told->fields[i].object);
    }
    il__json_set(m, m->schemas, camel(wire, "Result", name), result);
    il__json_append(m, results, ref_to(name));
}

static void
add_batch(struct json_maker *m)
{
    json_t *ops     = json_array();
    json_t *results = json_array();

    for (int type = IL_OP_NONE + 1; type < IL_OP_COUNT; type++) {
        add_op(m, ops, (il_op_type)type);
        add_result(m, results, il_op_name((il_op_type)type), il__wire_result((il_op_type)type, 0));
    }
    add_result(m, results, "list_waiters", il__wire_result(IL_OP_LIST, IL_LIST_WAITERS));
    il__json_set(m, m->schemas, "Op", json_pack("{s:o}", "oneOf", ops));
    il__json_set(m, m->schemas, "Result", json_pack("{s:o}", "anyOf", results));
    il__json_set(m, m->schemas, http_out_results.name, array_of("results", ref_to("Result")));

    json_t *batch = il__wire_schema(&http_in_batch, WIRE_IN_JSON);
    il__json_set(m, json_object_get(batch, "properties"), "ops",
                 json_pack("{s:s, s:o, s:i, s:i}", "type", "array", "items", ref_to("Op"),
                           "minItems", 1, "maxItems", IL_BATCH_OPS_MAX));
    il__json_set(m, batch, "required", json_pack("[s]", "ops"));
    il__json_set(m, m->schemas, http_in_batch.name, batch);
}

/* ---- requests -------------------------------------------------------------------------------- */

static json_t *
parameter(const char *name, const char *in, bool required, json_t *schema, const char *help)
{
    return json_pack("{s:s, s:s, s:b, s:o, s:s}", "name", name, "in", in, "required", (int)required,
                     "schema", schema, "description", help);
}

static void
add_query(struct json_maker *m, json_t *parameters, const struct http_route *route)
{
    json_t     *s = inputs_of(m, route, route->query, WIRE_IN_QUERY);
    const char *name;
    json_t     *property;

    json_object_foreach(json_object_get(s, "properties"), name, property)
    {
        const char *help     = json_string_value(json_object_get(property, "description"));
        bool        required = false;
        size_t      i;
        json_t     *one;
        json_array_foreach(json_object_get(s, "required"), i, one)
        {
            required = required || strcmp(json_string_value(one), name) == 0;
        }
        il__json_append(
            m, parameters,
            parameter(name, "query", required, json_deep_copy(property), help != NULL ? help : ""));
    }
    json_decref(s);
}

static json_t *
parameters_of(struct json_maker *m, const struct http_route *route)
{
    json_t     *parameters = json_array();
    size_t      n_bytes;
    const char *arg;

    for (size_t i = 0; (arg = http_route_arg(route->path, i, &n_bytes)) != NULL; i++) {
        char name[NAME_BYTES];
        (void)snprintf(name, sizeof name, "%.*s", (int)n_bytes, arg);
        il__json_append(m, parameters,
                        parameter(name, "path", true,
                                  json_pack("{s:s, s:i}", "type", "string", "minLength", 1),
                                  "percent-encoded; without '/'"));
    }
    if (route->query != NULL)
        add_query(m, parameters, route);
    if ((route->flags & (HTTP_WAITS | HTTP_CREATES)) != 0)
        il__json_append(m, parameters, json_pack("{s:s}", "$ref", "#/components/parameters/wait"));
    if ((route->flags & (HTTP_CREATES | HTTP_ONCE)) != 0)
        il__json_append(m, parameters,
                        json_pack("{s:s}", "$ref", "#/components/parameters/IdempotencyKey"));
    if ((route->flags & HTTP_UI_CALL) != 0)
        il__json_append(m, parameters, json_pack("{s:s}", "$ref", "#/components/parameters/Page"));
    il__json_append(m, parameters, json_pack("{s:s}", "$ref", "#/components/parameters/RequestId"));
    return parameters;
}

static json_t *
example_of(const struct http_route *route)
{
    static const struct {
        const char *id, *json;
    } examples[] = {
#define X(id, json) { #id, json },
#include "http/examples.def"
#undef X
    };

    if (route->example != NULL)
        return json_loads(route->example, 0, NULL);
    for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
        if (strcmp(examples[i].id, route->id) == 0)
            return json_loads(examples[i].json, 0, NULL);
    }
    return NULL;
}

static json_t *
body_of(struct json_maker *m, const struct http_route *route)
{
    char    name[NAME_BYTES];
    json_t *schema = NULL;

    if (route->body == &http_in_batch) {
        schema = ref_to(http_in_batch.name);
    } else {
        (void)camel(route->id, "Body", name);
        json_t *inputs = inputs_of(m, route, route->body, WIRE_IN_JSON);
        if ((route->flags & HTTP_OPEN_BODY) != 0)
            il__json_set(m, inputs, "additionalProperties",
                         json_pack("{s:[s,s,s]}", "type", "string", "number", "boolean"));
        il__json_set(m, m->schemas, name, inputs);
        schema = ref_to(name);
    }
    if ((route->flags & HTTP_ITEMS) != 0) {
        json_t *several = array_of("items", json_incref(schema));
        schema          = (route->flags & HTTP_CREATES) != 0
                              ? json_pack("{s:[o,o]}", "anyOf", schema, several)
                              : (json_decref(schema), several);
    }
    json_t *content = json_pack("{s:o}", "schema", schema);
    json_t *example = example_of(route);
    if (example != NULL)
        il__json_set(m, content, "example", example);
    return json_pack("{s:b, s:{s:o}}", "required",
                     json_object_get(json_object_get(m->schemas, name), "required") != NULL,
                     "content", "application/json", content);
}

/* ---- answers --------------------------------------------------------------------------------- */

static json_t *
response(const char *text, const char *type, json_t *schema)
{
    if (schema == NULL)
        return json_pack("{s:s}", "description", text);
    return json_pack("{s:s, s:{s:{s:o}}}", "description", text, "content", type, "schema", schema);
}

static json_t *
answer_of(struct json_maker *m, const struct http_route *route)
{
    if (route->answer == NULL)
        return json_pack("{s:s}", "type", "object");
    if (route->answer == &http_out_results)
        return ref_to(http_out_results.name);
    json_t *one = schema_of(m, route->answer);
    if (route->op == IL_OP_LIST)
        one = json_pack("{s:[o,o]}", "anyOf", one, schema_of(m, &il__wire_waiter));
    if ((route->flags & HTTP_PAGE) != 0)
        return page_of(one);
    if ((route->flags & HTTP_ITEMS) != 0) {
        json_t *item = il__wire_schema(
            route->answer,
            WIRE_IN_JSON); /* plus the outcome; an object that was not created has only that */
        add_status(m, item);
        return json_pack("{s:[o,o]}", "anyOf", one, array_of("items", item));
    }
    return one;
}

static json_t *
responses_of(struct json_maker *m, const struct http_route *route)
{
    json_t *responses = json_object();

    if ((route->flags & HTTP_LOOSE) != 0) {
        il__json_set(m, responses, "200",
                     response("the metrics", "text/plain", json_pack("{s:s}", "type", "string")));
    } else if ((route->flags & HTTP_STREAMS) != 0) {
        il__json_set(
            m, responses, "200",
            response("events: lock, run, queue, job, cache with data {type, name, tenant, what, "
                     "id}; gap: events may have been missed",
                     "text/event-stream", json_pack("{s:s}", "type", "string")));
    } else if ((route->flags & HTTP_ACCEPTS) != 0) {
        il__json_set(
            m, responses, "202",
            response("started in the background", "application/json", answer_of(m, route)));
    } else {
        if ((route->flags & HTTP_CREATES) != 0)
            il__json_set(m, responses, "201",
                         response("created", "application/json", answer_of(m, route)));
        il__json_set(m, responses, "200",
                     response((route->flags & HTTP_CREATES) != 0 ? "it already existed" : "success",
                              "application/json", answer_of(m, route)));
    }
    if ((route->flags & HTTP_CSV) != 0)
        il__json_set(m, json_object_get(json_object_get(responses, "200"), "content"), "text/csv",
                     json_pack("{s:{s:s}}", "schema", "type", "string"));
    if (route->op == IL_OP_ACQUIRE)
        il__json_set(m, responses, "202",
                     response("still queued: repeat the call", "application/json",
                              schema_of(m, &http_out_queued)));
    if (route->op == IL_OP_CACHE_LOOKUP || route->op == IL_OP_CACHE_GET)
        il__json_set(m, responses, "202",
                     response("the caller must build the value, or repeat the call to keep waiting",
                              "application/json", answer_of(m, route)));
    if (route->permission.role != HTTP_MAY_open) {
        il__json_set(m, responses, "401",
                     json_pack("{s:s}", "$ref", "#/components/responses/Error"));
        il__json_set(m, responses, "403",
                     json_pack("{s:s}", "$ref", "#/components/responses/Error"));
    }
    il__json_set(m, responses, "default",
                 json_pack("{s:s}", "$ref", "#/components/responses/Error"));
    return responses;
}

/* ---- the document ---------------------------------------------------------------------------- */

static json_t *
operation(struct json_maker *m, const struct http_route *route)
{
    char    tag[NAME_BYTES];
    json_t *op;

    (void)snprintf(tag, sizeof tag, "%.*s", (int)strcspn(route->id, "_"), route->id);
    op = json_pack("{s:s, s:s, s:[s], s:s, s:o, s:o}", "operationId", route->id, "summary",
                   route->summary, "tags", tag, "x-permission",
                   route->grant != NULL ? route->grant
                                        : http_permission_name(route->permission.role),
                   "parameters", parameters_of(m, route), "responses", responses_of(m, route));
    if (route->body != NULL)
        il__json_set(m, op, "requestBody", body_of(m, route));
    if (route->permission.role == HTTP_MAY_open)
        il__json_set(m, op, "security", json_array());
    if (route->permission.names.rule == HTTP_NAMES_all || route->permission.names.under != NULL)
        il__json_set(m, op, "x-key-prefix",
                     route->permission.names.under != NULL
                         ? json_string(route->permission.names.under)
                         : json_string(""));
    if (route->bucket != NULL)
        il__json_set(m, op, "x-rate-limit",
                     json_pack("{s:s, s:I, s:I}", "quota", route->bucket->name, "limit",
                               (json_int_t)route->bucket->tokens, "period_ms",
                               (json_int_t)route->bucket->period_ms));
    return op;
}

/* The same route below / as below /api/v1: a path item that refers to the latter. */
static void
add_bare(struct json_maker *m, json_t *all, const char *bare, const char *path)
{
    AUTO_BUF struct il__buf ref;

    il__buf_init(&ref, 1024);
    il__buf_adds(&ref, "#/paths/");
    for (; *path != '\0'; path++) {
        if (*path == '/')
            il__buf_adds(&ref, "~1"); /* in a JSON pointer */
        else if (*path == '{' || *path == '}')
            il__buf_addf(&ref, "%%%02X", (unsigned)*path); /* in a URI */
        else
            il__buf_addc(&ref, *path);
    }
    il__json_set(m, all, bare, json_pack("{s:s}", "$ref", il__buf_str(&ref)));
}

static json_t *
paths(struct json_maker *m)
{
    json_t *all = json_object();

    for (size_t i = 0; i < http_n_routes; i++) {
        const struct http_route *route = http_route(i);
        bool                     below = route->path[1] != '/';
        char                     path[256];
        char                     method[16];
        size_t                   n = 0;
        if ((route->flags & HTTP_UI_FILE) != 0)
            continue;
        (void)snprintf(path, sizeof path, "%s%s", below ? HTTP_BASE : "",
                       below ? route->path : route->path + 1);
        for (; route->method[n] != '\0' && n + 1 < sizeof method; n++)
            method[n] = (char)tolower((unsigned char)route->method[n]);
        method[n] = '\0';
        if (json_object_get(all, path) == NULL)
            il__json_set(m, all, path, json_object());
        il__json_set(m, json_object_get(all, path), method, operation(m, route));
        if ((route->flags & HTTP_BARE) != 0)
            add_bare(m, all, route->path, path);
    }
    return all;
}

static const char constant_parts[] =
    "{\"securitySchemes\":{\"apiKey\":{\"type\":\"apiKey\",\"in\":\"header\",\"name\":\"X-API-"
    "Key\"},"
    "\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"}},"
    "\"parameters\":{"
    "\"wait\":{\"name\":\"wait\",\"in\":\"query\",\"required\":false,\"schema\":{\"type\":"
    "\"string\"},\"example\":\"30s\","
    "\"description\":\"maximum time to hold the request open; at most 60 s\"},"
    "\"IdempotencyKey\":{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"required\":false,"
    "\"schema\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":255},"
    "\"description\":\"makes the call idempotent: the response is kept for 24 h, and a "
    "repeated request gets it with Idempotent-Replayed: true; a different "
    "request with the same key gets 422; while the first is running, others wait, then get 409\"},"
    "\"Page\":{\"name\":\"" HTTP_UI_HEADER "\",\"in\":\"header\",\"required\":true,"
    "\"schema\":{\"const\":\"1\"},"
    "\"description\":\"sent by the admin page; other sites cannot send it\"},"
    "\"RequestId\":{\"name\":\"X-Request-Id\",\"in\":\"header\",\"required\":false,\"schema\":{"
    "\"type\":\"string\",\"maxLength\":64},"
    "\"description\":\"returned in the response and written to the log\"}},"
    "\"responses\":{\"Error\":{\"description\":\"the request was refused "
    "or failed\",\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"" REF "Error\"}}}}}}";

static void
add_code(struct json_maker *m, json_t *names, const char *code)
{
    size_t  i;
    json_t *one;

    json_array_foreach(names, i, one)
    {
        if (strcmp(json_string_value(one), code) == 0)
            return;
    }
    il__json_append(m, names, json_string(code));
}

/* Every error code: the statuses, errors.def, and those of the apps. */
static json_t *
error_schema(struct json_maker *m, const struct http_app *const *apps, size_t n_apps)
{
    static const char *const codes[] = {
#define X(name, num, wire, http, exit_status, retry, text) wire,
        IL_STATUS_MAP(X)
#undef X
#define X(code, http, status, text) #code,
#include "wire/errors.def"
#undef X
    };
    json_t *names = json_array();

    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        add_code(m, names, codes[i]);
    for (size_t i = 0; i < n_apps; i++) {
        for (size_t k = 0; k < apps[i]->n_errors; k++)
            add_code(m, names, apps[i]->errors[k].code);
    }
    return json_pack(
        "{s:s, s:[s,s], s:b, s:{s:{s:b}, s:{s:s, s:[s,s,s,s], s:b, s:{s:{s:s,s:o}, s:{s:s,s:s}, "
        "s:{s:s}, s:{s:s,s:s}}}}}",
        "type", "object", "required", "success", "error", "additionalProperties", 0, "properties",
        "success", "const", 0, "error", "type", "object", "required", "code", "source", "message",
        "details", "additionalProperties", 0, "properties", "code", "type", "string", "enum", names,
        "source", "type", "string", "description",
        "the part that failed: lock, run, queue, cache, idempotency, store, data, auth, request, "
        "or the name of an app",
        "message", "type", "string", "details", "type", "object", "description",
        "further details, such as holder, fence, id or retry_after_ms");
}

char *
http_openapi(const struct http_app *const *apps, size_t n_apps)
{
    struct json_maker made = { .schemas = json_object() };
    json_t           *root;
    json_t           *components = json_loads(constant_parts, 0, NULL);

    add_batch(&made);
    il__json_set(&made, made.schemas, "Error", error_schema(&made, apps, n_apps));
    root = json_pack("{s:s, s:{s:s, s:s, s:s, s:{s:s,s:s}}, s:[{s:s}], s:[{s:[]},{s:[]}], s:o}",
                     "openapi", "3.1.0", "info", "title", "Interlock", "version", il_version(),
                     "description",
                     "Locks, runs, queues and caches for work that must happen only once.",
                     "license", "name", "MIT", "identifier", "MIT", "servers", "url", "/",
                     "security", "apiKey", "bearer", "paths", paths(&made));
    il__json_set(&made, components, "schemas", made.schemas);
    il__json_set(&made, root, "components", components);
    char *text = made.failed || root == NULL
                     ? NULL
                     : json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(root);
    char *ret = text != NULL ? il__strdup(text) : NULL;
    free(text);
    return ret;
}
