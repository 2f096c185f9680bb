/*
 * cache.h: cached values from the inside; the rules are in cache.md.
 *
 * An engine loads the value and the build that it has stored for a key, asks here what an op makes of them, and stores
 * what it is told to. So every engine gives the same answers.
 */
#ifndef IL_CORE_CACHE_H
#define IL_CORE_CACHE_H

#include "base/base.h"

/* What people read. */
#define IL__SAY_OTHER_VALUE "another value was stored"
#define IL__SAY_NOT_THE_BUILD "the build ran out, was dropped, or is not this one"

/* A value, as it was filled. Times are the wall clock's, build_ms is lease time. */
struct il__cache_value {
    uint64_t    filled; /* token of the build that filled it */
    int64_t     began_at;
    int64_t     fresh_until;
    int64_t     stale_until;
    int64_t     purge_at; /* gone from then on */
    int64_t     build_ms; /* at least 1 */
    int32_t     code;
    bool        negative;
    const void *data; /* the engine's; may be left out until it is asked for */
    size_t      data_bytes;
};

/* A build that is under way, or has died. */
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

/* Check the inputs of an op of this family and fill in defaults; tenant is checked. Names that were checked with il__op_name() have their
 * lengths noted. IL_INVAL names the input and the reason. */
il_status il__cache_check(il_op *op, il_error *reterr) MUST_USE;

/* What an engine has to do after a look-up; status and outputs are set but for these. */
enum il__cache_step {
    IL__CACHE_SHOW = 1 << 0, /* give the value's bytes in out.value */
    IL__CACHE_LEAD = 1 << 1, /* store a new build (a dead one makes room); out.fence will be its token */
    IL__CACHE_RENEW = 1 << 2, /* the build lives until now + in.cache.lease_ms */
};

/* CACHE_LOOKUP and CACHE_GET; enum il__cache_step, or'ed. */
unsigned il__cache_lookup(il_op *op, const struct il__cache *c);

/* CACHE_FILL. True: *ret is the value to store (its data is the op's), the build is over, wake. c->value has its data if it was
 * filled with the op's token. */
bool il__cache_fill(il_op *op, const struct il__cache *c, struct il__cache_value *ret);
/* CACHE_ABANDON. True: delete the build, wake. */
bool il__cache_abandon(il_op *op, const struct il__cache *c);
/* CACHE_DROP, for the value. True: *ret is what stays of it; else nothing does. A build is void in any case. */
bool il__cache_drop(const il_op *op, const struct il__cache *c, struct il__cache_value *ret);

/* Whether a value counts as fresh, or as stale. */
bool il__cache_is_fresh(const struct il__cache_value *v, int64_t wall_ms);
bool il__cache_is_stale(const struct il__cache_value *v, int64_t wall_ms);

/*
 * Is it the time for an early refresh of a value that is fresh for left_ms more and took build_ms to build? `chance` is
 * a random number; over all of them the answer is yes with probability exp(-left_ms / build_ms). 0: never. The same on every machine: in
 * integers.
 */
bool il__cache_is_early(int64_t left_ms, int64_t build_ms, uint32_t chance);
/* -ln(chance / 2^32), 16 bits of it behind the point; 0 for 0. It is early when left_ms <= (build_ms * this) >> 16. */
int64_t il__cache_early_q16(uint32_t chance);

#endif
