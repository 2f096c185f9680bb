/*
 * office.h: threads for what blocks. One takes the errands of the data store in order; a few others, started when they are needed, take what may last for
 * seconds (a probe that asks another system, reading many files), so that keys are looked up meanwhile. Each job is brought back to the loop.
 */
#ifndef IL_HTTP_OFFICE_H
#define IL_HTTP_OFFICE_H

#include "http/http.h"

#define HTTP_SLOW_THREADS_MAX 8

struct http_office;

il_status http_office_open(struct http_server *s, il_error *reterr) MUST_USE;
/* Finishes the jobs under way and joins; jobs that were not begun are dropped, without `then`. */
void http_office_stop(struct http_server *s);
void http_office_close(struct http_server *s);

/* The job is the office's until `then` (or, without one, work) is called. From the loop only. */
void http_office_send(struct http_server *s, struct http_job *job);
/* The same, to one of the slow ones; several may be under way at once. */
void http_slow_send(struct http_server *s, struct http_job *job);

#endif
