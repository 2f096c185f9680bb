/*
 * queue_due.c: a claim finds the dead claims of its own queue without walking past those of others
 * (lua/queue_due.lua).
 */
#include <stdio.h>
#include <stdlib.h>

#include "harness/job.h"
#include "harness/redis.h"
#include "harness/suite.h"

#define N_LONG 3000 /* dead claims of other queues, with an entry for each job */
#define N_SHORT 2000
#define LONG_MS 400000 /* more than MANY_MS */
#define PAGES_MAX 8

/* Say a script to the store's server, with the store's prefix as ARGV[1]. */
static const char *
say(struct t_store *s, char out[T_REDIS_REPLY_BYTES], const char *script)
{
    char        socket[T_PATH_BYTES];
    char        tag[64];
    const char *at     = strstr(s->url, "://") + 3;
    const char *prefix = strstr(s->url, "prefix=") + 7;

    t_path(socket, "%.*s", (int)strcspn(at, "?"), at);
    (void)snprintf(tag, sizeof tag, "{%.*s}", (int)strcspn(prefix, "&"), prefix);
    return t_redis_ask(socket, out, (const char *const[]){ "EVAL", script, "0", tag, NULL });
}

static void
says(struct t_store *s, const char *script, const char *expected)
{
    char out[T_REDIS_REPLY_BYTES];

    T_STREQ(say(s, out, script), expected);
}

#define EACH_SET "for _, k in ipairs(redis.call('KEYS', ARGV[1] .. ':q.[dm]*:*')) do "

/* The queues' own sets are empty. */
static void
no_claims_are_listed(struct t_store *s)
{
    says(s, "local n = 0 " EACH_SET "n = n + redis.call('ZCARD', k) end return tostring(n)", "0");
}

static long
calls_of(const char *stats, const char *command)
{
    char name[64];

    (void)snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
    const char *at = strstr(stats, name);
    return at != NULL ? strtol(at + strlen(name), NULL, 10) : 0;
}

/* How often a claim of p, which must give this job (NULL: none), has read sorted sets and rows. */
static long
calls_of_claim(struct t_store *s, const char *id)
{
    static const char read[] = "return redis.call('INFO', 'commandstats')";
    char              out[T_REDIS_REPLY_BYTES];

    (void)say(s, out, read);
    long before = calls_of(out, "zrangebyscore") + calls_of(out, "mget");
    if (id != NULL)
        (void)t_claim_is(s, "p", "w", id);
    else
        t_claim_none(s, "p", "w");
    (void)say(s, out, read);
    return calls_of(out, "zrangebyscore") + calls_of(out, "mget") - before;
}

/* Claims of other queues, dead when LONG_MS have passed: entries of one, and of two. */
static void
claim_others(struct t_store *s)
{
    t_push_many(s, "q", "q", N_LONG, T_JOB());
    t_push_many(s, "r", "r", N_SHORT, T_JOB());
    for (unsigned i = 0; i < N_LONG; i += 500)
        T_EQU(T_IS(t_claim(s, "q", "w", .limit = 500, .lease_ms = LONG_MS), IL_OK)->out.n_jobs,
              500);
    for (unsigned i = 0; i < N_SHORT; i += 2)
        T_EQU(T_IS(t_claim(s, "r", "w", .limit = 2), IL_OK)->out.n_jobs, 2);
}

T_TEST(dead_claims_of_other_queues)
{
    t_push_many(s, "p", "p", 6, T_JOB());
    (void)calls_of_claim(s, "p0");
    long n_calls = calls_of_claim(s, "p1");
    T_TRUE(n_calls > 0);
    T_EQU(T_IS(t_claim(s, "p", "w", .limit = 2), IL_OK)->out.n_jobs, 2);
    claim_others(s);
    t_pass(s, LONG_MS);
    /* Its own are found: p0 and p1, with entries of one; p2 and p3. */
    const il_op *op = T_IS(t_claim(s, "p", "w", .limit = 4, .lease_ms = LONG_MS), IL_OK);
    T_EQU(op->out.n_jobs, 4);
    T_STREQ(op->out.jobs[0].id, "p0");
    T_STREQ(op->out.jobs[3].id, "p3");
    T_EQ(calls_of_claim(s, "p4"), n_calls);
    T_EQ(calls_of_claim(s, "p5"), n_calls);
    T_TRUE(calls_of_claim(s, NULL) <= PAGES_MAX);
    /* Nobody else's have been touched. */
    (void)t_job_is(s, "q0", IL_JOB_RUNNING);
    (void)t_job_is(s, "r0", IL_JOB_RUNNING);
    T_EQU(t_queue(s, "q")->recovered, 0);
    for (unsigned i = 0; i < (N_LONG + N_SHORT) / 1000; i++)
        T_EQ(T_IS(t_sweep(s, .limit = 1000), IL_OK)->out.sweep.n_jobs, 1000);
    T_EQ(T_IS(t_sweep(s, .limit = 1000), IL_OK)->out.flags, 0);
    (void)t_job_is(s, "q0", IL_JOB_READY);
    (void)t_job_is(s, "r1999", IL_JOB_READY);
}

/* More own ones than one claim recovers: the first by expiry and seq, then the others. */
T_TEST(many_dead_claims_of_its_own)
{
    t_push_many(s, "p", "p", 2500, T_JOB());
    for (unsigned i = 0; i < 5; i++)
        T_EQU(T_IS(t_claim(s, "p", "w", .limit = 500, .lease_ms = LONG_MS), IL_OK)->out.n_jobs,
              500);
    t_pass(s, LONG_MS);
    (void)t_claim_is(s, "p", "w", "p0");
    T_EQU(t_queue(s, "p")->recovered, 1000);
    (void)t_job_is(s, "p999", IL_JOB_READY);
    (void)t_job_is(s, "p1000", IL_JOB_RUNNING);
    (void)t_claim_is(s, "p", "w", "p1");
    (void)t_claim_is(s, "p", "w", "p2");
    T_EQU(t_queue(s, "p")->recovered, 2500);
}

/* A heartbeat gives a claim another time, also one of many. */
T_TEST(a_claim_that_was_renewed)
{
    t_push_many(s, "p", "p", 4, T_JOB());
    uint64_t token = t_claim_is(s, "p", "w", "p0");
    T_EQU(T_IS(t_claim(s, "p", "w", .limit = 2), IL_OK)->out.n_jobs, 2);
    (void)T_IS(t_heartbeat(s, "p0", token, .lease_ms = 60000), IL_OK);
    (void)T_IS(t_heartbeat(s, "p1", t_job_is(s, "p1", IL_JOB_RUNNING)->token, .lease_ms = 60000),
               IL_OK);
    t_pass(s, 59999);
    T_EQU(T_IS(t_claim(s, "p", "w", .limit = 1), IL_OK)->out.n_jobs, 1);
    T_EQU(t_queue(s, "p")->recovered, 1);
    t_pass(s, 1);
    T_EQU(T_IS(t_claim(s, "p", "w", .limit = 3), IL_OK)->out.n_jobs, 3);
    T_EQU(t_queue(s, "p")->recovered, 3);
}

/* A claim that is over leaves nothing in its queue's sets, however it has ended. */
T_TEST(what_has_ended_is_not_listed)
{
    il_op    ops[4];
    uint64_t tokens[8];
    char     ids[8][8];

    t_push_many(s, "p", "j", 8, T_JOB(.max_attempts = 3));
    for (unsigned i = 0; i < 8; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "j%u", i);
        tokens[i] = t_claim_is(s, "p", "w", ids[i]);
    }
    (void)T_IS(t_heartbeat(s, "j0", tokens[0], .lease_ms = 60000), IL_OK);
    (void)T_IS(t_finish(s, "j0", tokens[0]), IL_OK);
    (void)T_IS(t_job_fail(s, "j1", tokens[1], .delay_ms = 3600000), IL_OK);
    (void)T_IS(t_job_fail(s, "j2", tokens[2], .flags = IL_FAIL_FINAL), IL_OK);
    (void)T_IS(t_snooze(s, "j3", tokens[3], .delay_ms = 3600000), IL_OK);
    (void)T_IS(t_cancel(s, "j4", .flags = IL_CANCEL_NOW), IL_OK);
    t_pass(s, 30000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_jobs, 3); /* j5 to j7 */
    no_claims_are_listed(s);
    for (unsigned round = 0; round < 2; round++) {
        /* A batch that is all of a claim: entries of one, and of many. */
        t_push_many(s, "b", round == 0 ? "x" : "y", 4, T_JOB());
        const il_op *op =
            T_IS(t_claim(s, "b", "w", .limit = 4, .lease_ms = round == 0 ? LONG_MS : 30000), IL_OK);
        T_EQU(op->out.n_jobs, 4);
        for (unsigned i = 0; i < 4; i++) {
            (void)snprintf(ids[i], sizeof ids[i], "%s%u", round == 0 ? "x" : "y", i);
            ops[i] = t_job_op(IL_OP_JOB_FINISH, NULL, NULL, ids[i], op->out.jobs[i].token, T_JOB());
        }
        t_batch(s, ops, 4);
        for (unsigned i = 0; i < 4; i++) {
            T_EQ(ops[i].status, IL_OK);
            il_op_release(&ops[i]);
        }
        no_claims_are_listed(s);
    }
    /* One that was finished one by one: when its time has come a sweep forgets it in both sets. */
    t_push_many(s, "b", "z", 2, T_JOB());
    const il_op *op = T_IS(t_claim(s, "b", "w", .limit = 2), IL_OK);
    T_EQU(op->out.n_jobs, 2);
    tokens[0] = op->out.jobs[0].token;
    tokens[1] = op->out.jobs[1].token;
    (void)T_IS(t_finish(s, "z0", tokens[0]), IL_OK);
    (void)T_IS(t_finish(s, "z1", tokens[1]), IL_OK);
    t_pass(s, 30000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_jobs, 0);
    no_claims_are_listed(s);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(dead_claims_of_other_queues),
        T_ROW(many_dead_claims_of_its_own),
        T_ROW(a_claim_that_was_renewed),
        T_ROW(what_has_ended_is_not_listed),
    };

    /* A server of its own: what others do there would be counted. */
    CHECK(setenv("IL_TEST_STORE", "redis", 1) == 0 && unsetenv("IL_TEST_REDIS") == 0);
    return T_SUITE("redis-queue-due", tests);
}
