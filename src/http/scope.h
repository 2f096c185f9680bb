/*
 * scope.h: keys with a prefix: may such a caller name this?
 */
#ifndef IL_HTTP_SCOPE_H
#define IL_HTTP_SCOPE_H

#include "http/http.h"

enum http_scope {
    HTTP_SCOPE_OK,
    HTTP_SCOPE_HIDDEN,    /* a read of something outside: not found */
    HTTP_SCOPE_FORBIDDEN, /* a write */
    HTTP_SCOPE_BY_ID,     /* it names a run or a job by its id: look first (http_go() does) */
};

/* Before an op is applied. The prefix of a listing is narrowed to the caller's. BY_ID counts as OK for whoever has looked. */
enum http_scope http_scope(const struct http_caller *c, il_op *op);
/* Is a name within the prefix? */
bool http_scope_has(const struct http_caller *c, const char *name);
/* The answer for anything but OK. */
void http_scope_refuse(struct http_request *r, enum http_scope scope);

/* Does an op change the store? */
bool http_op_writes(il_op_type type);

#endif
