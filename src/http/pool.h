/*
 * pool.h: threads for work that takes longer than the errand thread should wait: queries of apps,
 * probes of other systems, reading many files. They are started on demand. A tenant gets a share of
 * the threads and of the places in the queue (il__fair_may_take()); a freed thread goes to the
 * waiting tenant that uses the fewest.
 *
 * Only the loop tracks threads and places: it hands a job over, and reclaims the thread when the
 * job comes back through the inbox. So two threads never decide about the same place.
 */
#ifndef IL_HTTP_POOL_H
#define IL_HTTP_POOL_H

#include "http/http.h"

#define HTTP_POOL_THREADS_MAX 32
#define HTTP_POOL_WAITING_MAX 256 /* requests that wait for a thread */

il_status http_pool_open(struct http_server *s, il_error *reterr) MUST_USE;
void      http_pool_tick(struct http_server *s); /* about four times a second */
/* The server is to stop by then: move the deadlines of running requests there. */
void http_pool_hurry(struct http_server *s, int64_t by_ns);
/* Cancels running requests and joins the threads; waiting jobs are dropped without calling
 * `then`. */
void http_pool_stop(struct http_server *s);
void http_pool_close(struct http_server *s);

/* Run a job that is never refused and has no deadline: its tenant's other jobs may have to finish
 * first. Call from the loop only. The job must have a `then`, and live until that is called. */
void http_pool_send(struct http_server *s, struct http_job *job);

/* The client of a request in the pool has gone: drop it if it waits for a thread, cancel it if it
 * runs. On the loop. */
void http_pool_client_left(struct http_request *r);

/* The work of a request in the pool is done: undo http_on_disconnect() and http_bind_deadline().
 * (app.c) */
void http_unbind_deadline(struct http_request *r);

size_t http_pool_busy(const struct http_server *s);
size_t http_pool_waiting(const struct http_server *s);

#endif
