/*
 * one.h: helpers of the handlers: from ops that are done to answers.
 */
#ifndef IL_HTTP_ONE_H
#define IL_HTTP_ONE_H

#include "http/bodies.h"
#include "http/route.h"

/* Answer with an object by its table. */
void http_say(struct http_request *r, int status, const struct wire_object *o, const void *from);
/* A page of a listing: {"items":[…],"next":…}. */
void http_say_page(struct http_request *r, const struct wire_object *o, const void *items,
                   size_t item_bytes, size_t n, const char *next);

/* How long the request may be kept open: ?wait, else what the op says, never more than a minute. */
int64_t http_poll_ms(const struct http_request *r);
/* Wall clock of now + ms; 0 for what never comes. */
int64_t http_at_ms(int64_t remaining_ms);

/* Take the op of the route, make what was left out, and go. */
void http_do(struct http_request *r, http_fn *then);
/* The same when it was taken already. */
void http_do_taken(struct http_request *r, http_fn *then);

/* Names that were left out, made. False: it is answered. i: of the op among several. */
bool http_complete(struct http_request *r, il_op *op, size_t i) MUST_USE;

/* Path arguments into an op. */
void il__http_take_path(struct http_request *r, il_op *op);

/* The part of the server that an op belongs to, as `source` of its errors: "lock", "run", "queue", "cache", "idempotency". */
const char *http_source(il_op_type type);
/* The code of an op that did not end well: the status's wire name, but JOB_STALE for jobs. */
const char *http_code(const il_op *op);

/*
 * Several ops, some of which may be refused: those that are not (verdicts[i] == 0, enum http_scope) are applied as one commit, then then(r) with r->ops =
 * m->ops again, each with its status; the verdicts say which were not applied. Ops by id are looked up first if the key has a prefix. What is hidden
 * from the caller gets the status of what is not there.
 */
struct http_many {
    il_op         *ops;
    size_t         n;
    unsigned char *verdicts; /* enum http_scope */
    /* one.c's own */
    il_op   *parts; /* look-ups, then those that are applied */
    size_t  *places;
    size_t   n_parts;
    int64_t  wait_ms;
    http_fn *then;
    void    *state;
};
void http_many(struct http_request *r, struct http_many *m, int64_t wait_ms, http_fn *then);

/* {"items":[…]} of the body, each by the table of the route's op. NULL: it is answered. (batch.c) */
struct http_many *http_take_items(struct http_request *r) MUST_USE;
/* {"results":[…]} of r->state, a struct http_many. */
void http_say_results(struct http_request *r);

#endif
