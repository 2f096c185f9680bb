/*
 * cache.h: one-line helpers for ops on cached values.
 */
#ifndef T_CACHE_H
#define T_CACHE_H

#include "harness/store.h"

struct t_cache_args {
    int         unused_;
    int64_t     ttl_ms; /* CACHE_FILL; 0 = 10 s */
    int64_t     grace_ms;
    int64_t     lease_ms;
    uint64_t    fence; /* CACHE_LOOKUP, CACHE_GET: what was waited for */
    uint32_t    chance;
    int32_t     code;
    uint32_t    flags;
    size_t      bytes; /* of the value; 0 = as long as the text */
    const char *tenant;
};

#define T_CACHE_ARGS(...) ((struct t_cache_args){ .unused_ = 0, __VA_ARGS__ })

#define t_cache_get(s, key, ...) \
    t_op_run(s, NULL, t_cache_op(IL_OP_CACHE_GET, key, NULL, 0, NULL, T_CACHE_ARGS(__VA_ARGS__)))
#define t_cache_lookup(s, key, holder, ...) \
    t_op_run(s, NULL,                       \
             t_cache_op(IL_OP_CACHE_LOOKUP, key, holder, 0, NULL, T_CACHE_ARGS(__VA_ARGS__)))
#define t_cache_fill(s, key, holder, token, value, ...) \
    t_op_run(s, NULL,                                   \
             t_cache_op(IL_OP_CACHE_FILL, key, holder, token, value, T_CACHE_ARGS(__VA_ARGS__)))
#define t_cache_abandon(s, key, holder, token, ...) \
    t_op_run(s, NULL,                               \
             t_cache_op(IL_OP_CACHE_ABANDON, key, holder, token, NULL, T_CACHE_ARGS(__VA_ARGS__)))
#define t_cache_drop(s, key, ...) \
    t_op_run(s, NULL, t_cache_op(IL_OP_CACHE_DROP, key, NULL, 0, NULL, T_CACHE_ARGS(__VA_ARGS__)))
#define t_cache_stats(s, prefix, ...) \
    t_op_run(s, NULL,                 \
             t_cache_op(IL_OP_CACHE_STATS, prefix, NULL, 0, NULL, T_CACHE_ARGS(__VA_ARGS__)))

/* Build an op without applying it. For CACHE_STATS `key` is the prefix. */
il_op t_cache_op(il_op_type type, const char *key, const char *holder, uint64_t token,
                 const char *value, struct t_cache_args a);

/* Build and fill at once: a look-up that leads, then the fill. Its token. */
#define t_cache_put(s, key, value, ...) t_cache_put_(s, key, value, T_CACHE_ARGS(__VA_ARGS__))
uint64_t t_cache_put_(struct t_store *s, const char *key, const char *value, struct t_cache_args a);

/* The op has this status and shows this text as its value; NULL: it shows none. */
#define T_SHOWS(op, status, text) t_shows(op, status, text, __FILE__, __LINE__)
const il_op *t_shows(const il_op *op, il_status status, const char *text, const char *file,
                     int line);

#endif
