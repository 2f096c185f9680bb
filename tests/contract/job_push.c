/*
 * job_push.c: push: every row of its table in src/core/queue.md, how a job is shown, and refused
 * input.
 */
#include "harness/job.h"
#include "harness/suite.h"

T_TEST(a_pushed_job_is_ready)
{
    const il_op       *op = T_IS(t_push(s, "q", "j", .data = "hello", .priority = 3), IL_OK);
    const il_job_info *j  = &op->out.jobs[0];

    T_EQU(op->out.n_jobs, 1);
    T_EQ(op->out.flags, 0);
    T_EQU(op->out.fence, 0);
    T_TRUE(j->payload == NULL && j->payload_bytes == 0); /* shown by get and claim */
    j = t_job_is(s, "j", IL_JOB_READY);
    T_STREQ(j->tenant, "default");
    T_STREQ(j->queue, "q");
    T_STREQ(j->parent, "");
    T_STREQ(j->group, "");
    T_STREQ(j->unique_key, "");
    T_STREQ(j->worker, "");
    T_STREQ(j->error, "");
    T_STREQ(j->message, "");
    T_EQU(j->payload_bytes, 5);
    T_STREQ(j->payload, "hello"); /* a NUL stands behind it */
    T_EQU(j->result_bytes, 0);
    T_EQ(j->priority, 3);
    T_EQ(j->attempt, 0);
    T_EQ(j->max_attempts, 5);
    T_EQ(j->progress, -1);
    T_EQ(j->cancelled, 0);
    T_EQ(j->is_parent, 0);
    T_EQU(j->token, 0);
    T_TRUE(j->seq > 0);
    T_EQ(j->remaining_ms, 0);
    T_EQ(j->run_at_ms, T_WALL_MS_START);
    T_EQ(j->created_at_ms, T_WALL_MS_START);
    T_EQ(j->updated_at_ms, T_WALL_MS_START);
    T_EQ(j->started_at_ms, 0);
    T_EQ(j->completed_at_ms, 0);
}

T_TEST(payloads_are_bytes)
{
    char all[256];

    for (unsigned i = 0; i < sizeof all; i++)
        all[i] = (char)i;
    (void)T_IS(t_push(s, "q", "j", .data = all, .data_bytes = sizeof all), IL_OK);
    (void)T_IS(t_push(s, "q", "empty"), IL_OK);
    const il_job_info *j = t_job_is(s, "j", IL_JOB_READY);
    T_EQU(j->payload_bytes, sizeof all);
    T_TRUE(memcmp(j->payload, all, sizeof all) == 0);
    j = t_job_is(s, "empty", IL_JOB_READY);
    T_EQU(j->payload_bytes, 0);
    T_STREQ(j->payload, "");
}

T_TEST(a_delayed_job_is_scheduled_until_its_time)
{
    (void)T_IS(t_push(s, "q", "d", .delay_ms = 5000), IL_OK);
    (void)T_IS(t_push(s, "q", "at", .run_at_ms = T_WALL_MS_START + 6000), IL_OK);
    (void)T_IS(t_push(s, "q", "past", .run_at_ms = T_WALL_MS_START - 1), IL_OK);
    T_EQ(t_job_is(s, "d", IL_JOB_SCHEDULED)->run_at_ms, T_WALL_MS_START + 5000);
    T_EQ(t_job_is(s, "at", IL_JOB_SCHEDULED)->run_at_ms, T_WALL_MS_START + 6000);
    T_EQ(t_job_is(s, "past", IL_JOB_READY)->run_at_ms, T_WALL_MS_START - 1);
    t_pass(s, 4999);
    (void)t_job_is(s, "d", IL_JOB_SCHEDULED);
    t_pass(s, 1);
    (void)t_job_is(s, "d", IL_JOB_READY); /* to whoever looks */
    (void)t_job_is(s, "at", IL_JOB_SCHEDULED);
}

/* A push whose answer got lost is repeated. */
T_TEST(a_repeated_push_is_the_same_job)
{
    uint64_t seq = T_IS(t_push(s, "q", "j", .data = "x"), IL_OK)->out.jobs[0].seq;

    t_pass(s, 1000);
    const il_op *op = T_IS(t_push(s, "q", "j", .data = "x", .priority = 9, .delay_ms = 100), IL_OK);
    T_EQ(op->out.flags, IL_OUT_RENEWED);
    T_EQU(op->out.jobs[0].seq, seq);
    T_EQ(op->out.jobs[0].priority, 0); /* as pushed first */
    T_EQ(op->out.jobs[0].created_at_ms, T_WALL_MS_START);
    T_EQU(t_queue(s, "q")->pushed, 1);
    T_EQU(t_queue(s, "q")->duplicates, 0);
    /* While it runs, and after it has ended. */
    uint64_t token = t_claim_is(s, "q", "w", "j");
    op             = T_IS(t_push(s, "q", "j", .data = "x"), IL_OK);
    T_EQ(op->out.jobs[0].state, IL_JOB_RUNNING);
    (void)T_IS(t_finish(s, "j", token), IL_OK);
    op = T_IS(t_push(s, "q", "j", .data = "x"), IL_OK);
    T_EQ(op->out.flags, IL_OUT_RENEWED);
    T_EQ(op->out.jobs[0].state, IL_JOB_COMPLETED);
}

T_TEST(an_id_names_one_job)
{
    (void)T_IS(t_push(s, "q", "j", .data = "x"), IL_OK);
    const il_op *op = T_IS(t_push(s, "q", "j", .data = "y"), IL_MISMATCH);
    T_STREQ(op->out.jobs[0].id, "j");
    T_HAS(op->out.detail, "another queue or payload");
    (void)T_IS(t_push(s, "q", "j", .data = "xx"), IL_MISMATCH);
    (void)T_IS(t_push(s, "q", "j"), IL_MISMATCH);
    op = T_IS(t_push(s, "r", "j", .data = "x"), IL_MISMATCH);
    T_STREQ(op->out.jobs[0].queue, "q");
    T_EQU(T_IS(t_queue_list(s), IL_OK)->out.n_queues, 1); /* and no queue was made */
}

T_TEST(a_repeated_push_recovers_its_job)
{
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    (void)t_claim_is(s, "q", "w", "j");
    t_pass(s, 30000);
    T_EQ(T_IS(t_push(s, "q", "j"), IL_OK)->out.jobs[0].state, IL_JOB_READY);
    T_EQU(t_queue(s, "q")->recovered, 1);
}

T_TEST(parents_that_cannot_be)
{
    (void)T_IS(t_push(s, "q", "single"), IL_OK);
    (void)T_IS(t_push(s, "q", "p", .flags = IL_PUSH_PARENT), IL_OK);
    (void)T_IS(t_push(s, "q", "two", .flags = IL_PUSH_PARENT, .n_children = 2), IL_OK);
    const il_op *op = T_IS(t_push(s, "q", "c", .parent = "nobody"), IL_NOT_FOUND);
    T_EQU(op->out.n_jobs, 0);
    T_HAS(op->out.detail, "parent");
    T_HAS(T_IS(t_push(s, "q", "c", .parent = "single"), IL_STATE)->out.detail, "not a parent");
    (void)T_IS(t_push(s, "q", "c", .parent = "c"), IL_NOT_FOUND); /* not even itself */
    (void)T_IS(t_push(s, "q", "c1", .parent = "two"), IL_OK);
    (void)T_IS(t_push(s, "q", "c2", .parent = "two"), IL_OK);
    T_HAS(T_IS(t_push(s, "q", "c3", .parent = "two"), IL_LIMIT)->out.detail, "children");
    T_EQ(T_IS(t_push(s, "q", "c2", .parent = "two"), IL_OK)->out.flags, IL_OUT_RENEWED);
    (void)T_IS(t_push(s, "q", "c4", .parent = "p"), IL_OK);
    (void)T_IS(t_seal(s, "p"), IL_OK);
    T_HAS(T_IS(t_push(s, "q", "c5", .parent = "p"), IL_STATE)->out.detail, "sealed");
    (void)T_IS(t_cancel(s, "c4"), IL_OK); /* the last child: the parent has ended */
    T_HAS(T_IS(t_push(s, "q", "c5", .parent = "p"), IL_STATE)->out.detail, "ended");
    (void)T_IS(t_job_get(s, "c5"), IL_NOT_FOUND);
}

T_TEST(seq_is_the_order_of_pushes)
{
    uint64_t a = T_IS(t_push(s, "q", "a"), IL_OK)->out.jobs[0].seq;
    uint64_t b = T_IS(t_push(s, "r", "b"), IL_OK)->out.jobs[0].seq;
    uint64_t c = T_IS(t_push(s, "q", "c"), IL_OK)->out.jobs[0].seq;

    T_LESS(a, b);
    T_LESS(b, c);
}

T_TEST(tenants_are_apart)
{
    (void)T_IS(t_push(s, "q", "j", .data = "1", .tenant = "one"), IL_OK);
    (void)T_IS(t_push(s, "q", "j", .data = "2", .tenant = "two"), IL_OK);
    (void)T_IS(t_push(s, "q", "k", .unique_key = "u", .tenant = "one"), IL_OK);
    (void)T_IS(t_push(s, "q", "k", .unique_key = "u", .tenant = "two"), IL_OK);
    (void)T_IS(t_push(s, "q", "p", .flags = IL_PUSH_PARENT, .tenant = "one"), IL_OK);
    (void)T_IS(t_push(s, "q", "c", .parent = "p", .tenant = "two"), IL_NOT_FOUND);
    (void)T_IS(t_job_get(s, "j"), IL_NOT_FOUND);
    (void)T_IS(t_claim(s, "q", "w"), IL_NOT_FOUND);
    const il_op *op = T_IS(t_claim(s, "q", "w", .tenant = "two"), IL_OK);
    T_STREQ(op->out.jobs[0].payload, "2");
    T_STREQ(op->out.jobs[0].tenant, "two");
    uint64_t token = op->out.fence;
    (void)T_IS(t_finish(s, "j", token, .tenant = "one"), IL_STALE);
    (void)T_IS(t_finish(s, "j", token), IL_NOT_FOUND);
    (void)T_IS(t_cancel(s, "j", .tenant = "one"), IL_OK);
    (void)T_IS(t_finish(s, "j", token, .tenant = "two"), IL_OK);
}

static void
refused(const il_op *op, const char *why)
{
    T_HAS(T_IS(op, IL_INVAL)->out.detail, why);
}

T_TEST(what_is_refused)
{
    static char big[IL_BLOB_BYTES_MAX + 1];
    char        id65[IL_ID_BYTES_MAX + 2];
    char        name129[IL_QUEUE_BYTES_MAX + 2];
    char        key513[IL_KEY_BYTES_MAX + 2];

    memset(id65, 'i', sizeof id65 - 1);
    id65[sizeof id65 - 1] = '\0';
    memset(name129, 'n', sizeof name129 - 1);
    name129[sizeof name129 - 1] = '\0';
    memset(key513, 'k', sizeof key513 - 1);
    key513[sizeof key513 - 1] = '\0';

    refused(t_push(s, NULL, "j"), "no queue given");
    refused(t_push(s, "", "j"), "queue is empty");
    refused(t_push(s, name129, "j"), "queue is longer");
    refused(t_push(s, "a\nb", "j"), "queue contains a control");
    refused(t_push(s, "q", NULL), "no id given");
    refused(t_push(s, "q", id65), "id is longer");
    refused(t_push(s, "q", "a\tb"), "id contains a control");
    refused(t_push(s, "q", "j", .data = big, .data_bytes = sizeof big),
            "payload has 1048577 bytes");
    refused(t_push(s, "q", "j", .data_bytes = 1), "payload is NULL");
    refused(t_push(s, "q", "j", .group = key513), "group is longer");
    refused(t_push(s, "q", "j", .group = "a\x7f"), "group contains a control");
    refused(t_push(s, "q", "j", .unique_key = "a\nb"), "unique key contains a control");
    refused(t_push(s, "q", "j", .unique_key = "\xff"), "unique key is not valid UTF-8");
    refused(t_push(s, "q", "j", .unique_for_ms = 5), "needs a unique key");
    refused(t_push(s, "q", "j", .unique_key = "u", .unique_for_ms = -1), "unique_for_ms");
    refused(t_push(s, "q", "j", .unique_key = "u", .unique_for_ms = IL_DELAY_MS_MAX + 1),
            "unique_for_ms");
    refused(t_push(s, "q", "j", .parent = id65), "parent is longer");
    refused(t_push(s, "q", "j", .priority = 1001),
            "priority must be between -1000 and 1000, not 1001");
    refused(t_push(s, "q", "j", .priority = -1001), "priority");
    refused(t_push(s, "q", "j", .delay_ms = -1),
            "delay_ms must be between 0 and 31622400000, not -1");
    refused(t_push(s, "q", "j", .delay_ms = IL_DELAY_MS_MAX + 1), "delay_ms");
    refused(t_push(s, "q", "j", .run_at_ms = -1), "run_at_ms");
    refused(t_push(s, "q", "j", .run_at_ms = INT64_MAX), "run_at_ms");
    refused(t_push(s, "q", "j", .run_at_ms = 5, .delay_ms = 5), "cannot be combined");
    refused(t_push(s, "q", "j", .max_attempts = 1001), "max_attempts");
    refused(t_push(s, "q", "j", .n_children = 1), "children");
    refused(t_push(s, "q", "j", .flags = IL_PUSH_PARENT, .parent = "p"), "cannot have a parent");
    refused(t_push(s, "q", "j", .flags = IL_PUSH_PARENT, .group = "g"), "cannot have a group");
    refused(t_push(s, "q", "j", .flags = IL_PUSH_PARENT, .delay_ms = 1), "cannot be delayed");
    T_EQU(T_IS(t_queue_list(s), IL_OK)->out.n_queues, 0);
    /* At the limits. */
    id65[IL_ID_BYTES_MAX] = name129[IL_QUEUE_BYTES_MAX] = key513[IL_KEY_BYTES_MAX] = '\0';
    (void)T_IS(t_push(s, name129, id65, .data = big, .data_bytes = IL_BLOB_BYTES_MAX,
                      .group = key513, .unique_key = key513, .unique_for_ms = IL_DELAY_MS_MAX,
                      .priority = -1000, .delay_ms = IL_DELAY_MS_MAX,
                      .max_attempts = IL_ATTEMPTS_MAX),
               IL_OK);
    const il_job_info *j = t_job_is(s, id65, IL_JOB_SCHEDULED);
    T_STREQ(j->group, key513);
    T_STREQ(j->unique_key, key513);
    T_EQU(j->payload_bytes, IL_BLOB_BYTES_MAX);
    T_EQ(j->max_attempts, 1000);
    /* Empty is none. */
    (void)T_IS(t_push(s, "q", "none", .group = "", .unique_key = "", .parent = ""), IL_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(a_pushed_job_is_ready),
        T_ROW(payloads_are_bytes),
        T_ROW(a_delayed_job_is_scheduled_until_its_time),
        T_ROW(a_repeated_push_is_the_same_job),
        T_ROW(an_id_names_one_job),
        T_ROW(a_repeated_push_recovers_its_job),
        T_ROW(parents_that_cannot_be),
        T_ROW(seq_is_the_order_of_pushes),
        T_ROW(tenants_are_apart),
        T_ROW(what_is_refused),
    };

    return T_SUITE("job_push", tests);
}
