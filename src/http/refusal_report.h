/*
 * refusal_report.h: counts callers that were refused a held key, for the key's history. Used on the
 * loop only.
 *
 * They are counted here, by key and caller, after they were answered, and reported to the store
 * once a second: a key that is refused 10,000 times a second costs one small write. Refusals beyond
 * the table's size, or that the store rejects, are dropped.
 */
#ifndef IL_HTTP_REFUSAL_REPORT_H
#define IL_HTTP_REFUSAL_REPORT_H

#include "http/http.h"

#define HTTP_REFUSALS_MAX 1024 /* pairs of key and caller, between two reports */

struct http_refusals;

il_status http_refusals_open(struct http_server *s, il_error *reterr) MUST_USE;
void      http_refusals_close(struct http_server *s);
void      http_refusals_tick(struct http_server *s, int64_t now_ns);

/* An acquire or a start of a run of this request was refused. */
void http_refused(struct http_request *r, const char *tenant, const il_op *op);

#endif
