/*
 * limits.h: limits of a tenant: a token bucket of ops, concurrent long polls and streams, live
 * locks and jobs, bytes of results. Used on the loop only, except for the budgets of results.
 *
 * A tenant's own limits (struct il__data_limits) override the server's defaults field by field, and
 * are re-read within a second. Live locks and jobs are counted in the store, once a second and only
 * for tenants with such a limit; in between, what this server grants is added to the last count.
 */
#ifndef IL_HTTP_LIMITS_H
#define IL_HTTP_LIMITS_H

#include "http/http.h"

struct http_tenant;
struct http_buckets;

il_status http_limits_open(struct http_server *s, il_error *reterr) MUST_USE;
void      http_limits_close(struct http_server *s);
void      http_limits_tick(struct http_server *s, int64_t now_ns); /* about four times a second */

/* The tenant's state: created with its first key, freed after its last. NULL: out of memory. */
struct http_tenant *http_tenant_ref(struct http_server *s, const char *name);
void                http_tenant_unref(struct http_tenant *t);
/* Its token buckets (bucket.h). */
struct http_buckets *http_tenant_buckets(struct http_tenant *t);
/* Set the tenant's limits as read from the data store. */
void http_tenant_limits(struct http_tenant *t, const struct il__data_limits *own);

/* Count one request. False: answered with 429 RATE_LIMITED. Called by http_auth(). */
bool http_limits_request(struct http_request *r);

/* How often the caller's tenant may trigger a pipeline, per minute and per hour; 0 = no limit.
 * The store does the counting. */
void http_limits_triggers(const struct http_request *r, uint32_t *ret_minute, uint32_t *ret_hour);
/* The store refused a trigger for that: 429 RATE_LIMITED. */
void http_limits_too_often(struct http_request *r, const il_op *op);
/* False: the tenant has used up its storage; answered with 507 STORAGE_QUOTA_EXCEEDED. */
bool http_limits_storage(struct http_request *r);
/* How many runs the caller's tenant may have at once, and per day; 0 = no limit. The store does
 * the counting. */
void http_limits_runs(const struct http_request *r, uint32_t *ret_live, uint32_t *ret_day);
/* The store refused. */
void http_limits_refused(struct http_request *r);

#define HTTP_RESULT_BYTES_MAX ((size_t)256 << 20) /* that a server holds for all its clients */

#define HTTP_BODIES_BYTES_MAX ((size_t)256 << 20) /* of requests in progress */

/* Before the body is read. False: too many bytes in progress; answered with 503 BODIES_FULL. */
bool http_limits_body(struct http_request *r);
/* The request has ended. */
void http_limits_body_end(struct http_request *r);

/* The budget that the results of the request's ops count against. */
struct il__result_budget *http_limits_results(const struct http_request *r);

/*
 * Before r->ops are applied; each counts as a request against the rate. False: one of them would
 * exceed the tenant's locks or jobs (429 QUOTA_EXCEEDED) or bytes (507 STORAGE_QUOTA_EXCEEDED); the
 * request is answered. After http_limits_judge() this cannot happen, since it removed those ops.
 */
bool http_limits_ops(struct http_request *r);

/* Why an op of a batch is refused: a verdict of struct http_each, next to enum http_scope. */
enum http_over {
    HTTP_OVER_NOTHING,
    HTTP_OVER_BYTES = 16,
    HTTP_OVER_LOCKS,
    HTTP_OVER_JOBS,
    HTTP_OVER_BUT_EXISTS, /* it adds no row: never refused */
};
#define HTTP_OVER_TEXT_BYTES 160

/* Would one of them be refused? */
bool http_limits_over(const struct http_request *r, const il_op *ops, size_t n_ops);
/* Refuse ops individually: ops with verdict 0 that would exceed a limit get a verdict. Call in
 * the same turn of the loop as http_limits_ops() for the remaining ops. */
void http_limits_judge(struct http_request *r, const il_op *ops, size_t n, unsigned char *verdicts);
/* The error code of such a refusal, and its text. */
const char *http_limits_say(const struct http_request *r, enum http_over which,
                            char text[HTTP_OVER_TEXT_BYTES]);

/* After the ops are done, whatever the outcome. */
void http_limits_applied(struct http_request *r);

/*
 * A request starts to wait (its call has a wait) or becomes a stream. False: there are too many;
 * answered with 429 QUOTA_EXCEEDED. http_limits_end() gives the place back when the request or its
 * wait ends; it may be repeated, and called without a begin.
 */
bool http_limits_wait(struct http_request *r);
bool http_limits_stream(struct http_request *r);
void http_limits_end(struct http_request *r);

/* Current totals of all tenants, for metrics and /status. */
uint64_t http_limits_waiters(const struct http_server *s);
uint64_t http_limits_streams(const struct http_server *s);

#endif
