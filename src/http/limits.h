/*
 * limits.h: how much a tenant may do: token buckets of requests and triggers, long polls and streams at once, live locks and jobs. The loop's alone.
 *
 * What a tenant has of its own (struct il__data_limits) counts before the server's defaults, field by field; it is read again within a second. Live locks
 * and jobs are counted in the store, once a second and only for tenants with such a limit; in between, what this server grants is
 * added to that.
 */
#ifndef IL_HTTP_LIMITS_H
#define IL_HTTP_LIMITS_H

#include "http/http.h"

struct http_tenant;

il_status http_limits_open(struct http_server *s, il_error *reterr) MUST_USE;
void      http_limits_close(struct http_server *s);
void http_limits_reload(struct http_server *s); /* s->o->limits, the defaults, may be others now */
void http_limits_tick(struct http_server *s, int64_t now_ns); /* about four times a second */

/* The tenant's own: made at its first key, forgotten with its last. NULL: no memory. */
struct http_tenant *http_tenant_ref(struct http_server *s, const char *name);
void                http_tenant_unref(struct http_tenant *t);
/* What the data store says of it. */
void http_tenant_limits(struct http_tenant *t, const struct il__data_limits *own);

/* One request: false: it is answered with 429 RATE_LIMITED. http_auth() does it. */
bool http_limits_request(struct http_request *r);

/* One trigger of a pipeline: false: there were too many in the last minute or hour, it is answered with 429 RATE_LIMITED (R1.17). */
bool http_limits_trigger(struct http_request *r);
/* How many runs the caller's tenant may have at once, and in a day; 0 = no limit. The store counts them. */
void http_limits_runs(const struct http_request *r, uint32_t *ret_live, uint32_t *ret_day);
/* It was the store that refused. */
void http_limits_refused(struct http_request *r);

/* Before r->ops are applied: false: the locks or jobs are used up, it is answered with 429 QUOTA_EXCEEDED. */
bool http_limits_ops(struct http_request *r);

/* Afterwards, whatever came of them. */
void http_limits_applied(struct http_request *r);

/* A request begins to wait (its call has a wait) or becomes a stream: false: there are too many, it is answered with 429 QUOTA_EXCEEDED. When the request ends, or
 * its wait does, http_limits_end() gives the place back; it is repeatable and fine without a begin. */
bool http_limits_wait(struct http_request *r);
bool http_limits_stream(struct http_request *r);
void http_limits_end(struct http_request *r);

/* Now, of all tenants: for metrics and /status. */
uint64_t http_limits_waiters(const struct http_server *s);
uint64_t http_limits_streams(const struct http_server *s);

#endif
