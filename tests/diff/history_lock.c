/*
 * history_lock.c: acquire, renew, release, break, and read ops.
 */
#include "diff/history.h"

static void
make_acquire(struct t_rng *r, const struct taste *t, struct step *st)
{
    static const int64_t ttls[]  = { 1000, 2000, 3000, 5000, 30000 };
    static const int64_t waits[] = { 1000, 2000, 10000, 20000, IL_FOREVER };
    il_lock_in          *in      = &st->op.in.lock;

    st->op.type   = IL_OP_ACQUIRE;
    in->ttl_ms    = PICK(r, ttls);
    in->wait_ms   = t_rng_below(r, 10) < t->wait_mix ? PICK(r, waits) : 0;
    in->settle_ms = t->settles && t_rng_one_in(r, 3) ? 1000 * (int64_t)(1 + t_rng_below(r, 4)) : 0;
    if (t->deep && t_rng_one_in(r, 2))
        in->ttl_ms = 30000;
    if (t->deep && in->wait_ms != 0 && t_rng_one_in(r, 2))
        in->wait_ms = IL_FOREVER;
    in->place = st->i_handle % 2 == 0 ? "here" : NULL;
    in->meta  = st->i_handle == 1 ? "meta" : NULL;
    if (t->mode_mix == 0 && !t_rng_one_in(r, 20))
        return;
    unsigned dice = t_rng_below(r, t->mode_mix == 2 ? 10 : 6);
    if (dice >= 3) {
        in->mode    = IL_MODE_PERMIT;
        in->permits = t_rng_one_in(r, 8) ? 3 : 2;
    } else if (dice >= 1) {
        in->mode = IL_MODE_SHARED;
    }
}

static void
make_list(struct t_rng *r, struct step *st)
{
    st->op.type  = IL_OP_LIST;
    st->op.flags = t_rng_one_in(r, 2) ? IL_LIST_WAITERS : 0;
    st->op.in.list =
        (il_list_in){ .prefix = t_rng_one_in(r, 2) ? "a:" : NULL, .limit = 1 + t_rng_below(r, 5) };
    if (t_rng_one_in(r, 3)) {
        st->op.type           = IL_OP_ORDER_LIST;
        st->op.flags          = 0;
        st->op.in.list.prefix = NULL;
    }
    st->op.key    = NULL;
    st->op.holder = NULL;
}

/* A report of a refusal, or a listing of what happened to the key. */
static void
make_history(struct t_rng *r, struct step *st)
{
    static const char *const callers[] = { "{\"command\":\"x\"}", "y", "z" };

    st->op.type   = t_rng_one_in(r, 2) ? IL_OP_REFUSED : IL_OP_HISTORY;
    st->op.holder = NULL;
    if (st->op.type == IL_OP_HISTORY) {
        st->op.in.list = (il_list_in){ .limit = 1 + t_rng_below(r, 25) };
        return;
    }
    st->op.in.refused = (il_refused_in){
        .meta    = PICK(r, callers),
        .other   = t_rng_one_in(r, 2) ? "{\"pid\":7}" : NULL,
        .reason  = t_rng_one_in(r, 3) ? "skipped" : NULL,
        .count   = t_rng_below(r, 5),
        .span_ms = t_rng_below(r, 10000),
        .held_ms = t_rng_below(r, 10000),
    };
}

void
history_lock(struct t_rng *r, const struct taste *t, size_t i_step UNUSED, struct step *st)
{
    static const il_op_type types[] = {
        IL_OP_RENEW,   IL_OP_RENEW, IL_OP_RELEASE, IL_OP_RELEASE,
        IL_OP_RELEASE, IL_OP_BREAK, IL_OP_GET,     IL_OP_CHECK_FENCE
    };

    if (st->kind == STEP_LIST) {
        make_list(r, st);
        return;
    }
    if (t_rng_one_in(r, 8)) {
        make_history(r, st);
        return;
    }
    if (t_rng_below(r, 100) < (t->deep ? 75 : 55)) {
        make_acquire(r, t, st);
        return;
    }
    st->op.type     = PICK(r, types);
    st->takes_fence = st->op.type != IL_OP_GET;
    if (st->op.type == IL_OP_RENEW && t_rng_one_in(r, 3))
        st->op.in.lock.ttl_ms = 1000 * (int64_t)(1 + t_rng_below(r, 10));
    if (st->op.type == IL_OP_BREAK) {
        st->op.flags          = t_rng_one_in(r, 2) ? IL_BREAK_NOW : 0;
        st->op.in.lock.reason = "test";
    }
}
