/*
 * scope.h: decides whether the caller may use a name. API keys may have a prefix, and runs of an
 * app belong to the app. These are the rules; authorise.c applies them.
 */
#ifndef IL_HTTP_SCOPE_H
#define IL_HTTP_SCOPE_H

#include "http/http.h"

enum http_scope {
    HTTP_SCOPE_OK,
    HTTP_SCOPE_UNKNOWN,       /* the owner could not be looked up: not applied, LIMIT_EXCEEDED */
    HTTP_SCOPE_HIDDEN,        /* a read outside the prefix: not found */
    HTTP_SCOPE_FORBIDDEN,     /* a write */
    HTTP_SCOPE_RESERVED,      /* a run or a key of an app, or a stored response of the server */
    HTTP_SCOPE_NO_PERMISSION, /* in a batch: its route is not permitted */
    HTTP_SCOPE_BY_ID,         /* it names a run or a job by id: look it up first */
};

/* Check an op by the prefix. The prefix of a listing is narrowed to the caller's. */
enum http_scope http_scope(const struct http_caller *c, il_op *op);
/* Does the op start or change a run that may be an app's, other than through the app's own
 * routes? Then http_scope_run() decides by the key of the run: OK or RESERVED. */
bool            http_scope_asks_app(const struct http_request *r, const il_op *op);
enum http_scope http_scope_run(const struct http_request *r, const char *key);
/* Does the op take or change a key that an app keeps for itself, other than through the app's own
 * routes? */
bool http_scope_is_app_key(const struct http_request *r, const il_op *op);
/* Is a name within the prefix? */
bool http_scope_has(const struct http_caller *c, const char *name);
/* The same for the caller of a request: the judge of most routes that are JUDGED (route.h). */
bool http_scope_sees(const struct http_request *r, const char *name);
/* A listing of the names that begin with `asked` (NULL: of all names) shows those that begin with
 * the result: `asked` or the caller's prefix, whichever is longer. NULL: no name begins with both.
 */
const char *http_scope_narrow(const struct http_caller *c, const char *asked);

#endif
