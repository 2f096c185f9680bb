/*
 * history_run.c: runs: starts with every policy, slots, stages, ends, cancellations, logs.
 */
#include "diff/history.h"

/* A start that repeats an id must name the same key most of the time, or it is only a mismatch. */
static void
make_start(struct t_rng *r, const struct taste *t, size_t i_step, struct step *st)
{
    static const int64_t ttls[]  = { 0, 1000, 2000, 5000, 30000 };
    static const int64_t waits[] = { 0, 1000, 5000, 20000, IL_FOREVER };
    static const int64_t keeps[] = { 0, 1000, 20000, 60000 };
    unsigned             i       = t_near(r, i_step, 3);
    const char          *id      = t_id('r', i);

    st->op.type = IL_OP_RUN_START;
    if (!t_rng_one_in(r, 10))
        st->op.key = t_keys[i % t->n_keys];
    if (!t_rng_one_in(r, 4))
        st->op.holder = id;
    st->op.flags = t_rng_one_in(r, 5) ? IL_RUN_SLOT : 0;
    if (st->op.flags != 0 && t_rng_one_in(r, 2))
        st->op.holder = NULL; /* a slot needs none */
    st->op.in.run = (il_run_in){
        .id         = id,
        .policy     = (il_policy)t_rng_below(r, IL_POLICY_COUNT),
        .queue_max  = t_rng_one_in(r, 3) ? 1 + t_rng_below(r, 3) : 0,
        .ttl_ms     = PICK(r, ttls),
        .wait_ms    = PICK(r, waits),
        .settle_ms  = t->settles && t_rng_one_in(r, 3) ? 2000 : 0,
        .keep_ms    = PICK(r, keeps),
        .trigger    = t_rng_one_in(r, 2) ? "manual" : NULL,
        .by         = t_rng_one_in(r, 3) ? "somebody" : NULL,
        .meta       = t_rng_one_in(r, 3) ? "meta" : NULL,
        .place      = t_rng_one_in(r, 3) ? "here" : NULL,
        .live_max   = t_rng_one_in(r, 4) ? 1 + t_rng_below(r, 5) : 0,
        .day_max    = t_rng_one_in(r, 8) ? 1 + t_rng_below(r, 30) : 0,
        .minute_max = t_rng_one_in(r, 8) ? 1 + t_rng_below(r, 10) : 0,
        .hour_max   = t_rng_one_in(r, 8) ? 1 + t_rng_below(r, 50) : 0,
    };
    if (t->deep) {
        st->op.in.run.live_max = st->op.in.run.day_max = 0;
        st->op.in.run.minute_max = st->op.in.run.hour_max = 0;
        st->op.in.run.queue_max                           = 1000;
        st->op.in.run.wait_ms                             = IL_FOREVER;
        st->op.in.run.ttl_ms                              = 30000;
        if (!t_rng_one_in(r, 6))
            st->op.in.run.policy = IL_POLICY_QUEUE;
    }
}

/* Where the output begins: somewhere in what may be there, or a little too far. */
static void
make_offset(struct t_rng *r, struct step *st)
{
    if (t_rng_one_in(r, 2))
        return;
    st->op.flags         = IL_LOG_AT;
    st->op.in.run.offset = t_rng_below(r, 12);
    if (t_rng_one_in(r, 8))
        st->op.in.run.offset += 70000;
}

static void
make_stage(struct t_rng *r, struct step *st)
{
    static const char *const stages[] = { NULL, "fetch", "render", "" };
    struct blob              log      = history_blob(r);

    st->op.type   = IL_OP_RUN_STAGE;
    st->op.in.run = (il_run_in){ .stage     = PICK(r, stages),
                                 .progress  = (int32_t)t_rng_below(r, 102) - 1,
                                 .log       = log.data,
                                 .log_bytes = log.n_bytes };
    make_offset(r, st);
}

static void
make_finish(struct t_rng *r, struct step *st)
{
    struct blob  log   = history_blob(r);
    il_run_state state = (il_run_state)(IL_RUN_COMPLETED + t_rng_below(r, 5));

    st->op.type = IL_OP_RUN_FINISH;
    if (t_rng_one_in(r, 2))
        state = IL_RUN_COMPLETED;
    st->op.in.run = (il_run_in){ .state     = state,
                                 .error     = t_rng_one_in(r, 2) ? NULL : "it broke",
                                 .log       = log.data,
                                 .log_bytes = log.n_bytes };
    make_offset(r, st);
}

static void
make_list(struct t_rng *r, struct step *st)
{
    static const uint32_t states[] = { 0, 1 << IL_RUN_RUNNING,
                                       1 << IL_RUN_PENDING | 1 << IL_RUN_RUNNING,
                                       1 << IL_RUN_FAILED | 1 << IL_RUN_CANCELLED };

    st->op.type    = IL_OP_RUN_LIST;
    st->op.holder  = NULL;
    st->op.in.list = (il_list_in){ .limit = 1 + t_rng_below(r, 12), .states = PICK(r, states) };
    if (t_rng_one_in(r, 3))
        return; /* of one key */
    st->op.key = NULL;
    if (t_rng_one_in(r, 2))
        st->op.in.list.prefix = "a:";
}

void
history_run(struct t_rng *r, const struct taste *t, size_t i_step, struct step *st)
{
    unsigned dice = t_rng_below(r, 100);

    if (st->kind == STEP_LIST) {
        make_list(r, st);
        return;
    }
    if (dice < 45) {
        make_start(r, t, i_step, st);
        return;
    }
    st->takes_fence = true;
    st->op.key      = NULL;
    if (dice < 60) {
        make_stage(r, st);
    } else if (dice < 80) {
        make_finish(r, st);
    } else if (dice < 90) {
        st->op.type         = IL_OP_RUN_CANCEL;
        st->op.in.run.error = t_rng_one_in(r, 2) ? "not needed" : "changed my mind";
        st->takes_fence     = t_rng_one_in(r, 2);
    } else {
        st->op.type          = dice < 96 ? IL_OP_RUN_GET : IL_OP_RUN_LOG;
        st->op.in.run.offset = t_rng_below(r, 3) * 40000;
        st->takes_fence      = t_rng_one_in(r, 2);
    }
    /* Unless it is that of the fence: one that is there, most likely. */
    st->op.in.run.id = t_id('r', t_near(r, i_step - MIN(i_step, 12), 3));
}
