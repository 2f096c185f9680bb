/*
 * open.h: a handle on a user's database with one connection, and statements with texts as values.
 */
#ifndef T_GUARD_OPEN_H
#define T_GUARD_OPEN_H

#include "guard/guard.h"

/* timeout_ms: for everything; 0 = the defaults. */
static inline il_status
t_guard_new(const char *url, int64_t timeout_ms, il_guard **ret, il_error *reterr)
{
    il_guard_opts o = IL_GUARD_OPTS_INIT;

    o.lock_timeout_ms    = timeout_ms;
    o.connect_timeout_ms = timeout_ms < 15000 ? timeout_ms : 15000;
    o.conns_max          = 1;
    return il_guard_open(url, &o, ret, reterr);
}

static inline il_status
t_guard_open(const char *url, int64_t timeout_ms, il_guard **ret, il_error *reterr)
{
    il_guard *g = NULL;

    il_status st = t_guard_new(url, timeout_ms, &g, reterr);
    if (st == IL_OK)
        st = il_guard_connect(g, reterr);
    if (st == IL_OK)
        *ret = g;
    else
        il_guard_close(g);
    return st;
}

static inline il_status
t_guard_begin(il_guard *g, const il_guard_fence *fence, bool read_only, il_guard_tx **ret,
              il_error *reterr)
{
    il_guard_tx_opts o = IL_GUARD_TX_OPTS_INIT;

    o.fences   = fence;
    o.n_fences = fence != NULL ? 1 : 0;
    o.flags    = read_only ? IL_GUARD_READ_ONLY : 0;
    return il_guard_begin(g, &o, ret, reterr);
}

static inline il_status
t_guard_exec(il_guard_tx *tx, const char *sql, const char *const *values, size_t n,
             il_guard_row_fn *each, void *cookie, int64_t *ret_n_changed, il_error *reterr)
{
    il_guard_value texts[IL_GUARD_VALUES_MAX + 1];

    for (size_t i = 0; i < n && i <= IL_GUARD_VALUES_MAX; i++)
        texts[i] = il_guard_text(values[i]);
    const il_guard_query q = { .sql      = sql,
                               .values   = texts,
                               .n_values = n,
                               .flags    = IL_GUARD_AS_TEXT,
                               .each     = each,
                               .cookie   = cookie };
    return il_guard_exec(tx, &q, ret_n_changed, reterr);
}

static inline const char *
t_guard_text(const il_guard_row *row, size_t i)
{
    return row->values[i].type == IL_GUARD_NULL ? NULL : (const char *)row->values[i].data;
}

#endif
