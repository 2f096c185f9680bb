/*
 * job_retry.c: repeated attempts of a job: backoff, recovery of dead claims, retry and cancel.
 */
#include "core/job.h"
#include "harness/job.h"
#include "harness/suite.h"

static uint64_t
push_and_claim(struct t_store *s, const char *id)
{
    (void)T_IS(t_push(s, "q", id), IL_OK);
    return t_claim_is(s, "q", "w", id);
}

/* ---- backoff --------------------------------------------------------------------------------- */

/* Base 1 s, factor 2, cap 1 h, jitter; the same on every engine. */
T_TEST(backoff_doubles_with_jitter)
{
    (void)T_IS(t_push(s, "q", "j", .max_attempts = 20), IL_OK);
    il_queue_opts opts = t_queue(s, "q")->opts;
    for (uint32_t n = 1; n < 20; n++) {
        uint64_t           token = t_claim_is(s, "q", "w", "j");
        const il_job_info *j     = &T_IS(t_job_fail(s, "j", token), IL_OK)->out.jobs[0];
        int64_t            wait  = j->run_at_ms - j->updated_at_ms;
        int64_t            base  = n <= 12 ? INT64_C(1000) << (n - 1) : 3600000;
        base                     = MIN(base, 3600000);
        T_EQ(wait, il__backoff_ms(&opts, "j", n));
        T_TRUE(wait >= base * 3 / 4 && wait <= base * 5 / 4);
        t_pass(s, wait);
    }
}

T_TEST(backoff_of_the_queue)
{
    (void)T_IS(t_queue_set(s, "q", .backoff_ms = 10000, .backoff_max_ms = 15000), IL_OK);
    uint64_t           token = push_and_claim(s, "j");
    const il_job_info *j     = &T_IS(t_job_fail(s, "j", token), IL_OK)->out.jobs[0];
    int64_t            wait  = j->run_at_ms - T_WALL_MS_START;
    T_TRUE(wait >= 7500 && wait <= 12500);
    t_pass(s, wait);
    token = t_claim_is(s, "q", "w", "j");
    j     = &T_IS(t_job_fail(s, "j", token), IL_OK)->out.jobs[0];
    T_TRUE(j->run_at_ms - j->updated_at_ms >= 11250 && j->run_at_ms - j->updated_at_ms <= 18750);
}

/* ---- recovery -------------------------------------------------------------------------------- */

T_TEST(a_dead_claim_is_ready_again)
{
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    t_pass(s, 100);
    uint64_t token = t_claim_is(s, "q", "w", "j");
    t_pass(s, 29999);
    t_claim_none(s, "q", "w2");
    t_pass(s, 1);
    const il_job_info *j = t_job_is(s, "j", IL_JOB_RUNNING); /* reads change nothing */
    T_EQ(j->remaining_ms, 0);
    T_LESS(token, t_claim_is(s, "q", "w2", "j"));
    j = t_job_is(s, "j", IL_JOB_RUNNING);
    T_EQ(j->attempt, 2);
    T_EQ(j->run_at_ms, T_WALL_MS_START); /* as it was */
    T_STREQ(j->error, "Processing timeout - worker may have crashed");
    T_EQU(t_queue(s, "q")->recovered, 1);
    T_EQU(t_queue(s, "q")->failed_attempts, 0);
}

T_TEST(a_sweep_recovers)
{
    (void)push_and_claim(s, "j");
    t_pass(s, 30000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_jobs, 1);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_jobs, 0);
    const il_job_info *j = t_job_is(s, "j", IL_JOB_READY);
    T_EQ(j->updated_at_ms, T_WALL_MS_START + 30000);
    T_STREQ(j->worker, "w");
}

/* A job that kills its workers ends. */
static void
poison(struct t_store *s, il_strategy strategy, const char *error)
{
    (void)T_IS(t_queue_set(s, "q", .strategy = 1 + (int32_t)strategy, .max_attempts = 3), IL_OK);
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    for (uint32_t i = 1; i <= 3; i++) {
        (void)t_claim_is(s, "q", "w", "j");
        t_pass(s, 30000);
    }
    t_claim_none(s, "q", "w");
    const il_job_info *j = t_job_is(s, "j", IL_JOB_FAILED);
    T_STREQ(j->error, error);
    T_EQ(j->attempt, 3);
    T_EQ(j->completed_at_ms, T_WALL_MS_START + 90000);
    T_EQU(t_queue(s, "q")->recovered, 3);
    T_EQU(t_queue(s, "q")->failed, 1);
    T_EQU(t_queue(s, "q")->n_failed, 1);
    T_EQU(t_queue(s, "q")->n_running, 0);
}

T_TEST(a_poison_job_of_a_pessimistic_queue)
{
    poison(s, IL_STRATEGY_PESSIMISTIC, "Processing timeout - worker may have crashed");
}

T_TEST(a_poison_job_of_an_optimistic_queue)
{
    poison(s, IL_STRATEGY_OPTIMISTIC, "Execution timeout - worker may have crashed");
}

T_TEST(every_op_that_names_a_job_recovers_it)
{
    static const char *const ids[] = {
        "beat", "fail", "snooze", "finish", "cancel", "retry", "seal"
    };

    for (unsigned i = 0; i < ARRAY_LEN(ids); i++)
        (void)push_and_claim(s, ids[i]);
    uint64_t token = t_job_is(s, "beat", IL_JOB_RUNNING)->token;
    t_pass(s, 30000);
    T_EQ(T_IS(t_heartbeat(s, "beat", token), IL_STALE)->out.jobs[0].state, IL_JOB_READY);
    T_EQ(T_IS(t_job_fail(s, "fail", token), IL_STALE)->out.jobs[0].state, IL_JOB_READY);
    T_EQ(T_IS(t_snooze(s, "snooze", token), IL_STALE)->out.jobs[0].state, IL_JOB_READY);
    T_EQ(T_IS(t_finish(s, "finish", token), IL_STALE)->out.jobs[0].state, IL_JOB_READY);
    T_EQ(T_IS(t_cancel(s, "cancel"), IL_OK)->out.jobs[0].state, IL_JOB_CANCELLED);
    T_EQ(T_IS(t_retry(s, "retry"), IL_OK)->out.jobs[0].state, IL_JOB_READY);
    T_EQ(T_IS(t_seal(s, "seal"), IL_STATE)->out.jobs[0].state, IL_JOB_READY);
    T_EQU(t_queue(s, "q")->recovered, 7);
}

/* ---- retry ----------------------------------------------------------------------------------- */

T_TEST(retry_of_a_dead_job)
{
    uint64_t token = push_and_claim(s, "j");

    (void)T_IS(t_heartbeat(s, "j", token, T_PROGRESS(5)), IL_OK);
    (void)T_IS(t_job_fail(s, "j", token, .text = "bad", .flags = IL_FAIL_FINAL), IL_OK);
    t_pass(s, 1000);
    const il_op       *op = T_IS(t_retry(s, "j"), IL_OK);
    const il_job_info *j  = &op->out.jobs[0];
    T_EQ(j->state, IL_JOB_READY);
    T_EQ(j->attempt, 0);
    T_STREQ(j->error, "bad"); /* kept */
    T_EQ(j->run_at_ms, T_WALL_MS_START + 1000);
    T_EQ(j->completed_at_ms, 0);
    T_EQU(t_queue(s, "q")->n_failed, 0);
    T_EQ(T_IS(t_retry(s, "j"), IL_OK)->out.jobs[0].state, IL_JOB_READY); /* repeated */
    T_LESS(token, t_claim_is(s, "q", "w", "j"));
    T_EQ(t_job_is(s, "j", IL_JOB_RUNNING)->attempt, 1);
}

T_TEST(retry_of_a_cancelled_job)
{
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    (void)T_IS(t_cancel(s, "j", .text = "why not"), IL_OK);
    const il_job_info *j = &T_IS(t_retry(s, "j"), IL_OK)->out.jobs[0];
    T_EQ(j->state, IL_JOB_READY);
    T_EQ(j->cancelled, 0);
    uint64_t token = t_claim_is(s, "q", "w", "j");
    T_EQ(T_IS(t_heartbeat(s, "j", token), IL_OK)->out.flags, 0);
}

T_TEST(retry_of_a_scheduled_job)
{
    (void)T_IS(t_push(s, "q", "j", .delay_ms = 60000), IL_OK);
    t_pass(s, 10);
    const il_job_info *j = &T_IS(t_retry(s, "j"), IL_OK)->out.jobs[0];
    T_EQ(j->state, IL_JOB_READY);
    T_EQ(j->run_at_ms, T_WALL_MS_START + 10);
    (void)t_claim_is(s, "q", "w", "j");
    /* One that failed keeps its attempts. */
    uint64_t token = t_job_is(s, "j", IL_JOB_RUNNING)->token;
    (void)T_IS(t_job_fail(s, "j", token, .delay_ms = 60000), IL_OK);
    T_EQ(T_IS(t_retry(s, "j"), IL_OK)->out.jobs[0].attempt, 1);
}

T_TEST(retry_where_it_makes_no_sense)
{
    uint64_t token = push_and_claim(s, "j");

    T_HAS(T_IS(t_retry(s, "j"), IL_STATE)->out.detail, "running");
    (void)T_IS(t_heartbeat(s, "j", token), IL_OK); /* nothing happened */
    (void)T_IS(t_finish(s, "j", token), IL_OK);
    const il_op *op = T_IS(t_retry(s, "j"), IL_STATE);
    T_HAS(op->out.detail, "completed");
    T_EQ(op->out.jobs[0].state, IL_JOB_COMPLETED);
    (void)T_IS(t_push(s, "q", "p", .flags = IL_PUSH_PARENT), IL_OK);
    T_HAS(T_IS(t_retry(s, "p"), IL_STATE)->out.detail, "parent");
    (void)T_IS(t_cancel(s, "p"), IL_OK);
    (void)T_IS(t_retry(s, "p"), IL_STATE);
    /* A job that is due by now is ready, and keeps its place. */
    (void)T_IS(t_push(s, "q", "d", .delay_ms = 1000), IL_OK);
    t_pass(s, 2000);
    T_EQ(T_IS(t_retry(s, "d"), IL_OK)->out.jobs[0].run_at_ms, T_WALL_MS_START + 1000);
}

/* ---- cancel ---------------------------------------------------------------------------------- */

T_TEST(cancel_before_it_runs)
{
    (void)T_IS(t_push(s, "q", "ready"), IL_OK);
    (void)T_IS(t_push(s, "q", "later", .delay_ms = 1000), IL_OK);
    t_pass(s, 5);
    const il_job_info *j = &T_IS(t_cancel(s, "ready", .text = "not needed"), IL_OK)->out.jobs[0];
    T_EQ(j->state, IL_JOB_CANCELLED);
    T_STREQ(j->error, "not needed");
    T_EQ(j->cancelled, 1);
    T_EQ(j->completed_at_ms, T_WALL_MS_START + 5);
    (void)T_IS(t_cancel(s, "later"), IL_OK);
    T_STREQ(t_job_is(s, "later", IL_JOB_CANCELLED)->error, "cancelled");
    t_claim_none(s, "q", "w");
    T_EQU(t_queue(s, "q")->cancelled, 2);
    t_pass(s, 2000);
    t_claim_none(s, "q", "w");
    /* Ended: as it is. */
    j = &T_IS(t_cancel(s, "ready", .text = "again", .flags = IL_CANCEL_NOW), IL_OK)->out.jobs[0];
    T_STREQ(j->error, "not needed");
    T_EQ(j->updated_at_ms, T_WALL_MS_START + 5);
    T_EQU(t_queue(s, "q")->cancelled, 2);
}

T_TEST(cancel_of_an_ended_job)
{
    uint64_t token = push_and_claim(s, "j");

    (void)T_IS(t_finish(s, "j", token), IL_OK);
    T_EQ(T_IS(t_cancel(s, "j", .flags = IL_CANCEL_NOW), IL_OK)->out.jobs[0].state,
         IL_JOB_COMPLETED);
    T_EQU(t_queue(s, "q")->cancelled, 0);
}

T_TEST(a_running_job_is_asked_to_stop)
{
    uint64_t token = push_and_claim(s, "j");

    const il_job_info *j = &T_IS(t_cancel(s, "j", .text = "first"), IL_OK)->out.jobs[0];
    T_EQ(j->state, IL_JOB_RUNNING);
    T_EQ(j->cancelled, 1);
    (void)T_IS(t_cancel(s, "j", .text = "second"), IL_OK);
    const il_op *op = T_IS(t_heartbeat(s, "j", token), IL_OK);
    T_EQ(op->out.flags, IL_OUT_CANCEL);
    T_STREQ(op->out.detail, "first"); /* the first reason stays */
    T_EQ(op->out.remaining_ms, 30000);
    /* It may finish after all. */
    (void)T_IS(t_finish(s, "j", token), IL_OK);
    (void)t_job_is(s, "j", IL_JOB_COMPLETED);
    T_EQU(t_queue(s, "q")->cancelled, 0);
}

T_TEST(a_job_that_was_asked_to_stop_ends_cancelled)
{
    uint64_t token = push_and_claim(s, "fail");

    (void)T_IS(t_cancel(s, "fail", .text = "why"), IL_OK);
    (void)T_IS(t_job_fail(s, "fail", token, .text = "stopped"), IL_OK);
    T_STREQ(t_job_is(s, "fail", IL_JOB_CANCELLED)->error, "why");
    (void)T_IS(t_job_fail(s, "fail", token, .text = "stopped"), IL_OK); /* repeated */

    token = push_and_claim(s, "snooze");
    (void)T_IS(t_cancel(s, "snooze"), IL_OK);
    T_STREQ(T_IS(t_heartbeat(s, "snooze", token), IL_OK)->out.detail, "cancelled");
    (void)T_IS(t_snooze(s, "snooze", token), IL_OK);
    T_STREQ(t_job_is(s, "snooze", IL_JOB_CANCELLED)->error, "cancelled");

    (void)push_and_claim(s, "expire");
    (void)T_IS(t_cancel(s, "expire", .text = "why"), IL_OK);
    t_pass(s, 30000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_jobs, 1);
    T_STREQ(t_job_is(s, "expire", IL_JOB_CANCELLED)->error, "why");
    const il_queue_info *q = t_queue(s, "q");
    T_EQU(q->cancelled, 3);
    T_EQU(q->failed, 0);
    T_EQU(q->recovered, 1);
}

T_TEST(cancel_now_voids_the_token)
{
    uint64_t token = push_and_claim(s, "j");

    (void)T_IS(t_cancel(s, "j", .text = "soon"), IL_OK);
    const il_job_info *j =
        &T_IS(t_cancel(s, "j", .text = "now", .flags = IL_CANCEL_NOW), IL_OK)->out.jobs[0];
    T_EQ(j->state, IL_JOB_CANCELLED);
    T_STREQ(j->error, "soon");
    T_HAS(T_IS(t_finish(s, "j", token), IL_STALE)->out.detail,
          "the claim has ended (cancelled); the job is CANCELLED");
    (void)T_IS(t_heartbeat(s, "j", token), IL_STALE);
    (void)T_IS(t_job_fail(s, "j", token), IL_STALE);
    (void)T_IS(t_snooze(s, "j", token), IL_STALE);
    T_EQU(t_queue(s, "q")->stale, 4);
}

T_TEST(what_is_refused)
{
    char reason[IL_PLACE_BYTES_MAX + 2];

    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    memset(reason, 'r', sizeof reason - 1);
    reason[sizeof reason - 1] = '\0';
    T_HAS(T_IS(t_cancel(s, "j", .text = reason), IL_INVAL)->out.detail, "reason is longer");
    T_HAS(T_IS(t_cancel(s, "j", .text = "a\nb"), IL_INVAL)->out.detail,
          "reason contains a control");
    T_HAS(T_IS(t_retry(s, ""), IL_INVAL)->out.detail, "id is empty");
    T_HAS(T_IS(t_seal(s, NULL), IL_INVAL)->out.detail, "no id");
    T_HAS(T_IS(t_job_get(s, NULL), IL_INVAL)->out.detail, "no id");
    (void)t_job_is(s, "j", IL_JOB_READY);
    reason[IL_PLACE_BYTES_MAX] = '\0';
    (void)T_IS(t_cancel(s, "j", .text = reason), IL_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(backoff_doubles_with_jitter),
        T_ROW(backoff_of_the_queue),
        T_ROW(a_dead_claim_is_ready_again),
        T_ROW(a_sweep_recovers),
        T_ROW(a_poison_job_of_a_pessimistic_queue),
        T_ROW(a_poison_job_of_an_optimistic_queue),
        T_ROW(every_op_that_names_a_job_recovers_it),
        T_ROW(retry_of_a_dead_job),
        T_ROW(retry_of_a_cancelled_job),
        T_ROW(retry_of_a_scheduled_job),
        T_ROW(retry_where_it_makes_no_sense),
        T_ROW(cancel_before_it_runs),
        T_ROW(cancel_of_an_ended_job),
        T_ROW(a_running_job_is_asked_to_stop),
        T_ROW(a_job_that_was_asked_to_stop_ends_cancelled),
        T_ROW(cancel_now_voids_the_token),
        T_ROW(what_is_refused),
    };

    return T_SUITE("job_retry", tests);
}
