/*
 * cache.c: one-line helpers for ops on cached values.
 */
#include "harness/cache.h"

il_op
t_cache_op(il_op_type type, const char *key, const char *holder, uint64_t token, const char *value,
           struct t_cache_args a)
{
    il_op op = { .type = type, .flags = a.flags, .tenant = a.tenant, .key = key, .holder = holder };

    op.fence = token != 0 ? token : a.fence;
    if (type == IL_OP_CACHE_STATS) {
        op.key            = NULL;
        op.in.list.prefix = key;
        return op;
    }
    op.in.cache = (il_cache_in){ .lease_ms = a.lease_ms, .chance = a.chance, .code = a.code };
    if (type == IL_OP_CACHE_FILL) {
        op.in.cache.value       = value;
        op.in.cache.value_bytes = a.bytes != 0 || value == NULL ? a.bytes : strlen(value);
        op.in.cache.ttl_ms      = a.ttl_ms != 0 ? a.ttl_ms : 10000;
        op.in.cache.grace_ms    = a.grace_ms;
    }
    return op;
}

uint64_t
t_cache_put_(struct t_store *s, const char *key, const char *value, struct t_cache_args a)
{
    const il_op *op = T_IS(
        t_cache_lookup(s, key, "builder", .tenant = a.tenant, .lease_ms = a.lease_ms), IL_LEAD);
    uint64_t token = op->out.fence;

    (void)T_IS(t_op_run(s, NULL, t_cache_op(IL_OP_CACHE_FILL, key, "builder", token, value, a)),
               IL_OK);
    return token;
}

const il_op *
t_shows(const il_op *op, il_status status, const char *text, const char *file, int line)
{
    (void)t_is(op, status, file, line);
    t_streq(op->out.value, text, "the value", file, line);
    if (text != NULL)
        t_equ(op->out.value_bytes, strlen(text), "bytes of the value", file, line);
    return op;
}
