/*
 * errands.h: the errand thread, which talks to the data store. It serves tenants in turn and the
 * jobs of one tenant in order; each job returns to the loop. Work that may take longer goes to the
 * pool (pool.h), so that key lookups are not held up.
 */
#ifndef IL_HTTP_ERRANDS_H
#define IL_HTTP_ERRANDS_H

#include "http/http.h"

il_status http_errands_open(struct http_server *s, il_error *reterr) MUST_USE;
/* Finishes the job in progress and joins the thread; jobs not yet started are dropped without
 * calling `then`. */
void http_errands_stop(struct http_server *s);
void http_errands_close(struct http_server *s);

/* Call from the loop only. The job must live until `then` (or, without one, `work`) is called. */
void http_errand_send(struct http_server *s, struct http_job *job);

/* Prepare r->job, which runs work(r) and then, on the loop, then(r). */
void http_errand_set_up(struct http_request *r, http_fn *work, http_fn *then);

#endif
