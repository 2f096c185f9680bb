/*
 * history_once.c: idempotency keys: attempts that begin, finish, abandon and collide.
 */
#include "diff/history.h"

static void
make_begin(struct t_rng *r, struct step *st)
{
    static const int64_t     ttls[]   = { 0, 1000, 2000, 5000 };
    static const int64_t     keeps[]  = { 0, 1000, 5000, 60000 };
    static const struct blob prints[] = { { "f1", 2 },
                                          { "f1", 2 },
                                          { "f1", 2 },
                                          { "f1", 2 },
                                          { "f2", 2 },
                                          { NULL, 0 },
                                          { "f\0"
                                            "1",
                                            3 } };
    struct blob              print    = PICK(r, prints);

    st->op.type    = IL_OP_ONCE_BEGIN;
    st->op.in.once = (il_once_in){
        .fingerprint       = print.data,
        .fingerprint_bytes = print.n_bytes,
        .lease_ms          = PICK(r, ttls),
        .keep_ms           = PICK(r, keeps),
        .meta              = t_rng_one_in(r, 2) ? NULL : t_id('m', t_rng_below(r, 3)),
    };
}

void
history_once(struct t_rng *r, const struct taste *t UNUSED, size_t i_step, struct step *st)
{
    unsigned    dice = t_rng_below(r, 100);
    struct blob blob = history_blob(r);

    if (!t_rng_one_in(r, 4)) /* new keys all the time, for an answer stays long */
        st->op.key = t_id('o', t_near(r, i_step, 12));
    if (st->kind == STEP_LIST || dice >= 88) { /* there is no listing */
        st->kind    = STEP_OP;
        st->op.type = IL_OP_ONCE_GET;
    } else if (dice < 50) {
        make_begin(r, st);
    } else {
        st->takes_fence = true;
        st->op.type     = dice < 76 ? IL_OP_ONCE_FINISH : IL_OP_ONCE_ABANDON;
        if (st->op.type == IL_OP_ONCE_FINISH)
            st->op.in.once = (il_once_in){ .response       = blob.data,
                                           .response_bytes = blob.n_bytes,
                                           .code           = t_rng_one_in(r, 4) ? -1 : 200 };
    }
}
