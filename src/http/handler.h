/* handler.h: what handlers use: ops on the store, and answers printed by tables. */
#ifndef IL_HTTP_HANDLER_H
#define IL_HTTP_HANDLER_H

#include "http/body_fields.h"
#include "http/route.h"

/* Answer with an object, printed by its table. */
void http_say(struct http_request *r, int status, const struct wire_object *o, const void *from);
/* A page of a listing: {"items":[…],"next":…}. */
void http_say_page(struct http_request *r, const struct wire_object *o, const void *items,
                   size_t item_bytes, size_t n, const char *next);

/* How long the request may be kept open: ?wait, else the op's own wait, at most a minute. */
int64_t http_poll_ms(const struct http_request *r);
/* Wall clock now + ms; 0 for never. */
int64_t http_at_ms(int64_t remaining_ms);

/* ---- ops: from a handler to the store (authorise.c) ------------------------------------------ */

/*
 * Apply the op of the route, built from path, query and body. then(r) follows on the loop with
 * r->ops done; if the call as a whole failed, http_fail_call() has answered instead. Permissions
 * are checked here: a hidden object gets the status of one that does not exist; a forbidden op is
 * answered, and nothing is applied.
 */
void http_do(struct http_request *r, http_fn *then);
/* A handler: http_do(), then r->route->then(r) if the op's status is OK; any other is answered as
 * failed. */
http_fn http_do_route;
/*
 * The same for ops that the handler has filled in, all or none. Their tenant is the caller's unless
 * set. wait_ms: how long one op may wait; 0 = not at all. They must live as long as r->mem.
 */
void http_do_ops(struct http_request *r, il_op *ops, size_t n, int64_t wait_ms, http_fn *then);
/* Apply an op created by the server, not named by a client: a stored response, or one without a
 * caller. */
void http_do_own(struct http_request *r, il_op *op, int64_t wait_ms, http_fn *then);

/*
 * Apply several ops independently: refused ops get a verdict (enum http_scope, enum http_over) and
 * are not applied, the others are. Then then(r) is called with r->ops = e->ops. An object hidden
 * from the caller gets the status of one that does not exist.
 */
struct http_each {
    il_op         *ops;
    size_t         n;
    unsigned char *verdicts; /* n ops, filled in */
    bool           by_op;    /* an op over quota is refused alone, not the whole request */
    bool           by_route; /* each needs the permission of its own route */
    /* Private to authorise.c */
    bool     whole; /* one forbidden op refuses all */
    il_op   *parts; /* the lookups, then the ops to apply */
    size_t  *places;
    size_t   n_parts;
    int64_t  wait_ms;
    http_fn *then;
};
void http_do_each(struct http_request *r, struct http_each *e, int64_t wait_ms, http_fn *then);

/* ---- inputs.c -------------------------------------------------------------------------------- */

/* Generate names that were omitted. False: the request has been answered. i: index of the op. */
bool http_complete(struct http_request *r, il_op *op, size_t i) MUST_USE;

/* Path arguments into an op. */
void http_take_path(struct http_request *r, il_op *op);

/* The error code of a failed op: the status's wire name, but JOB_STALE for jobs. */
const char *http_code(const il_op *op);

/* Parse {"items":[…]} of the body, each by the table of the route's op. NULL: the request has
 * been answered. (batch.c) */
struct http_each *http_take_items(struct http_request *r) MUST_USE;
/* {"results":[…]} of r->state, a struct http_each. */
void http_say_results(struct http_request *r);

#endif
