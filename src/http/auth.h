/*
 * auth.h: authentication and authorisation: from the API key in a request's head to a struct
 * http_caller. Used on the loop only.
 *
 * Valid keys are cached by their HMAC. A key last looked up more than 500 ms ago is looked up again
 * by the errand thread, and all requests with that key wait for the one lookup, so a revocation,
 * expiry or change takes effect within a second. While the data store cannot be reached, cached
 * results stay valid for another 5 s; after that requests are refused with 503 rather than admitted
 * on stale data.
 *
 * An unknown key costs the same as a known one (one HMAC, one lookup of the HMAC) and is cached as
 * unknown for as long, so a flood of wrong keys does not reach the data store. Each failure takes a
 * token from the bucket of the client's address.
 *
 * Sessions of the admin page (ui.h) name a key by its id. They have entries of their own in the
 * cache, by the HMAC of the id, which are looked up by id; the same rules hold for them.
 */
#ifndef IL_HTTP_AUTH_H
#define IL_HTTP_AUTH_H

#include "http/http.h"
#include "http/route.h"
#include "http/scope.h"

il_status http_auth_open(struct http_server *s, il_error *reterr) MUST_USE;
void      http_auth_close(struct http_server *s); /* after the last request and the last errand */

/*
 * Check a request against its key, the route's permission and its tenant's rate. The head must be
 * complete and the route set and not open. On success r->caller is set and then(r) is called,
 * immediately or later; otherwise the request is answered.
 */
void http_auth(struct http_request *r, http_fn *then);

/* The same with a key that came in the body, instead of a header. */
void http_auth_key(struct http_request *r, const char *key, http_fn *then);
/* The same with the id of a key: the caller has checked that the client may use it. */
void http_auth_id(struct http_request *r, const char *key_id, http_fn *then);
/* Answer a wrong key, or something that stands for one: 401, which counts against the address; 429
 * if that has had too many. */
void http_auth_refuse(struct http_request *r, const char *message);

/* The request ends: release its caller and its share of the limits. Safe to repeat. */
void http_auth_end(struct http_request *r);

/*
 * For long-lived requests (streams): is the key, or the session, still valid? Starts a new lookup
 * as above without waiting for the result, so call it about once a second.
 */
bool http_auth_alive(struct http_request *r);

/* This server changed keys: look each one up again at its next use. */
void http_auth_forget(struct http_server *s);

/* ---- permissions ----------------------------------------------------------------------------- */

/*
 * By role, or by a named permission: the route's id ("queue_claim"), or the id with its first '_'
 * replaced by ':' ("queue:claim"); for a route with a grant, the grant or one below it. Also used
 * for the ops of a batch, each with its own route.
 */
#define HTTP_PERMISSION_BYTES 80
bool        http_may_call(const struct http_caller *c, const struct http_route *route);
const char *http_permission_name(enum http_permission permission); /* "open", "any", "read", … */
/* The named permission of a route: its grant, else its id with the first '_' replaced by ':'. */
void http_permission_of(const struct http_route *route, char ret[HTTP_PERMISSION_BYTES]);

/*
 * May a key that is limited to a prefix call the route (struct http_names)? The names that it then
 * uses are judged op by op (authorise.c), or by the handler.
 */
bool http_may_names(const struct http_caller *c, const struct http_route *route);
/* For handlers of routes whose names are JUDGED: what the function in the row says of a name. */
bool http_may_see(const struct http_request *r, const char *name);

/*
 * May the caller use objects of this tenant (NULL: of every tenant)? The role admin reaches the
 * whole server; the other roles and named permissions (admin:key_create) only the key's own tenant.
 * To other callers a tenant appears not to exist.
 */
bool http_may_reach(const struct http_caller *c, const char *tenant);

/* ---- refusals: each is counted, and logged as auth.forbidden, once --------------------------- */

/* 403: the caller lacks the permission of a route, which is named. */
void http_forbid(struct http_request *r, const struct http_route *route);
/* 403: the prefix of the caller's key does not fit a route; says which kind of key would. */
void http_forbid_names(struct http_request *r, const struct http_route *route);
/* 403 for any other reason. details: JSON, or NULL. */
void http_refuse(struct http_request *r, const char *details, const char *message);
/* 403: the verdict on an op is FORBIDDEN or RESERVED. */
void http_refuse_op(struct http_request *r, enum http_scope verdict);
/* The same, or NO_PERMISSION, for one of several ops: its {"status":…,"message":…}, into r->out. */
void http_say_refused(struct http_request *r, enum http_scope verdict, il_op_type type);

#endif
