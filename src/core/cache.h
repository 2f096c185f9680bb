/*
 * cache.h: internals of cached values; the rules are in cache.md.
 *
 * An engine loads the value and the build stored for a key, calls these functions to decide what
 * the op does with them, and stores the outcome. So every engine gives the same answers.
 */
#ifndef IL_CORE_CACHE_H
#define IL_CORE_CACHE_H

#include "base/base.h"

/* What people read. */
#define IL__SAY_OTHER_VALUE "another value was already stored"
#define IL__SAY_NOT_THE_BUILD "the build has expired, was dropped, or belongs to another builder"

/* A value, as it was filled. Times are wall-clock times; build_ms is in lease time. */
struct il__cache_value {
    uint64_t    filled; /* token of the build that filled it */
    int64_t     began_at;
    int64_t     fresh_until;
    int64_t     stale_until;
    int64_t     purge_at; /* gone from then on */
    int64_t     build_ms; /* at least 1 */
    int32_t     code;
    bool        negative;
    const void *data; /* owned by the engine; may be left out until needed */
    size_t      data_bytes;
};

/* A build that is running or has died. */
struct il__cache_build {
    const char *holder;
    uint64_t    token;
    int64_t     expires_ms; /* lease time */
    int64_t     began_ms;   /* lease time */
    int64_t     began_at;   /* wall clock */
};

/* What is stored for a key; both may be NULL. */
struct il__cache {
    const struct il__cache_value *value;
    const struct il__cache_build *build;
    int64_t                       now_ms;
    int64_t                       wall_ms;
};

/* Check the inputs of an op of this family and fill in defaults; tenant is checked. Lengths of
 * names checked with il__op_name() are recorded. IL_INVAL names the input and the reason. */
il_status il__cache_check(il_op *op, il_error *reterr) MUST_USE;

/* What an engine has to do after a lookup; status and outputs are set except for these. */
enum il__cache_step {
    IL__CACHE_SHOW = 1 << 0, /* return the value's bytes in out.value */
    /* store a new build (replacing a dead one); out.fence will be its token */
    IL__CACHE_LEAD  = 1 << 1,
    IL__CACHE_RENEW = 1 << 2, /* the build lives until now + in.cache.lease_ms */
};

/* CACHE_LOOKUP and CACHE_GET; returns enum il__cache_step flags. */
unsigned il__cache_lookup(il_op *op, const struct il__cache *c);

/* CACHE_FILL. True: store *ret (its data belongs to the op), delete the build and wake waiters.
 * c->value has its data if it was filled with the op's token. */
bool il__cache_fill(il_op *op, const struct il__cache *c, struct il__cache_value *ret);
/* CACHE_ABANDON. True: delete the build and wake waiters. */
bool il__cache_abandon(il_op *op, const struct il__cache *c);
/* CACHE_DROP, for the value. True: *ret is what remains of it; false: delete it. A build is void in
 * any case. */
bool il__cache_drop(const il_op *op, const struct il__cache *c, struct il__cache_value *ret);

/* Whether a value counts as fresh, or as stale. */
bool il__cache_is_fresh(const struct il__cache_value *v, int64_t wall_ms);
bool il__cache_is_stale(const struct il__cache_value *v, int64_t wall_ms);

/*
 * Is it time for an early refresh of a value that stays fresh for left_ms and took build_ms to
 * build? `chance` is a uniform random number; the answer is yes with probability exp(-left_ms /
 * build_ms). 0: never. Uses integer arithmetic, so it gives the same result on every machine.
 */
bool il__cache_is_early(int64_t left_ms, int64_t build_ms, uint32_t chance);
/* -ln(chance / 2^32) as fixed point with 16 fraction bits; 0 for 0. Refresh early when left_ms <=
 * (build_ms * this) >> 16. */
int64_t il__cache_early_q16(uint32_t chance);

#endif
