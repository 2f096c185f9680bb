/*
 * scope.c: rules for keys with a prefix and for runs of apps. Outside the prefix, names are not
 * found by reads and forbidden to writes; listings show only names inside. Only the app changes its
 * runs.
 */
#include "http/scope.h"

#include "core/op.h"
#include "http/app.h"

bool
http_scope_has(const struct http_caller *c, const char *name)
{
    return c == NULL || c->prefix[0] == '\0' ||
           (name != NULL && strncmp(name, c->prefix, strlen(c->prefix)) == 0);
}

bool
http_scope_sees(const struct http_request *r, const char *name)
{
    return http_scope_has(r->caller, name);
}

static enum http_scope
judge(const struct http_caller *c, const il_op *op, const char *name)
{
    if (http_scope_has(c, name))
        return HTTP_SCOPE_OK;
    return il__op_writes(op->type) ? HTTP_SCOPE_FORBIDDEN : HTTP_SCOPE_HIDDEN;
}

const char *
http_scope_narrow(const struct http_caller *c, const char *asked)
{
    if (asked == NULL || strncmp(c->prefix, asked, strlen(asked)) == 0)
        return c->prefix;
    return http_scope_has(c, asked) ? asked : NULL;
}

static enum http_scope
narrow(const struct http_caller *c, il_op *op)
{
    const char *both = http_scope_narrow(c, op->in.list.prefix);

    if (both == NULL)
        return HTTP_SCOPE_HIDDEN;
    op->in.list.prefix = both;
    return HTTP_SCOPE_OK;
}

enum http_scope
http_scope(const struct http_caller *c, il_op *op)
{
    if (c == NULL || c->prefix[0] == '\0')
        return HTTP_SCOPE_OK;
    switch (op->type) {
    case IL_OP_LIST:
    case IL_OP_CACHE_STATS:
    case IL_OP_ORDER_LIST:
        return narrow(c, op);
    case IL_OP_QUEUE_LIST:
    case IL_OP_RUN_LIST: /* of one queue or key, or of all */
        return op->key != NULL ? judge(c, op, op->key) : narrow(c, op);
    case IL_OP_CRON_LIST: /* of one queue, or of all; by the name of the entry in any case */
        if (op->key != NULL && !http_scope_has(c, op->key))
            return HTTP_SCOPE_HIDDEN;
        return narrow(c, op);
    case IL_OP_CRON_SET:
        return http_scope_has(c, op->key) ? judge(c, op, op->in.cron.name) : HTTP_SCOPE_FORBIDDEN;
    case IL_OP_CRON_REMOVE:
        return judge(c, op, op->in.cron.name);
    case IL_OP_SWEEP: /* affects other callers' objects */
        return HTTP_SCOPE_FORBIDDEN;
    case IL_OP_RUN_STAGE:
    case IL_OP_RUN_FINISH:
    case IL_OP_RUN_CANCEL:
    case IL_OP_RUN_GET:
    case IL_OP_RUN_LOG:
    case IL_OP_JOB_HEARTBEAT:
    case IL_OP_JOB_FINISH:
    case IL_OP_JOB_FAIL:
    case IL_OP_JOB_SNOOZE:
    case IL_OP_JOB_CANCEL:
    case IL_OP_JOB_RETRY:
    case IL_OP_JOB_SEAL:
    case IL_OP_JOB_GET:
        return HTTP_SCOPE_BY_ID;
    /* the job's own id and its parent's may belong to jobs of another queue */
    case IL_OP_JOB_PUSH:
        return judge(c, op, op->key) == HTTP_SCOPE_OK ? HTTP_SCOPE_BY_ID : HTTP_SCOPE_FORBIDDEN;
    case IL_OP_RUN_START:
        return judge(c, op, op->key) == HTTP_SCOPE_OK ? HTTP_SCOPE_BY_ID : HTTP_SCOPE_FORBIDDEN;
    default:
        return judge(c, op, op->key);
    }
}

bool
http_scope_asks_app(const struct http_request *r, const il_op *op)
{
#ifdef IL_MUTANT_app_runs_forged
    return false;
#endif
    return op->type >= IL_OP_RUN_START && op->type <= IL_OP_RUN_CANCEL &&
           http_route_app(r->route) == NULL && (r->route->flags & HTTP_FORCES) == 0;
}

bool
http_scope_is_app_key(const struct http_request *r, const il_op *op)
{
    bool takes = op->type == IL_OP_ACQUIRE || op->type == IL_OP_RUN_START ||
                 op->type == IL_OP_CACHE_LOOKUP || op->type == IL_OP_CACHE_FILL ||
                 op->type == IL_OP_CACHE_ABANDON || op->type == IL_OP_CACHE_DROP;

    return takes && http_route_app(r->route) == NULL && http_app_keeps(r->server, op->key);
}

enum http_scope
http_scope_run(const struct http_request *r, const char *key)
{
    return http_app_owns(r->server, key) ? HTTP_SCOPE_RESERVED : HTTP_SCOPE_OK;
}
