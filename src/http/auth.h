/*
 * auth.h: who asks, and may he? From the key in a request's head to a struct http_caller. The loop's alone.
 *
 * Good keys are remembered by their HMAC. One that was looked up more than 500 ms ago is looked up again by the office thread, and its requests wait
 * for that together: what is revoked, expired or changed counts within a second. If the data store cannot be asked, what is known is good for
 * 5 s more; after that requests are refused with 503: nobody is let in on old knowledge.
 *
 * An unknown key costs what a known one costs (one HMAC, one look-up of the HMAC); it is remembered as unknown for as long, so that a flood of wrong keys
 * does not reach the data store; and each failure takes a token of the address it came from.
 */
#ifndef IL_HTTP_AUTH_H
#define IL_HTTP_AUTH_H

#include "http/http.h"
#include "http/route.h"

il_status http_auth_open(struct http_server *s, il_error *reterr) MUST_USE;
void      http_auth_close(struct http_server *s); /* after the last request and the last errand */

/*
 * Hold a request, whose head is complete and whose route is set and not open, against its key, the route's permission and its tenant's rate. Good: r->caller is
 * set and then(r) is called, at once or later; else it is answered.
 */
void http_auth(struct http_request *r, http_fn *then);

/* The request ends: its caller may be forgotten, its places in the limits are given back. Repeatable. */
void http_auth_end(struct http_request *r);

/* For what lasts (streams): is the key still good? Asks again as above without waiting for the answer, so call it about once a second. */
bool http_auth_alive(struct http_request *r);

/* Keys were changed by this server: look each of them up again at its next use. */
void http_auth_forget(struct http_server *s);

/* ---- permissions --------------------------------------------------------------------------------------------------------- */

/*
 * By role, or by a named permission: the route's id ("queue_claim"), or that with its first '_' as ':' ("queue:claim"). Also for the ops of a
 * batch, each with its own route.
 */
#define HTTP_PERMISSION_BYTES 80
bool        http_may(const struct http_caller *c, const struct http_route *route);
const char *http_permission_name(enum http_permission permission); /* "open", "any", "read", … */
/* A route's id as a named permission: its first '_' is a ':'. */
void http_permission_of(const struct http_route *route, char ret[HTTP_PERMISSION_BYTES]);

/* Count and log that the caller lacks the permission of a route: an op of a batch is not answered with 403. */
void http_note_forbidden(struct http_request *r, const struct http_route *route);
/* The 403 for a route, naming the permission that is missing; counted and logged. */
void http_forbid(struct http_request *r, const struct http_route *route);

#endif
