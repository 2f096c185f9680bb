/*
 * errands.h: threads for blocking work. The errand thread talks to the data store; it serves
 * tenants in turn (runtime/fair.h) and the jobs of one tenant in order. A few slow threads, started
 * on demand, take jobs that may last for seconds (a probe of another system, reading many files),
 * so that key lookups are not held up. Each tenant has a share of the slow threads; further jobs of
 * it wait. Each job returns to the loop.
 */
#ifndef IL_HTTP_ERRANDS_H
#define IL_HTTP_ERRANDS_H

#include "http/http.h"

#define HTTP_SLOW_THREADS_MAX 32

struct http_errands;

il_status http_errands_open(struct http_server *s, il_error *reterr) MUST_USE;
/* Finishes the jobs in progress and joins the threads; jobs not yet started are dropped without
 * calling `then`. */
void http_errands_stop(struct http_server *s);
void http_errands_close(struct http_server *s);

/* Call from the loop only. The job must live until `then` (or, without one, `work`) is called. */
void http_errand_send(struct http_server *s, struct http_job *job);
/* The same for a slow thread; several jobs may run at once. The job must have a `then`. */
void http_errand_send_slow(struct http_server *s, struct http_job *job);

#endif
