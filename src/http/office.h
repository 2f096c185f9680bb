/*
 * office.h: one thread for what blocks: the data store. It takes jobs in order and brings each back to the loop.
 */
#ifndef IL_HTTP_OFFICE_H
#define IL_HTTP_OFFICE_H

#include "http/http.h"

struct http_office;

il_status http_office_open(struct http_server *s, il_error *reterr) MUST_USE;
/* Finishes the job under way and joins; jobs that were not begun are dropped, without `then`. */
void http_office_stop(struct http_server *s);
void http_office_close(struct http_server *s);

/* The job is the office's until `then` (or, without one, work) is called. From the loop only. */
void http_office_send(struct http_server *s, struct http_job *job);

#endif
