/*
 * history_job.c: queues: pushes of every kind, claims, ends, parents, schedules, settings.
 */
#include "diff/history.h"

#define JOBS_EVERY 4     /* steps to a new job */
#define PARENTS_EVERY 40 /* and to a new parent */

static const char *
worker_of(struct t_rng *r)
{
    return t_id('w', t_rng_below(r, 4));
}

/* One that is there, most likely. */
static const char *
job_of(struct t_rng *r, size_t i_step, bool parent)
{
    if (parent)
        return t_id('p', t_near(r, i_step, PARENTS_EVERY) / 3);
    return t_id('j', t_near(r, i_step - MIN(i_step, 4 * JOBS_EVERY), JOBS_EVERY));
}

static void
make_push(struct t_rng *r, size_t i_step, struct step *st)
{
    static const int64_t delays[] = { 0, 0, 0, 0, 1000, 5000, 60000 };
    struct blob          data     = history_blob(r);
    unsigned             i        = t_near(r, i_step, JOBS_EVERY);

    st->op.type = IL_OP_JOB_PUSH;
    if (!t_rng_one_in(r, 10)) /* the same job again, most of the time */
        st->op.key = t_queues[i % N_QUEUES];
    st->op.in.job = (il_job_in){
        .id           = t_id('j', i),
        .data         = t_rng_one_in(r, 10) ? data.data : "work",
        .group        = t_rng_one_in(r, 3) ? t_id('g', t_rng_below(r, 2)) : NULL,
        .unique_key   = t_rng_one_in(r, 4) ? t_id('u', t_rng_below(r, 2)) : NULL,
        .parent       = t_rng_one_in(r, 4) ? t_id('p', t_near(r, i_step, PARENTS_EVERY) / 3) : NULL,
        .priority     = t_rng_one_in(r, 3) ? (int32_t)t_rng_below(r, 5) - 2 : 0,
        .delay_ms     = PICK(r, delays),
        .max_attempts = t_rng_one_in(r, 2) ? 1 + t_rng_below(r, 3) : 0,
    };
    st->op.in.job.data_bytes = st->op.in.job.data == data.data ? data.n_bytes : 4;
    if (st->op.in.job.unique_key != NULL && t_rng_one_in(r, 2))
        st->op.in.job.unique_for_ms = 5000;
    if (st->op.in.job.delay_ms == 0 && t_rng_one_in(r, 10))
        st->op.in.job.run_at_ms = T_WALL_MS_START + t_rng_below(r, 120) * 1000;
    if (t_rng_one_in(r, 8)) {
        st->op.flags             = IL_PUSH_PARENT;
        st->op.in.job.id         = t_id('p', t_near(r, i_step, PARENTS_EVERY) / 3);
        st->op.in.job.n_children = t_rng_below(r, 4);
        if (t_rng_one_in(r, 10))
            return; /* perhaps refused: it has no parent, group or delay of its own */
        st->op.in.job.delay_ms  = 0;
        st->op.in.job.run_at_ms = 0;
        st->op.in.job.parent    = NULL;
        st->op.in.job.group     = NULL;
    }
}

static void
make_claim(struct t_rng *r, size_t i_step, struct step *st)
{
    static const int64_t leases[] = { 0, 1000, 2000, 5000 };
    unsigned             i_claim  = (unsigned)i_step + 10;

    if (t_rng_one_in(r, 6)) /* repeated: perhaps it is the worker's last one */
        i_claim -= 1 + t_rng_below(r, 8);
    st->op.type   = IL_OP_JOB_CLAIM;
    st->op.holder = t_id('w', i_claim % 4);
    st->op.flags  = t_rng_one_in(r, 5) ? IL_CLAIM_SILENT : 0;
    st->op.in.job = (il_job_in){
        .id       = t_id('c', i_claim),
        .limit    = t_rng_below(r, 4),
        .lease_ms = PICK(r, leases),
    };
}

/* heartbeat, finish, fail, snooze: of a token that is known. */
static void
make_end(struct t_rng *r, struct step *st)
{
    static const int64_t delays[] = { 0, 0, 1, 1000, 5000 };
    unsigned             dice     = t_rng_below(r, 10);
    struct blob          result   = history_blob(r);
    il_job_in           *in       = &st->op.in.job;

    st->takes_fence = true;
    st->op.holder   = worker_of(r);
    if (dice < 3) {
        st->op.type  = IL_OP_JOB_HEARTBEAT;
        in->lease_ms = t_rng_one_in(r, 3) ? 3000 : 0;
        in->progress = (int32_t)t_rng_below(r, 102) - 1;
        in->text     = t_rng_one_in(r, 2) ? "halfway" : NULL;
    } else if (dice < 6) {
        st->op.type    = IL_OP_JOB_FINISH;
        in->data       = result.data;
        in->data_bytes = result.n_bytes;
    } else if (dice < 9) {
        st->op.type  = IL_OP_JOB_FAIL;
        st->op.flags = t_rng_one_in(r, 5) ? IL_FAIL_FINAL : 0;
        in->text     = t_rng_one_in(r, 4) ? NULL : "it broke";
        in->delay_ms = PICK(r, delays);
    } else {
        st->op.type  = IL_OP_JOB_SNOOZE;
        in->delay_ms = PICK(r, delays);
    }
}

/* cancel, retry, seal, get: of a job by its id. */
static void
make_other(struct t_rng *r, struct step *st)
{
    unsigned   dice = t_rng_below(r, 10);
    il_job_in *in   = &st->op.in.job;

    st->takes_fence = t_rng_one_in(r, 2);
    st->op.holder   = NULL;
    if (dice < 3) {
        st->op.type  = IL_OP_JOB_CANCEL;
        st->op.flags = t_rng_one_in(r, 3) ? IL_CANCEL_NOW : 0;
        in->text     = t_rng_one_in(r, 4) ? NULL : "not needed";
    } else if (dice < 6) {
        st->op.type = IL_OP_JOB_RETRY;
    } else if (dice < 8) {
        st->op.type     = IL_OP_JOB_SEAL;
        st->takes_fence = false;
    } else {
        st->op.type = IL_OP_JOB_GET;
    }
}

static void
make_queue(struct t_rng *r, const struct taste *t, struct step *st)
{
    static const int32_t limits[] = { 0, 1, 2, -1 };
    static const int32_t rates[]  = { 0, 1, 3, -1 };
    static const int64_t keeps[]  = { 0, 1000, 20000, IL_FOREVER };

    st->op.holder = NULL;
    if (t_rng_one_in(r, 3)) {
        st->op.type        = IL_OP_QUEUE_PAUSE;
        st->op.flags       = t_rng_one_in(r, 3) ? 0 : IL_RESUME;
        st->op.in.job.text = t_rng_one_in(r, 2) ? "repairs" : NULL;
        return;
    }
    st->op.type     = IL_OP_QUEUE_SET;
    st->op.in.queue = (il_queue_opts){
        .strategy              = (int32_t)t_rng_below(r, 3),
        .max_attempts          = t_rng_one_in(r, 3) ? 2 : 0,
        .lease_ms              = t_rng_one_in(r, 3) ? 2000 : 0,
        .backoff_ms            = t_rng_one_in(r, 3) ? 400 : 0,
        .backoff_max_ms        = t_rng_one_in(r, 3) ? 1500 : 0,
        .group_limit           = PICK(r, limits),
        .rate_n                = PICK(r, rates),
        .rate_ms               = t->rate_ms,
        .keep_ms               = PICK(r, keeps),
        .keep_failed_ms        = PICK(r, keeps),
        .processing_timeout_ms = t_rng_one_in(r, 2) ? 3000 : 0,
        .executing_timeout_ms  = t_rng_one_in(r, 2) ? 4000 : 0,
    };
}

/* Schedules are rare enough that a day that passes does not fill the store. */
static void
make_cron(struct t_rng *r, struct step *st)
{
    static const char *const schedules[] = { "*/10 * * * *", "0 * * * *", "@hourly",
                                             "30 8 * * 1-5", "@daily",    "0 0 30 2 *",
                                             "* * *" };

    st->op.holder       = NULL;
    st->op.type         = t_rng_one_in(r, 4) ? IL_OP_CRON_REMOVE : IL_OP_CRON_SET;
    st->op.in.cron.name = t_id('t', t_rng_below(r, 2));
    if (st->op.type == IL_OP_CRON_REMOVE) {
        st->op.key = NULL;
        return;
    }
    st->op.in.cron.schedule     = PICK(r, schedules);
    st->op.in.cron.data         = "tick";
    st->op.in.cron.data_bytes   = 4;
    st->op.in.cron.missed       = (il_missed)t_rng_below(r, IL_MISSED_COUNT);
    st->op.in.cron.priority     = (int32_t)t_rng_below(r, 3) - 1;
    st->op.in.cron.max_attempts = t_rng_below(r, 3);
}

static void
make_list(struct t_rng *r, struct step *st)
{
    static const uint32_t states[] = { 0, 1 << IL_JOB_READY | 1 << IL_JOB_SCHEDULED,
                                       1 << IL_JOB_RUNNING,
                                       1 << IL_JOB_FAILED | 1 << IL_JOB_COMPLETED };
    unsigned              dice     = t_rng_below(r, 6);

    st->op.type    = dice < 4 ? IL_OP_JOB_LIST : dice == 4 ? IL_OP_QUEUE_LIST : IL_OP_CRON_LIST;
    st->op.holder  = NULL;
    st->op.in.list = (il_list_in){ .limit = 1 + t_rng_below(r, 12) };
    if (st->op.type == IL_OP_JOB_LIST)
        st->op.in.list.states = PICK(r, states);
    else
        st->op.key = NULL;
    if (st->op.type == IL_OP_QUEUE_LIST && t_rng_one_in(r, 2))
        st->op.in.list.prefix = "mail";
}

static void
make_purge(struct t_rng *r, struct step *st)
{
    static const uint32_t states[] = { 1 << IL_JOB_COMPLETED,
                                       1 << IL_JOB_FAILED | 1 << IL_JOB_CANCELLED,
                                       1 << IL_JOB_READY | 1 << IL_JOB_SCHEDULED,
                                       1 << IL_JOB_RUNNING };

    st->op.type    = IL_OP_JOB_PURGE;
    st->op.holder  = NULL;
    st->op.in.list = (il_list_in){ .states   = PICK(r, states),
                                   .limit    = t_rng_below(r, 3),
                                   .older_ms = t_rng_one_in(r, 2) ? 3000 : 0 };
}

void
history_job(struct t_rng *r, const struct taste *t, size_t i_step, struct step *st)
{
    unsigned dice = t_rng_below(r, 100);

    st->op.key = t_queues[t_rng_below(r, N_QUEUES)];
    if (st->kind == STEP_LIST)
        make_list(r, st);
    else if (dice < 30)
        make_push(r, i_step, st);
    else if (dice < 52)
        make_claim(r, i_step, st);
    else if (dice < 76)
        make_end(r, st);
    else if (dice < 90)
        make_other(r, st);
    else if (dice < 95)
        make_queue(r, t, st);
    else if (dice < 98)
        make_cron(r, st);
    else
        make_purge(r, st);
    if (st->op.type == IL_OP_JOB_PUSH)
        st->op.holder = NULL;
    if (st->op.type >= IL_OP_JOB_HEARTBEAT && st->op.type <= IL_OP_JOB_GET) {
        st->op.key       = NULL;
        st->op.in.job.id = job_of(r, i_step,
                                  st->op.type == IL_OP_JOB_SEAL
                                      ? !t_rng_one_in(r, 8)
                                      : t_rng_one_in(r, 5)); /* unless it is that of the token */
    }
}
