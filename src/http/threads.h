/*
 * threads.h: a group of threads that take jobs, tenants in turn (runtime/fair.h) and the jobs of
 * one tenant in order. The errand thread (errands.h) is a group of one; the pool (pool.h) has more.
 */
#ifndef IL_HTTP_THREADS_H
#define IL_HTTP_THREADS_H

#include "http/http.h"

struct http_threads;

/* The first thread is started here, so that at least one always exists; the others on demand. */
il_status http_threads_open(struct http_server *s, unsigned n_max, struct http_threads **ret,
                            il_error *reterr) MUST_USE;
/* Call from the loop only. The job must live until job->item reaches the loop (or, without `then`,
 * until `work` is called). */
void http_threads_give(struct http_threads *t, struct http_job *job);
/* Finishes the jobs in progress and joins the threads; jobs not yet started are dropped. NULL is
 * allowed. */
void http_threads_stop(struct http_threads *t);
void http_threads_close(struct http_threads *t);

#endif
