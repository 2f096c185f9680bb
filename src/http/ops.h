/*
 * ops.h: takes the ops of a request to the store and back. For authorise.c only, which checks
 * permissions; handlers call http_do() and its variants (handler.h).
 */
#ifndef IL_HTTP_OPS_H
#define IL_HTTP_OPS_H

#ifndef HTTP_SUBMITS /* defined by ops.c and authorise.c */
#error "handlers call http_do() (handler.h), which authorises: http_submit() does not"
#endif

#include "http/http.h"

/*
 * Submit n ops, whose tenants are set, to the il__async, together with those of other requests:
 * sets r->ops and r->n_ops. `then` is called on the loop once they are committed and the audit is
 * written; not if the call as a whole failed: then http_fail_call() has answered. wait_ms: as
 * il__call.wait_until_ns; 0 = none.
 */
void http_submit(struct http_request *r, il_op *ops, size_t n, int64_t wait_ms, http_fn *then);

#endif
