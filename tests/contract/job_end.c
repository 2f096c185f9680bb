/*
 * job_end.c: heartbeat, finish, fail and snooze: with the right token, repeated, and too late.
 */
#include "harness/job.h"
#include "harness/suite.h"

static uint64_t
push_and_claim(struct t_store *s, const char *id)
{
    (void)T_IS(t_push(s, "q", id, .data = "p"), IL_OK);
    return t_claim_is(s, "q", "w", id);
}

T_TEST(a_heartbeat_extends_the_claim)
{
    uint64_t token = push_and_claim(s, "j");

    t_pass(s, 29999);
    const il_op *op = T_IS(t_heartbeat(s, "j", token), IL_OK);
    T_EQ(op->out.remaining_ms, 30000);
    T_EQU(op->out.fence, token);
    T_EQ(op->out.flags, 0);
    T_TRUE(op->out.detail == NULL);
    T_EQ(op->out.jobs[0].updated_at_ms, T_WALL_MS_START + 29999);
    T_EQ(op->out.jobs[0].started_at_ms, T_WALL_MS_START);
    /* A new lease counts from now on. */
    T_EQ(T_IS(t_heartbeat(s, "j", token, .lease_ms = 5000), IL_OK)->out.remaining_ms, 5000);
    t_pass(s, 4999);
    T_EQ(T_IS(t_heartbeat(s, "j", token), IL_OK)->out.remaining_ms, 5000);
    t_pass(s, 5000);
    (void)T_IS(t_heartbeat(s, "j", token), IL_STALE);
}

T_TEST(progress_is_kept_and_shown)
{
    uint64_t           token = push_and_claim(s, "j");
    const il_job_info *j;

    (void)T_IS(t_heartbeat(s, "j", token, T_PROGRESS(40), .text = "two of\nfive"), IL_OK);
    j = t_job_is(s, "j", IL_JOB_RUNNING);
    T_EQ(j->progress, 40);
    T_STREQ(j->message, "two of\nfive");
    (void)T_IS(t_heartbeat(s, "j", token), IL_OK); /* as before */
    j = t_job_is(s, "j", IL_JOB_RUNNING);
    T_EQ(j->progress, 40);
    T_STREQ(j->message, "two of\nfive");
    (void)T_IS(t_heartbeat(s, "j", token, T_PROGRESS(0), .text = ""), IL_OK);
    j = t_job_is(s, "j", IL_JOB_RUNNING);
    T_EQ(j->progress, 0);
    T_STREQ(j->message, "");
    (void)T_IS(t_heartbeat(s, "j", token, T_PROGRESS(100), .text = "done"), IL_OK);
    (void)T_IS(t_finish(s, "j", token), IL_OK);
    T_EQ(t_job_is(s, "j", IL_JOB_COMPLETED)->progress, 100);
    T_STREQ(t_job_is(s, "j", IL_JOB_COMPLETED)->message, "done");
}

T_TEST(the_next_attempt_begins_without_progress)
{
    uint64_t token = push_and_claim(s, "j");

    (void)T_IS(t_heartbeat(s, "j", token, T_PROGRESS(40), .text = "x"), IL_OK);
    (void)T_IS(t_job_fail(s, "j", token, .delay_ms = 1, .text = "no luck"), IL_OK);
    T_EQ(t_job_is(s, "j", IL_JOB_SCHEDULED)->progress, 40); /* how far it came */
    t_pass(s, 1);
    (void)t_claim_is(s, "q", "w", "j");
    const il_job_info *j = t_job_is(s, "j", IL_JOB_RUNNING);
    T_EQ(j->progress, -1);
    T_STREQ(j->message, "");
    T_STREQ(j->error, "no luck");
}

T_TEST(finish_keeps_the_result)
{
    uint64_t token = push_and_claim(s, "j");

    t_pass(s, 50);
    const il_op *op = T_IS(t_finish(s, "j", token, .data = "a\0b", .data_bytes = 3), IL_OK);
    T_EQ(op->out.jobs[0].state, IL_JOB_COMPLETED);
    T_EQ(op->out.remaining_ms, 0);
    const il_job_info *j = t_job_is(s, "j", IL_JOB_COMPLETED);
    T_EQU(j->result_bytes, 3);
    T_TRUE(memcmp(j->result, "a\0b", 4) == 0); /* with a NUL behind it */
    T_STREQ(j->payload, "p");
    T_STREQ(j->worker, "w"); /* who it was */
    T_EQ(j->completed_at_ms, T_WALL_MS_START + 50);
    T_EQ(j->updated_at_ms, T_WALL_MS_START + 50);
    T_EQ(j->remaining_ms, 0);
    T_EQ(j->attempt, 1);
    T_EQU(j->token, token);
    T_EQU(t_queue(s, "q")->completed, 1);
    T_EQU(t_queue(s, "q")->n_running, 0);
    t_claim_none(s, "q", "w");
}

/* Nothing is another thing than an empty result. */
static void
has_no_result(struct t_store *s, const char *id, il_job_state state)
{
    const il_job_info *j = t_job_is(s, id, state);

    T_TRUE(j->result == NULL);
    T_EQU(j->result_bytes, 0);
    const il_op *op = T_IS(t_job_list(s, "q", .limit = 10), IL_OK);
    for (size_t i = 0; i < op->out.n_jobs; i++) {
        if (op->out.jobs[i].state == state)
            T_TRUE(op->out.jobs[i].result == NULL);
    }
}

T_TEST(no_result_before_the_end)
{
    (void)t_push(s, "q", "j", .max_attempts = 1);
    has_no_result(s, "j", IL_JOB_READY);
    uint64_t token = t_claim_is(s, "q", "w", "j");
    has_no_result(s, "j", IL_JOB_RUNNING);
    (void)T_IS(t_job_fail(s, "j", token), IL_OK);
    has_no_result(s, "j", IL_JOB_FAILED);
}

T_TEST(finish_without_a_result)
{
    uint64_t token = push_and_claim(s, "j");

    (void)T_IS(t_finish(s, "j", token), IL_OK);
    T_EQU(t_job_is(s, "j", IL_JOB_COMPLETED)->result_bytes, 0);
    T_STREQ(t_job_is(s, "j", IL_JOB_COMPLETED)->result, "");
}

T_TEST(finish_repeated)
{
    uint64_t token = push_and_claim(s, "j");

    (void)T_IS(t_finish(s, "j", token, .data = "r"), IL_OK);
    t_pass(s, 10);
    const il_op *op = T_IS(t_finish(s, "j", token, .data = "r"), IL_OK);
    T_EQ(op->out.jobs[0].completed_at_ms, T_WALL_MS_START);
    op = T_IS(t_finish(s, "j", token, .data = "other"), IL_MISMATCH);
    T_HAS(op->out.detail, "another result");
    T_STREQ(op->out.jobs[0].id, "j");
    (void)T_IS(t_finish(s, "j", token), IL_MISMATCH);
    T_EQU(t_queue(s, "q")->completed, 1);
    T_EQU(t_queue(s, "q")->stale, 0);
    T_STREQ(t_job_is(s, "j", IL_JOB_COMPLETED)->result, "r");
}

T_TEST(fail_with_attempts_left)
{
    uint64_t token = push_and_claim(s, "j");

    const il_op *op = T_IS(t_job_fail(s, "j", token, .text = "disk full", .delay_ms = 7000), IL_OK);
    T_EQ(op->out.jobs[0].state, IL_JOB_SCHEDULED);
    const il_job_info *j = t_job_is(s, "j", IL_JOB_SCHEDULED);
    T_STREQ(j->error, "disk full");
    T_EQ(j->run_at_ms, T_WALL_MS_START + 7000);
    T_EQ(j->attempt, 1);
    T_EQ(j->completed_at_ms, 0);
    T_EQU(t_queue(s, "q")->failed_attempts, 1);
    T_EQU(t_queue(s, "q")->failed, 0);
    t_claim_none(s, "q", "w");
    t_pass(s, 7000);
    (void)t_claim_is(s, "q", "w2", "j");
    T_EQ(t_job_is(s, "j", IL_JOB_RUNNING)->attempt, 2);
}

T_TEST(fail_repeated)
{
    uint64_t token = push_and_claim(s, "j");

    (void)T_IS(t_job_fail(s, "j", token, .text = "x", .delay_ms = 1000), IL_OK);
    t_pass(s, 10);
    const il_op *op = T_IS(t_job_fail(s, "j", token, .text = "x", .delay_ms = 1000), IL_OK);
    T_EQ(op->out.jobs[0].run_at_ms, T_WALL_MS_START + 1000);
    T_EQU(t_queue(s, "q")->failed_attempts, 1);
    /* Retried or cancelled, but not claimed since. */
    (void)T_IS(t_retry(s, "j"), IL_OK);
    T_EQ(T_IS(t_job_fail(s, "j", token, .text = "x"), IL_OK)->out.jobs[0].state, IL_JOB_READY);
    uint64_t next = t_claim_is(s, "q", "w2", "j");
    (void)T_IS(t_job_fail(s, "j", token, .text = "x"), IL_STALE);
    (void)T_IS(t_job_fail(s, "j", next, .text = "dead", .flags = IL_FAIL_FINAL), IL_OK);
    (void)T_IS(t_job_fail(s, "j", next, .text = "dead", .flags = IL_FAIL_FINAL), IL_OK);
    (void)T_IS(t_job_fail(s, "j", token), IL_STALE);
    T_EQU(t_queue(s, "q")->failed_attempts, 2);
    T_EQU(t_queue(s, "q")->stale, 2);
}

T_TEST(fail_dead_at_once)
{
    uint64_t token = push_and_claim(s, "j");

    t_pass(s, 5);
    (void)T_IS(t_job_fail(s, "j", token, .text = "bad input", .flags = IL_FAIL_FINAL), IL_OK);
    const il_job_info *j = t_job_is(s, "j", IL_JOB_FAILED);
    T_STREQ(j->error, "bad input");
    T_EQ(j->attempt, 1);
    T_EQ(j->completed_at_ms, T_WALL_MS_START + 5);
    T_EQU(t_queue(s, "q")->failed_attempts, 1);
    T_EQU(t_queue(s, "q")->failed, 1);
    T_EQU(t_queue(s, "q")->n_failed, 1);
}

T_TEST(fail_without_attempts_left)
{
    (void)T_IS(t_push(s, "q", "j", .max_attempts = 2), IL_OK);
    uint64_t token = t_claim_is(s, "q", "w", "j");
    (void)T_IS(t_job_fail(s, "j", token, .text = "one", .delay_ms = 1), IL_OK);
    t_pass(s, 1);
    token = t_claim_is(s, "q", "w", "j");
    (void)T_IS(t_job_fail(s, "j", token, .text = "two", .delay_ms = 1), IL_OK);
    const il_job_info *j = t_job_is(s, "j", IL_JOB_FAILED);
    T_STREQ(j->error, "two");
    T_EQ(j->attempt, 2);
    T_EQ(j->max_attempts, 2);
}

T_TEST(fail_without_a_text)
{
    uint64_t token = push_and_claim(s, "j");

    (void)T_IS(t_job_fail(s, "j", token), IL_OK);
    T_STREQ(t_job_is(s, "j", IL_JOB_SCHEDULED)->error, "");
}

T_TEST(snooze_does_not_count)
{
    (void)T_IS(t_push(s, "q", "j", .max_attempts = 1), IL_OK);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t     token = t_claim_is(s, "q", "w", "j");
        const il_op *op    = T_IS(t_snooze(s, "j", token, .delay_ms = 2000), IL_OK);
        T_EQ(op->out.jobs[0].state, IL_JOB_SCHEDULED);
        T_EQ(op->out.jobs[0].attempt, 0);
        T_EQU(op->out.jobs[0].token, token);
        t_pass(s, 1999);
        t_claim_none(s, "q", "w");
        t_pass(s, 1);
    }
    T_EQU(t_queue(s, "q")->snoozed, 3);
    T_EQU(t_queue(s, "q")->failed_attempts, 0);
}

T_TEST(snooze_for_no_time)
{
    uint64_t token = push_and_claim(s, "j");

    T_EQ(T_IS(t_snooze(s, "j", token), IL_OK)->out.jobs[0].state, IL_JOB_READY);
    (void)t_claim_is(s, "q", "w", "j");
}

T_TEST(snooze_repeated)
{
    uint64_t token = push_and_claim(s, "j");

    (void)T_IS(t_snooze(s, "j", token, .delay_ms = 1000), IL_OK);
    t_pass(s, 5);
    T_EQ(T_IS(t_snooze(s, "j", token, .delay_ms = 1000), IL_OK)->out.jobs[0].run_at_ms,
         T_WALL_MS_START + 1000);
    T_EQU(t_queue(s, "q")->snoozed, 1);
    /* Another op is not a repetition. */
    (void)T_IS(t_job_fail(s, "j", token), IL_STALE);
    (void)T_IS(t_finish(s, "j", token), IL_STALE);
}

static void
all_stale(struct t_store *s, const char *id, uint64_t token, const char *why)
{
    uint64_t before = t_queue(s, "q")->stale;

    T_HAS(T_IS(t_heartbeat(s, id, token), IL_STALE)->out.detail, why);
    T_HAS(T_IS(t_finish(s, id, token, .data = "late"), IL_STALE)->out.detail, why);
    T_HAS(T_IS(t_job_fail(s, id, token, .text = "late"), IL_STALE)->out.detail, why);
    const il_op *op = T_IS(t_snooze(s, id, token), IL_STALE);
    T_HAS(op->out.detail, why);
    T_STREQ(op->out.jobs[0].id, id);
    T_EQU(t_queue(s, "q")->stale, before + 4);
}

/* A worker that was declared dead. */
T_TEST(after_the_claim_expired)
{
    uint64_t token = push_and_claim(s, "j");

    t_pass(s, 30000);
    all_stale(s, "j", token, "(expired)");
    T_EQ(t_job_is(s, "j", IL_JOB_READY)->attempt, 1);
}

T_TEST(after_somebody_else_claimed_it)
{
    uint64_t old = push_and_claim(s, "j");

    t_pass(s, 30000);
    uint64_t token = t_claim_is(s, "q", "w2", "j");
    all_stale(s, "j", old, "worker 'w2' has since claimed the job");
    T_EQ(t_job_is(s, "j", IL_JOB_RUNNING)->remaining_ms, 30000);
    (void)T_IS(t_finish(s, "j", token, .data = "good"), IL_OK);
    all_stale(s, "j", old, "COMPLETED");
    T_STREQ(t_job_is(s, "j", IL_JOB_COMPLETED)->result, "good");
}

T_TEST(after_the_attempt_ended_otherwise)
{
    uint64_t token = push_and_claim(s, "j");

    (void)T_IS(t_job_fail(s, "j", token, .flags = IL_FAIL_FINAL), IL_OK);
    T_HAS(T_IS(t_finish(s, "j", token), IL_STALE)->out.detail,
          "the claim has ended (failed); the job is FAILED");
    T_HAS(T_IS(t_snooze(s, "j", token), IL_STALE)->out.detail, "failed");
    (void)T_IS(t_heartbeat(s, "j", token), IL_STALE);
    token = push_and_claim(s, "k");
    (void)T_IS(t_finish(s, "k", token), IL_OK);
    T_HAS(T_IS(t_job_fail(s, "k", token), IL_STALE)->out.detail,
          "the claim has ended (finished); the job is COMPLETED");
    (void)T_IS(t_snooze(s, "k", token), IL_STALE);
    (void)T_IS(t_heartbeat(s, "k", token), IL_STALE);
    T_EQU(t_queue(s, "q")->stale, 6);
}

T_TEST(with_a_token_that_is_none)
{
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    all_stale(s, "j", 12345, "never claimed");
    (void)T_IS(t_push(s, "q", "p", .flags = IL_PUSH_PARENT), IL_OK);
    all_stale(s, "p", 12345, "never claimed");
    uint64_t token = t_claim_is(s, "q", "w", "j");
    all_stale(s, "j", token + 1, "worker 'w' has since claimed the job");
    (void)T_IS(t_heartbeat(s, "j", token), IL_OK);
}

T_TEST(no_such_job)
{
    (void)T_IS(t_heartbeat(s, "j", 1), IL_NOT_FOUND);
    (void)T_IS(t_finish(s, "j", 1), IL_NOT_FOUND);
    (void)T_IS(t_job_fail(s, "j", 1), IL_NOT_FOUND);
    (void)T_IS(t_snooze(s, "j", 1), IL_NOT_FOUND);
    (void)T_IS(t_cancel(s, "j"), IL_NOT_FOUND);
    (void)T_IS(t_retry(s, "j"), IL_NOT_FOUND);
    (void)T_IS(t_seal(s, "j"), IL_NOT_FOUND);
    T_EQU(T_IS(t_job_get(s, "j"), IL_NOT_FOUND)->out.n_jobs, 0);
}

static void
refused(const il_op *op, const char *why)
{
    T_HAS(T_IS(op, IL_INVAL)->out.detail, why);
}

T_TEST(what_is_refused)
{
    static char big[IL_BLOB_BYTES_MAX + 1];
    static char text[IL_TEXT_BYTES_MAX + 2];
    uint64_t    token = push_and_claim(s, "j");

    memset(text, 't', sizeof text - 1);
    refused(t_finish(s, "", token), "id is empty");
    refused(t_finish(s, "j", 0), "invalid fence 0");
    refused(t_heartbeat(s, "j", UINT64_C(1) << 53), "invalid fence");
    refused(t_finish(s, "j", token, .data = big, .data_bytes = sizeof big), "result has 1048577");
    refused(t_heartbeat(s, "j", token, T_PROGRESS(101)),
            "progress must be between -1 and 100, not 101");
    refused(t_heartbeat(s, "j", token, T_PROGRESS(-2)), "progress");
    refused(t_heartbeat(s, "j", token, .lease_ms = 10), "lease_ms");
    refused(t_heartbeat(s, "j", token, .text = text), "message is longer");
    refused(t_job_fail(s, "j", token, .text = text), "error is longer");
    refused(t_job_fail(s, "j", token, .text = "\xc0"), "error is not valid UTF-8");
    refused(t_job_fail(s, "j", token, .delay_ms = -5),
            "delay_ms must be between 0 and 31622400000, not -5");
    refused(t_snooze(s, "j", token, .delay_ms = IL_DELAY_MS_MAX + 1), "delay_ms");
    (void)t_job_is(s, "j", IL_JOB_RUNNING);
    text[IL_TEXT_BYTES_MAX] = '\0';
    (void)T_IS(t_heartbeat(s, "j", token, .text = text), IL_OK);
    T_STREQ(t_job_is(s, "j", IL_JOB_RUNNING)->message, text);
    (void)T_IS(t_job_fail(s, "j", token, .text = text, .delay_ms = IL_DELAY_MS_MAX), IL_OK);
    T_STREQ(t_job_is(s, "j", IL_JOB_SCHEDULED)->error, text);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(a_heartbeat_extends_the_claim),
        T_ROW(progress_is_kept_and_shown),
        T_ROW(the_next_attempt_begins_without_progress),
        T_ROW(finish_keeps_the_result),
        T_ROW(no_result_before_the_end),
        T_ROW(finish_without_a_result),
        T_ROW(finish_repeated),
        T_ROW(fail_with_attempts_left),
        T_ROW(fail_repeated),
        T_ROW(fail_dead_at_once),
        T_ROW(fail_without_attempts_left),
        T_ROW(fail_without_a_text),
        T_ROW(snooze_does_not_count),
        T_ROW(snooze_for_no_time),
        T_ROW(snooze_repeated),
        T_ROW(after_the_claim_expired),
        T_ROW(after_somebody_else_claimed_it),
        T_ROW(after_the_attempt_ended_otherwise),
        T_ROW(with_a_token_that_is_none),
        T_ROW(no_such_job),
        T_ROW(what_is_refused),
    };

    return T_SUITE("job_end", tests);
}
