/*
 * route.h: the route table. A row of routes.def is all that the rest of the server knows of a route: authorisation, limits, content type, checks of
 * query and body, idempotency, metrics and /openapi.json come from it.
 *
 * R(method, path, permission, id, fn, query, body, answer, flags, summary)
 * OP(method, path, permission, id, fn, op, answer, flags, summary)
 *
 *   path        below /api/v1 (HTTP_BARE: and without that); "//x" is /x itself. {name} stands for one segment, percent-decoded
 *   permission  open, any, read, write, operator, admin: HTTP_MAY_##permission. A row without one does not compile
 *   id          area_verb: operationId, label of metrics, name of the permission (queue_claim is "queue:claim")
 *   fn          http_##fn(struct http_request *)
 *   query, body, answer   struct wire_object *, or NULL; offsets into a struct of the handler's own
 *   op          the route is one op: its inputs (il__wire_inputs) without those that stand in the path are the query of a GET, else the body
 *   flags       enum http_route_flags
 */
#ifndef IL_HTTP_ROUTE_H
#define IL_HTTP_ROUTE_H

#include "http/http.h"

enum http_permission {
    HTTP_MAY_open = 1, /* no key needed */
    HTTP_MAY_any,      /* any good key */
    HTTP_MAY_read,
    HTTP_MAY_write,
    HTTP_MAY_operator,
    HTTP_MAY_admin,
};

enum http_route_flags {
    HTTP_CREATES = 1 << 0, /* Idempotency-Key works; a success is 201 */
    HTTP_STREAMS = 1 << 1, /* server-sent events */
    HTTP_WAITS   = 1 << 2, /* takes ?wait=30s, and wait_ms in its body */
    HTTP_LARGE   = 1 << 3, /* the large body limit */
    HTTP_PAGE    = 1 << 4, /* the answer is {"items":[…],"next":…} of `answer` */
    /* The body may also be {"items":[…]} of `body`; or, without HTTP_CREATES, is that, and the answer {"results":[…]}. */
    HTTP_ITEMS = 1 << 5,
    HTTP_LOOSE = 1 << 6, /* not JSON: /metrics */
    /* `key` of the answer is a secret: it is shown once, and null in what is kept for an Idempotency-Key. */
    HTTP_SECRET = 1 << 7,
    HTTP_BARE   = 1 << 8, /* also without /api/v1 */
    HTTP_ONCE   = 1 << 9, /* Idempotency-Key works; a success is 200 */
    /* The body may have further fields, each a text, a number or a boolean: the handler looks at them. */
    HTTP_OPEN_BODY = 1 << 10,
};

struct http_route {
    const char               *method, *path;
    enum http_permission      permission;
    http_fn                  *fn;
    const struct wire_object *query, *body, *answer;
    unsigned                  flags;
    const char               *summary;
    const char               *id;
    il_op_type                op;      /* IL_OP_NONE: it is not one op */
    const char               *example; /* of its body, JSON; NULL: examples.def may have one */
};

#define HTTP_BASE "/api/v1"
#define HTTP_WAIT_MS_MAX 60000 /* a request is kept open no longer */

#define HTTP_ROUTES_MAX 256

extern size_t il__http_n_routes;

/* Once, at the start: fills the table from routes.def and the tables of the ops. */
void il__http_routes_init(void);
/* Then, for each app: its own (copied). Of two that fit a path the first counts, so literal paths stand before those with an argument in that place. */
void                     il__http_routes_add(const struct http_route *more, size_t n);
const struct http_route *il__http_route(size_t i); /* 0 <= i < il__http_n_routes */
size_t                   il__http_route_index(const struct http_route *route);

/*
 * The route of a method and a path (as it came, not decoded, without the query), and the path's arguments (decoded, in *mem). NULL: there is none for the path, or
 * *ret_allow is a list for the Allow header (in *mem): the path is there, the method is not. HEAD is GET without a body. Bad escapes, control
 * characters and '/' in an argument: there is no such path.
 */
const struct http_route *il__http_route_find(const char *method, const char *path, void **mem,
                                             const char  *args[HTTP_PATH_ARGS_MAX],
                                             const char **ret_allow);

/* The route whose permission an op of a batch needs; never NULL. Those without a route of their own have a row with method NULL. */
const struct http_route *il__http_route_of_op(il_op_type type);

/* The name of the i-th argument of a path, and its length; NULL when there is none. */
const char *il__http_route_arg(const char *path, size_t i, size_t *ret_bytes);

/* ---- what a request gives (take.c) --------------------------------------------------------------------------------------- */

/* Run the handler of a request that is complete and permitted; with an Idempotency-Key, once. */
void http_run(struct http_request *r);

/*
 * Query and body by the tables of the route, into a struct of the handler's own. ?wait and wait_ms (HTTP_WAITS) go to r->wait_ms. false: it is
 * answered with 400, naming the field. Strings live as long as the request.
 */
bool http_take_query(struct http_request *r, void *into) MUST_USE;
bool http_take_body(struct http_request *r, void *into) MUST_USE;
/* Of a route that is one op: r->op from path, query and body. */
bool http_take_op(struct http_request *r) MUST_USE;

/* The next NAME=VALUE of a query string, decoded in place; *at moves on. False: bad escape, control character, no UTF-8. At the end: *ret_name is NULL. */
bool il__http_query_next(char **at, char **ret_name, char **ret_value) MUST_USE;
/* Percent-decode in place; '+' is a space if `plus`. False as above. */
bool il__http_decode(char *text, bool plus) MUST_USE;

/* ---- ops (one.c) ---------------------------------------------------------------------------------------------------------- */

/* Apply r->ops (&r->op if n_ops is 0) as http_apply(); for keys with a prefix, ops that name a run or a job by its id are looked up before. */
void http_go(struct http_request *r, int64_t wait_ms, http_fn *then);

/* An id that the server makes: the n-th of this request. With an Idempotency-Key the same when the request is repeated. NULL: no randomness or no memory, and it
 * is answered. */
const char *http_new_id(struct http_request *r, size_t n);

/* ---- idempotency (idempotency.c), events (stream.c), documents (openapi.c) -------------------------------------------------- */

void http_once_begin(struct http_request *r); /* then route->fn(r), or the answer that was given before */
/* In http_answer(): true: the answer is being stored, http_answer() is called again when it is. */
bool http_once_answer(struct http_request *r, int status);

/* Live events: s->streams. Open before the first submit; close when no request is left. */
il_status http_streams_open(struct http_server *s, il_error *reterr) MUST_USE;
void http_streams_end(struct http_server *s); /* ends all streams, and takes no more: shutdown */
void http_streams_close(struct http_server *s);
void http_stream_saw(struct http_server *s, const il_op *ops, size_t n); /* ops that are done, on the loop */
/* Something happened to a run that no request of ours did: "started", "finished", … `what` is plain ASCII. On the loop; fine at any time. */
void http_stream_run(struct http_server *s, const char *tenant, const char *key, const char *what,
                     const char *id);
int64_t http_stream_tick(struct http_server *s); /* ms until it wants to be called again; -1: when something was seen */

/* /openapi.json, with the error codes of the apps; il__free() it. NULL: no memory */
char *il__http_openapi(const struct http_app *const *apps, size_t n_apps);

/* Every handler of routes.def. */
#define R(method, path, permission, id, fn, query, body, answer, flags, summary) http_fn http_##fn;
#define OP(method, path, permission, id, fn, op, answer, flags, summary) http_fn http_##fn;
#include "http/routes.def"
#undef R
#undef OP

#endif
