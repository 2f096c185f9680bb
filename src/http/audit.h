/*
 * audit.h: administrative acts are recorded in the data store before they are answered: who, when, what, why, how it ended. The loop's alone.
 *
 * An act on the store has happened when its row is written. If the row cannot be written the answer is the act's own all the same; the failure is an event of
 * the log at level error, with all that the row would have said, and counts in interlock_audit_failures_total.
 */
#ifndef IL_HTTP_AUDIT_H
#define IL_HTTP_AUDIT_H

#include "http/http.h"

struct http_audit;

il_status http_audit_open(struct http_server *s, il_error *reterr)
    MUST_USE; /* s->o->audit_keep_ms: 0 = 365 days, negative = for ever */
void http_audit_close(struct http_server *s);
void http_audit_tick(struct http_server *s, int64_t now_ns); /* about once a second: purges now and then */

/* Record the administrative ones among r->ops, which are done (r->call.status says whether they were applied at all), then go on with then(r):
 * at once when there are none. */
void http_audit_ops(struct http_request *r, http_fn *then);

/* Record one act of a request, then go on. tenant NULL = the caller's. Texts are copied; NULL = "". */
struct http_act {
    const char *tenant, *act, *what, *reason, *outcome, *details;
};
void http_audit(struct http_request *r, const struct http_act *act, http_fn *then);

/* An act of the server itself (who "server"), such as "config.reload". Nobody waits for it. */
void http_audit_self(struct http_server *s, const struct http_act *act);

/* The name of an op as an act ("lock.break"), or NULL when it is not administrative. */
const char *http_act_of(const il_op *op);

#endif
