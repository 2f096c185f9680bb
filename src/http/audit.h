/*
 * audit.h: records each administrative action in the data store before it is answered: who, when,
 * what, why, and the outcome. Used on the loop only.
 *
 * By the time the row is written, the action on the store has already happened. If the row cannot
 * be written, the request is still answered with the action's result. The failure is logged at
 * level error with everything the row would have contained, and counted in
 * interlock_audit_failures_total.
 */
#ifndef IL_HTTP_AUDIT_H
#define IL_HTTP_AUDIT_H

#include "http/http.h"

struct http_audit;

il_status http_audit_open(struct http_server *s, il_error *reterr)
    MUST_USE; /* s->o->audit_keep_ms: 0 = 365 days, negative = forever */
void http_audit_close(struct http_server *s);
/* about once a second; purges old rows occasionally */
void http_audit_tick(struct http_server *s, int64_t now_ns);

/* Record the administrative ops among r->ops, which are done (r->call.status says whether they
 * were applied at all), then call then(r): immediately if there are none. */
void http_audit_ops(struct http_request *r, http_fn *then);

/* Record one action of a request, then continue with then(r). tenant NULL = the caller's. Texts
 * are copied; NULL = "". */
struct http_action {
    const char *tenant, *action, *what, *reason, *outcome, *details;
};
void http_audit(struct http_request *r, const struct http_action *action, http_fn *then);

/* Record an action of the server itself (actor "server"), such as "config.reload". Nothing waits
 * for the write. */
void http_audit_self(struct http_server *s, const struct http_action *action);

#endif
