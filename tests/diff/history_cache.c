/*
 * history_cache.c: lookups; builds that are filled, abandoned, expired or dropped.
 */
#include "diff/history.h"

static void
make_fill(struct t_rng *r, struct step *st)
{
    static const int64_t ttls[]   = { 1, 1000, 2000, 10000, 60000 };
    static const int64_t graces[] = { 0, 1000, 5000, 60000 };
    struct blob          value    = history_blob(r);

    st->op.type     = IL_OP_CACHE_FILL;
    st->op.flags    = t_rng_one_in(r, 6) ? IL_CACHE_NEGATIVE : 0;
    st->op.in.cache = (il_cache_in){
        .value       = value.data,
        .value_bytes = value.n_bytes,
        .ttl_ms      = PICK(r, ttls),
        .grace_ms    = PICK(r, graces),
        .code        = st->op.flags != 0 ? 404 : 0,
    };
}

/* A lookup, or a get: the same without the right to build. */
static void
make_lookup(struct t_rng *r, struct step *st)
{
    static const int64_t  leases[]  = { 0, 1000, 2000, 10000 };
    static const uint32_t chances[] = { 0, 0, 1, UINT32_MAX, UINT32_MAX / 2, 1 << 20 };

    st->op.type            = t_rng_one_in(r, 4) ? IL_OP_CACHE_GET : IL_OP_CACHE_LOOKUP;
    st->op.in.cache.chance = PICK(r, chances);
    if (st->op.type == IL_OP_CACHE_LOOKUP)
        st->op.in.cache.lease_ms = PICK(r, leases);
    st->takes_fence = t_rng_one_in(r, 3); /* it has waited for that one */
}

void
history_cache(struct t_rng *r, const struct taste *t UNUSED, size_t i_step UNUSED, struct step *st)
{
    unsigned dice = t_rng_below(r, 100);

    st->op.key = t_keys[t_rng_below(r, 4)];
    if (st->kind == STEP_LIST || dice >= 95) {
        st->kind              = STEP_OP;
        st->op.type           = IL_OP_CACHE_STATS;
        st->op.in.list.prefix = t_rng_one_in(r, 2) ? "a:" : NULL;
        if (st->op.in.list.prefix == NULL && t_rng_one_in(r, 4))
            st->op.type = IL_OP_USAGE; /* what it adds up is the engine's own */
        st->op.key    = NULL;
        st->op.holder = NULL;
    } else if (dice < 58) {
        make_lookup(r, st);
    } else if (dice < 80) {
        make_fill(r, st);
        st->takes_fence = true;
    } else if (dice < 89) {
        st->op.type     = IL_OP_CACHE_ABANDON;
        st->takes_fence = true;
    } else {
        st->op.type  = IL_OP_CACHE_DROP;
        st->op.flags = t_rng_one_in(r, 2) ? IL_DROP_STALE : 0;
    }
}
