/*
 * cache.c: cached values: input checks, states and decisions. No I/O, no clock.
 */
#include "core/cache.h"

#include <inttypes.h>

#include "base/error.h"
#include "core/key.h"
#include "core/limits.h"
#include "core/op.h"

/* ---- inputs ---------------------------------------------------------------------------------- */

static il_status
check_lookup(il_op *op, il_error *reterr)
{
    il_cache_in *in = &op->in.cache;

    if (op->fence >= IL__FENCE_END)
        return il__error_set(reterr, IL_INVAL, "invalid fence %" PRIu64, op->fence);
    if (op->type == IL_OP_CACHE_GET)
        return IL_OK;
    if (in->lease_ms == 0)
        in->lease_ms = IL_TTL_MS_DEFAULT;
    if (in->lease_ms < IL_TTL_MS_MIN || in->lease_ms > IL_TTL_MS_MAX)
        return il__error_set(reterr, IL_INVAL, "a build lease of %" PRId64 " ms is outside 1s..24h",
                             in->lease_ms);
    return il__op_check_holder(op, reterr);
}

static il_status
check_fill(const il_op *op, il_error *reterr)
{
    const il_cache_in *in = &op->in.cache;

    if (in->ttl_ms < 1 || in->ttl_ms > IL_DELAY_MS_MAX)
        return il__error_set(reterr, IL_INVAL, "a TTL of %" PRId64 " ms is outside 1ms..366d",
                             in->ttl_ms);
    if (in->grace_ms < 0 || in->grace_ms > IL_DELAY_MS_MAX)
        return il__error_set(reterr, IL_INVAL, "a grace of %" PRId64 " ms is outside 0..366d",
                             in->grace_ms);
    return il__op_check_blob("value", in->value, in->value_bytes, IL_BLOB_BYTES_MAX, reterr);
}

il_status
il__cache_check(il_op *op, il_error *reterr)
{
    if (op->type == IL_OP_CACHE_STATS)
        return il__op_check_page(op, IL_KEY_BYTES_MAX, reterr);
    if (il__op_check_key(op, reterr) != IL_OK)
        return IL_INVAL;
    if (op->type == IL_OP_CACHE_DROP)
        return IL_OK;
    if (op->type == IL_OP_CACHE_GET || op->type == IL_OP_CACHE_LOOKUP)
        return check_lookup(op, reterr);
    if (il__op_check_holder(op, reterr) != IL_OK || il__op_check_fence(op, reterr) != IL_OK)
        return IL_INVAL;
    return op->type == IL_OP_CACHE_FILL ? check_fill(op, reterr) : IL_OK;
}

/* ---- early refresh --------------------------------------------------------------------------- */

#define LN_2_Q16 45426 /* ln(2) * 2^16 */
#define LOG_BITS 16    /* fraction bits of the logarithm */

/* (32 - log2(chance)) * ln(2) */
int64_t
il__cache_early_q16(uint32_t chance)
{
    if (chance == 0)
        return 0;
    int      whole = 31 - __builtin_clz(chance);
    uint64_t x     = (uint64_t)chance << (31 - whole); /* chance / 2^whole, in [1, 2), times 2^31 */
    int64_t  log   = whole;

    /* Squaring doubles the logarithm; its next bit is whether that carries over into [2, 4). */
    for (int i = 0; i < LOG_BITS; i++) {
        x   = (x * x) >> 31;
        log = log * 2 + (int64_t)(x >> 32);
        x >>= x >> 32;
    }
    return (((INT64_C(32) << LOG_BITS) - log) * LN_2_Q16) >> LOG_BITS;
}

bool
il__cache_is_early(int64_t left_ms, int64_t build_ms, uint32_t chance)
{
    /* Even the smallest chance allows no more than 23 times the build time to be left: most calls
     * end here. */
    build_ms = MIN(build_ms, IL_DELAY_MS_MAX);
    if (chance == 0 || left_ms > 23 * build_ms)
        return false;
    return left_ms <= (build_ms * il__cache_early_q16(chance)) >> 16;
}

/* ---- decisions ------------------------------------------------------------------------------- */

bool
il__cache_is_fresh(const struct il__cache_value *v, int64_t wall_ms)
{
    return wall_ms < v->fresh_until;
}

bool
il__cache_is_stale(const struct il__cache_value *v, int64_t wall_ms)
{
    return wall_ms >= v->fresh_until && wall_ms < v->stale_until;
}

/* The value unless it has expired, and the build unless it is dead. */
static const struct il__cache_value *
value_of(const struct il__cache *c)
{
    return c->value != NULL && c->wall_ms < c->value->purge_at ? c->value : NULL;
}

static const struct il__cache_build *
build_of(const struct il__cache *c)
{
    return c->build != NULL && c->now_ms < c->build->expires_ms ? c->build : NULL;
}

/* Fill in the outputs common to all answers that contain a value. */
static unsigned
show(il_op *op, const struct il__cache_value *v, int64_t wall_ms)
{
    op->out.age_ms = MAX(wall_ms - v->began_at, 0);
    op->out.code   = v->code;
    if (v->negative)
        op->out.flags |= IL_OUT_NEGATIVE;
    return IL__CACHE_SHOW;
}

static unsigned
hit(il_op *op, const struct il__cache_value *v, int64_t wall_ms)
{
    op->status           = IL_HIT;
    op->out.fence        = v->filled;
    op->out.remaining_ms = MAX(v->fresh_until - wall_ms, 0);
    return show(op, v, wall_ms);
}

/* A stale value, since the op may not lead or another holder builds (`b`; NULL: none does). */
static unsigned
stale_hit(il_op *op, const struct il__cache_value *v, const struct il__cache_build *b,
          int64_t wall_ms)
{
    op->status           = IL_STALE_HIT;
    op->out.fence        = b != NULL ? b->token : 0;
    op->out.remaining_ms = v->stale_until - wall_ms;
    return show(op, v, wall_ms);
}

/* `v` is the value, of any age, or NULL; `b` is this holder's own build, or NULL. */
static unsigned
lead(il_op *op, const struct il__cache_value *v, const struct il__cache_build *b, int64_t wall_ms)
{
    unsigned steps = b != NULL ? IL__CACHE_RENEW : IL__CACHE_LEAD;

    op->status           = IL_LEAD;
    op->out.remaining_ms = op->in.cache.lease_ms;
    if (b != NULL) {
        op->out.fence = b->token;
        op->out.flags |= IL_OUT_RENEWED;
    }
    if (v != NULL && il__cache_is_fresh(v, wall_ms))
        op->out.flags |= IL_OUT_EARLY;
    if (v != NULL && wall_ms < v->stale_until)
        steps |= show(op, v, wall_ms);
    return steps;
}

/* A fresh value; `b` is another holder's build, or NULL. */
static unsigned
fresh(il_op *op, const struct il__cache_value *v, const struct il__cache_build *b, int64_t wall_ms)
{
    bool early =
        b == NULL && il__cache_is_early(v->fresh_until - wall_ms, v->build_ms, op->in.cache.chance);

    if (early && op->type == IL_OP_CACHE_LOOKUP)
        return lead(op, v, NULL, wall_ms);
    if (early)
        op->out.flags |= IL_OUT_EARLY;
    return hit(op, v, wall_ms);
}

unsigned
il__cache_lookup(il_op *op, const struct il__cache *c)
{
    const struct il__cache_value *v         = value_of(c);
    const struct il__cache_build *b         = build_of(c);
    bool                          may_build = op->type == IL_OP_CACHE_LOOKUP;

    if (may_build && b != NULL && strcmp(b->holder, op->holder) == 0)
        return lead(op, v, b, c->wall_ms);
    if (v != NULL && op->fence != 0 && v->filled >= op->fence)
        return hit(op, v, c->wall_ms);
    if (v != NULL && il__cache_is_fresh(v, c->wall_ms))
        return fresh(op, v, b, c->wall_ms);
    if (v != NULL && il__cache_is_stale(v, c->wall_ms) && (b != NULL || !may_build))
        return stale_hit(op, v, b, c->wall_ms);
    if (b != NULL) {
        op->status           = IL_WAIT;
        op->out.fence        = b->token;
        op->out.remaining_ms = b->expires_ms - c->now_ms;
        return 0;
    }
    if (may_build)
        return lead(op, v, NULL, c->wall_ms);
    op->status = IL_NOT_FOUND;
    return 0;
}

/* This op's build, dead or alive. */
static bool
is_build_of(const struct il__cache_build *b, const il_op *op)
{
    return b != NULL && b->token == op->fence && strcmp(b->holder, op->holder) == 0;
}

static bool
is_same(const struct il__cache_value *v, const il_op *op)
{
    const il_cache_in *in = &op->in.cache;

    return v->negative == ((op->flags & IL_CACHE_NEGATIVE) != 0) && v->code == in->code &&
           v->data_bytes == in->value_bytes &&
           (in->value_bytes == 0 || memcmp(v->data, in->value, in->value_bytes) == 0);
}

/* Callers that wait for a value get it at any age: it is kept for a while even if it is too old for
 * others. */
static int64_t
purge_at(const struct il__cache_value *v, int64_t wall_ms)
{
    return MAX(v->stale_until, wall_ms + IL__CACHE_KEEP_MS);
}

static struct il__cache_value
value_made(const il_op *op, const struct il__cache *c, const struct il__cache_build *b)
{
    const il_cache_in     *in = &op->in.cache;
    struct il__cache_value v  = {
         .filled      = b->token,
         .began_at    = b->began_at,
         .fresh_until = b->began_at + in->ttl_ms,
         .stale_until = b->began_at + in->ttl_ms + in->grace_ms,
         .build_ms    = MAX(c->now_ms - b->began_ms, 1),
         .code        = in->code,
         .negative    = (op->flags & IL_CACHE_NEGATIVE) != 0,
         .data        = in->value,
         .data_bytes  = in->value_bytes,
    };

#ifdef IL_MUTANT_fresh_from_the_end
    v.fresh_until += c->wall_ms - b->began_at;
    v.stale_until += c->wall_ms - b->began_at;
#endif
    v.purge_at = purge_at(&v, c->wall_ms);
    return v;
}

bool
il__cache_fill(il_op *op, const struct il__cache *c, struct il__cache_value *ret)
{
    const struct il__cache_value *v = value_of(c);
    const struct il__cache_build *b = build_of(c);

    if (is_build_of(b, op)) {
        *ret                 = value_made(op, c, b);
        op->status           = IL_OK;
        op->out.fence        = b->token;
        op->out.remaining_ms = MAX(ret->fresh_until - c->wall_ms, 0);
        return true;
    }
    if (v != NULL && v->filled == op->fence) {
        op->out.fence        = v->filled;
        op->out.remaining_ms = MAX(v->fresh_until - c->wall_ms, 0);
        if (is_same(v, op))
            op->status = IL_OK;
        else
            il__op_end(op, IL_MISMATCH, IL__SAY_OTHER_VALUE);
        return false;
    }
    if (b != NULL)
        op->out.fence = b->token;
    else if (v != NULL)
        op->out.fence = v->filled;
    il__op_end(op, IL_STALE, IL__SAY_NOT_THE_BUILD);
    return false;
}

bool
il__cache_abandon(il_op *op, const struct il__cache *c)
{
    op->status = IL_OK;
    if (is_build_of(c->build, op))
        return true;
    if (build_of(c) != NULL) {
        op->out.fence = c->build->token;
        il__op_end(op, IL_STALE, IL__SAY_NOT_THE_BUILD);
    }
    return false;
}

bool
il__cache_drop(const il_op *op, const struct il__cache *c, struct il__cache_value *ret)
{
    const struct il__cache_value *v = value_of(c);

    if (v == NULL || (op->flags & IL_DROP_STALE) == 0)
        return false;
    *ret = *v;
    if (il__cache_is_fresh(v, c->wall_ms)) {
        ret->stale_until = c->wall_ms + (v->stale_until - v->fresh_until);
        ret->fresh_until = c->wall_ms;
        ret->purge_at    = purge_at(ret, c->wall_ms);
    }
    return true;
}
