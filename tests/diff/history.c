/*
 * history.c: making random histories. Numbers are few and close to the protocol's own (2 s, 15 s, 60 s),
 * so that things meet.
 */
#include "diff/history.h"

#include <inttypes.h>

const char *const t_keys[N_KEYS] = { "a:1", "a:2", "b:1", "b:2", "c", "d:x", "a:1:sub", "\xc3\xa9:1" };
const char *const t_holders[N_HOLDERS] = { "h1",  "h2", "h3",  "h4",    "j/1",
                                           "j/2", "j",  "u/1", "u/1/2", "h5" };
const char *const t_tenants[N_TENANTS] = { "default", "other" };

/* What makes one history different from the next. */
struct taste {
    unsigned n_keys;
    unsigned n_holders;
    unsigned n_tenants;
    unsigned mode_mix;  /* 0 = exclusive only, 1 = all, 2 = mostly permits */
    unsigned wait_mix;  /* in 10: how many acquires wait */
    unsigned batch_mix; /* in 10: how many ops join a batch */
    bool     settles;
};

static struct taste
taste_of(struct t_rng *r)
{
    return (struct taste){
        .n_keys    = 1 + t_rng_below(r, N_KEYS),
        .n_holders = 2 + t_rng_below(r, N_HOLDERS - 1),
        .n_tenants = t_rng_one_in(r, 4) ? 2 : 1,
        .mode_mix  = t_rng_below(r, 3),
        .wait_mix  = t_rng_below(r, 11),
        .batch_mix = t_rng_one_in(r, 2) ? 0 : 1 + t_rng_below(r, 8),
        .settles   = t_rng_one_in(r, 3),
    };
}

#define PICK(r, array) ((array)[t_rng_below((r), ARRAY_LEN(array))])

static void
make_acquire(struct t_rng *r, const struct taste *t, struct step *st)
{
    static const int64_t ttls[]  = { 1000, 2000, 3000, 5000, 30000 };
    static const int64_t waits[] = { 1000, 2000, 10000, 20000, IL_FOREVER };

    st->type      = IL_OP_ACQUIRE;
    st->ttl_ms    = PICK(r, ttls);
    st->wait_ms   = t_rng_below(r, 10) < t->wait_mix ? PICK(r, waits) : 0;
    st->settle_ms = t->settles && t_rng_one_in(r, 3) ? 1000 * (int64_t)(1 + t_rng_below(r, 4)) : 0;
    if (t->mode_mix == 0 && !t_rng_one_in(r, 20))
        return;
    unsigned dice = t_rng_below(r, t->mode_mix == 2 ? 10 : 6);
    if (dice >= 3) {
        st->mode    = IL_MODE_PERMIT;
        st->permits = t_rng_one_in(r, 8) ? 3 : 2;
    } else if (dice >= 1) {
        st->mode = IL_MODE_SHARED;
    }
}

static void
make_op(struct t_rng *r, const struct taste *t, struct step *st)
{
    static const il_op_type types[] = { IL_OP_RENEW,   IL_OP_RENEW, IL_OP_RELEASE, IL_OP_RELEASE,
                                        IL_OP_RELEASE, IL_OP_BREAK, IL_OP_GET,     IL_OP_CHECK_FENCE };

    st->kind      = STEP_OP;
    st->joins     = t_rng_below(r, 10) < t->batch_mix;
    st->own_names = !t_rng_one_in(r, 8);
    st->i_fence   = t_rng_one_in(r, 5) ? t_rng_below(r, 40) : t_rng_below(r, 6);
    if (t_rng_below(r, 100) < 55) {
        make_acquire(r, t, st);
        return;
    }
    st->type = PICK(r, types);
    if (st->type == IL_OP_RENEW && t_rng_one_in(r, 3))
        st->ttl_ms = 1000 * (int64_t)(1 + t_rng_below(r, 10));
    if (st->type == IL_OP_BREAK && t_rng_one_in(r, 2))
        st->flags = IL_BREAK_NOW;
}

static void
make_step(struct t_rng *r, const struct taste *t, struct step *st)
{
    static const int64_t passes[] = { 1,    10,   500,  999,   1000,  1000,  1001,  1999, 2000,
                                      2001, 3000, 5000, 14999, 15000, 30000, 59999, 60000 };
    static const int64_t walls[]  = { -86400000, 86400000, -1, 1000, -400 * INT64_C(86400000) };
    unsigned             dice     = t_rng_below(r, 100);

    *st = (struct step){
        .i_key    = t_rng_below(r, t->n_keys),
        .i_holder = t_rng_below(r, t->n_holders),
        .i_tenant = t_rng_below(r, t->n_tenants),
        .i_handle = t_rng_below(r, 8),
        .looks    = t_rng_one_in(r, 6),
    };
    if (dice < 76) {
        make_op(r, t, st);
    } else if (dice < 90) {
        st->kind = STEP_PASS;
        st->ms   = t_rng_one_in(r, 6) ? PICK(r, passes) : 1 + t_rng_below(r, 1500);
    } else if (dice < 93) {
        st->kind  = STEP_LIST;
        st->limit = 1 + t_rng_below(r, 5);
        st->flags = t_rng_one_in(r, 2) ? IL_LIST_WAITERS : 0;
    } else if (dice < 97) {
        st->kind  = STEP_SWEEP;
        st->limit = t_rng_one_in(r, 2) ? 0 : 1 + t_rng_below(r, 4);
    } else if (dice < 98) {
        st->kind = STEP_WALL;
        st->ms   = PICK(r, walls);
    } else {
        st->kind = t_rng_one_in(r, 3) ? STEP_REBOOT : STEP_REOPEN;
        st->ms   = t_rng_one_in(r, 2) ? 0 : (int64_t)t_rng_below(r, 100000000);
    }
}

void
history_make(uint64_t seed, struct step *steps, size_t n)
{
    struct t_rng r;

    t_rng_init(&r, seed);
    struct taste t = taste_of(&r);
    for (size_t i = 0; i < n; i++)
        make_step(&r, &t, &steps[i]);
}

bool
history_ranked(uint64_t seed)
{
    return seed % 4 == 3;
}

void
step_print(FILE *out, size_t i, const struct step *st)
{
    static const char *const kinds[STEP_KIND_COUNT] = { "op",   "sweep",  "list",  "pass",
                                                        "wall", "reopen", "reboot" };

    (void)fprintf(out, "%4zu %s", i, kinds[st->kind]);
    if (st->kind == STEP_OP)
        (void)fprintf(out,
                      " %s%s %s/%s %s ttl=%" PRId64 " wait=%" PRId64 " settle=%" PRId64
                      " mode=%s/%u flags=%u fence=-%u%s handle=%u%s",
                      st->joins ? "+" : "", il_op_name(st->type), t_tenants[st->i_tenant],
                      t_keys[st->i_key], t_holders[st->i_holder], st->ttl_ms, st->wait_ms,
                      st->settle_ms, il_mode_name(st->mode), st->permits, st->flags, st->i_fence,
                      st->own_names ? " (its own names)" : "", st->i_handle,
                      st->looks ? " looks" : "");
    else
        (void)fprintf(out, " ms=%" PRId64 " limit=%u flags=%u", st->ms, st->limit, st->flags);
    (void)fputc('\n', out);
}
