/*
 * route.h: the route table. A row of routes.def is everything the rest of the server knows about a
 * route: authorisation, limits, content type, checks of query and body, idempotency, metrics and
 * /openapi.json are derived from it.
 *
 * R(method, path, permission, names, id, fn, query, body, answer, flags, summary)
 * OP(method, path, permission, id, fn, op, answer, flags, summary)
 * DO(method, path, permission, id, then, op, answer, flags, summary)
 *
 *   path        below /api/v1 and /ui/api (HTTP_BARE: also without it); "//x" is /x itself. {name}
 *               stands for one segment, percent-decoded
 *   permission  open, any, read, write, operator, admin: HTTP_MAY_##permission. A row without one
 *               does not compile
 *   names       NONE, OPS, ALL, UNDER("usage:") or JUDGED(function): HTTP_NAMES_##names, what keys
 *               that are limited to a prefix may do. A row without it does not compile. OP() and
 *               DO() have OPS
 *   id          area_verb: operationId, metrics label, and name of the permission (queue_claim is
 *               "queue:claim")
 *   fn          http_##fn(struct http_request *)
 *   then        the handler is http_do_route(): it applies the op, then http_##then(r) answers if
 *               its status is OK; any other is answered as failed
 *   query, body, answer   struct wire_object *, or NULL; offsets into a struct of the handler
 *   op          the route is one op: its inputs (il__wire_inputs), except those in the path, are
 *               the query of a GET, else the body
 *   flags       enum http_route_flags
 */
#ifndef IL_HTTP_ROUTE_H
#define IL_HTTP_ROUTE_H

#include "http/http.h"

struct http_bucket;

enum http_permission {
    HTTP_MAY_open = 1, /* no key needed */
    HTTP_MAY_any,      /* any valid key */
    HTTP_MAY_read,
    HTTP_MAY_write,
    HTTP_MAY_operator,
    HTTP_MAY_admin,
};

/*
 * The rule for API keys that are limited to a prefix (docs/KEYS.md). Every route has one; auth.c
 * applies it together with the permission, before the body is read.
 */
enum http_names_rule {
    HTTP_NAMES_none = 1, /* the route is not about names of the tenant: any key */
    HTTP_NAMES_ops,      /* it reaches names by http_do() only: authorise.c judges op by op */
    HTTP_NAMES_all,      /* it is about more than names: only a key without a prefix */
    HTTP_NAMES_under,    /* all names that begin with `under`: only a key that covers them */
    HTTP_NAMES_judged,   /* the handler hides or refuses names that judge() does not allow */
};

typedef bool http_judge_fn(const struct http_request *r, const char *name);

struct http_names {
    enum http_names_rule rule;
    const char          *under;
    http_judge_fn       *judge; /* handlers ask it through http_may_see() (auth.h) */
};

/* Who may call a route. HTTP_ACCESS() takes both; a server with a row that lacks one does not
 * start. */
struct http_access {
    enum http_permission role;
    struct http_names    names;
};

/* clang-format off */
#define HTTP_NAMES_NONE          { HTTP_NAMES_none, NULL, NULL }
#define HTTP_NAMES_OPS           { HTTP_NAMES_ops, NULL, NULL }
#define HTTP_NAMES_ALL           { HTTP_NAMES_all, NULL, NULL }
#define HTTP_NAMES_UNDER(prefix) { HTTP_NAMES_under, prefix, NULL }
#define HTTP_NAMES_JUDGED(fn)    { HTTP_NAMES_judged, NULL, fn }
/* .permission = HTTP_ACCESS(read, ALL) */
#define HTTP_ACCESS(role, names) { HTTP_MAY_##role, HTTP_NAMES_##names }
/* clang-format on */

enum http_route_flags {
    HTTP_CREATES = 1 << 0, /* accepts Idempotency-Key; success is 201 */
    HTTP_STREAMS = 1 << 1, /* server-sent events */
    HTTP_WAITS   = 1 << 2, /* takes ?wait=30s, and wait_ms in its body */
    HTTP_LARGE   = 1 << 3, /* the large body limit */
    HTTP_PAGE    = 1 << 4, /* the answer is {"items":[…],"next":…} of `answer` */
    /* The body may also be {"items":[…]} of `body` (without HTTP_CREATES it must be), and the
     * answer is then {"results":[…]}. */
    HTTP_ITEMS = 1 << 5,
    HTTP_LOOSE = 1 << 6, /* not JSON: /metrics */
    /* `key` of the answer is a secret: shown once, and null in the response stored for an
     * Idempotency-Key. */
    HTTP_SECRET = 1 << 7,
    HTTP_BARE   = 1 << 8, /* also without /api/v1 */
    HTTP_ONCE   = 1 << 9, /* accepts Idempotency-Key; success is 200 */
    /* The body may have further fields, each a text, a number or a boolean; the handler
     * interprets them. */
    HTTP_OPEN_BODY = 1 << 10,
    HTTP_FORCES    = 1 << 11, /* may cancel a run of an app */
    HTTP_ACCEPTS   = 1 << 12, /* starts work in the background: success is 202 */
    HTTP_CSV       = 1 << 13, /* the answer is CSV with ?format=csv */
    HTTP_UI_CALL   = 1 << 14, /* of the admin page: needs its header (ui.h) */
    HTTP_UI_FILE   = 1 << 15, /* a file of the admin page: not in /openapi.json */
};

struct http_route {
    const char               *method, *path;
    struct http_access        permission;
    http_fn                  *fn;
    const struct wire_object *query, *body, *answer;
    unsigned                  flags;
    const char               *summary;
    const char               *id;
    il_op_type                op;      /* IL_OP_NONE: not a single op */
    const char               *example; /* example of its body, JSON; NULL: see examples.def */
    const char *store_text; /* message when the store is unavailable; NULL = the default */
    /*
     * A named permission that is needed instead of a role: "admin:usage". The role admin has it,
     * and so has a key with this permission or one below it ("admin:usage:write"); no other role
     * has, nor does the id of the route grant it. The role is then HTTP_MAY_admin.
     */
    const char *grant;
    /* Each call takes a token of it (bucket.h); NULL = none. Not on open routes. */
    const struct http_bucket *bucket;
    http_fn                  *then; /* if fn is http_do_route(): answers once the op is done */
};

#define HTTP_BASE "/api/v1"
#define HTTP_WAIT_MS_MAX 60000 /* limit for keeping a request open */

#define HTTP_ROUTES_MAX 256

extern size_t http_n_routes;

/* Call once at start-up: fills the table from routes.def and the tables of the ops. */
void http_routes_init(void);
/* Then once per app: adds its routes (copied). If two match a path the first wins, so literal
 * paths precede those with an argument in the same place. */
void http_routes_add(const struct http_app *app, const struct http_route *more, size_t n);
const struct http_route *http_route(size_t i); /* 0 <= i < http_n_routes */
size_t                   http_route_index(const struct http_route *route);
/* Whose route it is; NULL: the server's own. */
const struct http_app *http_route_app(const struct http_route *route);
/*
 * Find the route of a method and a path (as received, not decoded, without the query), and the
 * path's arguments (decoded, in *mem). NULL: no such path; or, if *ret_allow is set (in *mem, for
 * the Allow header), the path exists but not with this method. HEAD is GET without a body. A path
 * with bad escapes, control characters or '/' in an argument does not exist.
 */
const struct http_route *http_route_find(const char *method, const char *path, void **mem,
                                         const char  *args[HTTP_PATH_ARGS_MAX],
                                         const char **ret_allow);

/* The route whose permission an op of a batch needs; never NULL. Ops without a route of their
 * own have a row with method NULL. */
const struct http_route *http_route_of_op(il_op_type type);

/* The name of the i-th argument of a path, and its length; NULL after the last. */
const char *http_route_arg(const char *path, size_t i, size_t *ret_bytes);

/* ---- inputs of a request (inputs.c) ---------------------------------------------------------- */

/* Run the handler of a complete and permitted request; with an Idempotency-Key, only once. */
void http_run(struct http_request *r);
/* Call the handler, after taking a token of the route's bucket if it has one. A repeated answer of
 * an Idempotency-Key takes none. */
void http_handle(struct http_request *r);

/*
 * Parse query and body by the tables of the route into a struct of the handler. ?wait and wait_ms
 * (HTTP_WAITS) go to r->wait_ms. False: answered with 400, naming the field. Strings live as long
 * as the request.
 */
bool http_take_query(struct http_request *r, void *into) MUST_USE;
bool http_take_body(struct http_request *r, void *into) MUST_USE;
/* For a route that is one op: fill r->op from path, query and body; omitted ids are generated. */
bool http_take_op(struct http_request *r) MUST_USE;

/* The next NAME=VALUE of a query string, decoded in place; *at advances. False: bad escape,
 * control character, or invalid UTF-8. At the end *ret_name is NULL. */
bool http_query_next(char **at, char **ret_name, char **ret_value) MUST_USE;
/* Percent-decode in place; '+' is a space if `plus`. False as above. */
bool http_decode(char *text, bool plus) MUST_USE;

/*
 * The n-th id that the server generates for this request. With an Idempotency-Key it is the same
 * when the request is repeated. NULL: no random bytes or no memory; the request has been answered.
 */
const char *http_new_id(struct http_request *r, size_t n);

/* ---- idempotency (idempotency.c), events (stream.c), documents (openapi.c) ------------------- */

/* then http_handle(r), or the stored response */
void http_once_begin(struct http_request *r);
/* In http_answer(): true: the answer is being stored; http_answer() is called again afterwards. */
bool http_once_answer(struct http_request *r, int status);
/* Does a client's op name the stored response of an Idempotency-Key? Only the server may. */
bool http_once_reserved(const il_op *op);

/* Live events: s->streams. Open before the first submit; close when no request is left. */
il_status http_streams_open(struct http_server *s, il_error *reterr) MUST_USE;
void http_streams_end(struct http_server *s); /* ends all streams and refuses new ones: shutdown */
void http_streams_close(struct http_server *s);
/* ops that are done, on the loop */
void http_stream_ops_done(struct http_server *s, const il_op *ops, size_t n);
/* An event of a run that was not caused by a request of this server: "started", "finished", …
 * `what` is plain ASCII. On the loop, at any time. */
void http_stream_run_event(struct http_server *s, const char *tenant, const char *key,
                           const char *what, const char *id);
/* ms until the next call; -1: when there is an event */
int64_t http_stream_tick(struct http_server *s);

/* /openapi.json, with the error codes of the apps; il__free() it. NULL: out of memory */
char *http_openapi(const struct http_app *const *apps, size_t n_apps);

/* All functions that routes.def names: handlers, and those that answer. */
#define R(method, path, permission, names, id, fn, query, body, answer, flags, summary) \
    http_fn http_##fn;
#define OP(method, path, permission, id, fn, op, answer, flags, summary) http_fn http_##fn;
#define DO OP
#include "http/routes.def"
#undef R
#undef OP
#undef DO

#endif
