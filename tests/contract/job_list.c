/*
 * job_list.c: showing jobs and queues: get, list, queue_list, queue_set; and purge.
 */
#include "harness/job.h"
#include "harness/suite.h"

/* One job in each state: done, dead, off, runs, ready, later. */
static void
one_of_each(struct t_store *s, const char *queue)
{
    (void)T_IS(t_push(s, queue, "done", .data = "payload"), IL_OK);
    (void)T_IS(t_finish(s, "done", t_claim_is(s, queue, "w", "done"), .data = "result"), IL_OK);
    (void)T_IS(t_push(s, queue, "dead"), IL_OK);
    (void)T_IS(t_job_fail(s, "dead", t_claim_is(s, queue, "w", "dead"), .flags = IL_FAIL_FINAL),
               IL_OK);
    (void)T_IS(t_push(s, queue, "off"), IL_OK);
    (void)T_IS(t_cancel(s, "off"), IL_OK);
    (void)T_IS(t_push(s, queue, "runs"), IL_OK);
    (void)t_claim_is(s, queue, "w", "runs");
    (void)T_IS(t_push(s, queue, "ready"), IL_OK);
    (void)T_IS(t_push(s, queue, "later", .delay_ms = 60000), IL_OK);
}

static void
ids_are(const il_op *op, const char *const *ids, size_t n)
{
    T_EQU(T_IS(op, IL_OK)->out.n_jobs, n);
    for (size_t i = 0; i < n; i++)
        T_STREQ(op->out.jobs[i].id, ids[i]);
}
#define IDS(op, ...)                                            \
    do {                                                        \
        static const char *const expected_[] = { __VA_ARGS__ }; \
        ids_are((op), expected_, ARRAY_LEN(expected_));         \
    } while (0)

T_TEST(newest_first)
{
    one_of_each(s, "q");
    const il_op *op = t_job_list(s, "q");
    IDS(op, "later", "ready", "runs", "off", "dead", "done");
    T_TRUE(op->out.next == NULL);
    T_EQU(op->out.fence, 0);
    T_EQ(op->out.jobs[2].remaining_ms, 30000);
    T_STREQ(op->out.jobs[2].worker, "w");
}

/* By state. */
T_TEST(by_state)
{
    one_of_each(s, "q");
    IDS(t_job_list(s, "q", .states = T_STATE(SCHEDULED)), "later");
    IDS(t_job_list(s, "q", .states = T_STATE(READY)), "ready");
    IDS(t_job_list(s, "q", .states = T_STATE(RUNNING)), "runs");
    IDS(t_job_list(s, "q", .states = T_STATE(COMPLETED)), "done");
    IDS(t_job_list(s, "q", .states = T_STATE(FAILED)), "dead");
    IDS(t_job_list(s, "q", .states = T_STATE(CANCELLED)), "off");
    IDS(t_job_list(s, "q", .states = T_STATE(CANCELLED) | T_STATE(RUNNING) | T_STATE(COMPLETED)),
        "runs", "off", "done");
    t_pass(s, 60000);
    IDS(t_job_list(s, "q", .states = T_STATE(READY)), "later", "ready"); /* its time has come */
    T_EQU(T_IS(t_job_list(s, "q", .states = T_STATE(SCHEDULED)), IL_OK)->out.n_jobs, 0);
    IDS(t_job_list(s, "q", .states = T_STATE(RUNNING)), "runs"); /* dead, but not yet recovered */
}

T_TEST(pages)
{
    char cursor[128] = "";

    t_push_many(s, "q", "j", 25, T_JOB());
    (void)T_IS(t_push(s, "r", "other"), IL_OK);
    unsigned n = 25;
    for (unsigned i = 0; i < 3; i++) {
        const il_op *op =
            T_IS(t_job_list(s, "q", .limit = 10, .cursor = i > 0 ? cursor : NULL), IL_OK);
        T_EQU(op->out.n_jobs, i < 2 ? 10 : 5);
        for (size_t k = 0; k < op->out.n_jobs; k++) {
            char id[8];
            (void)snprintf(id, sizeof id, "j%u", --n);
            T_STREQ(op->out.jobs[k].id, id);
        }
        T_EQ(op->out.next != NULL, i < 2);
        if (op->out.next != NULL)
            (void)snprintf(cursor, sizeof cursor, "%s", op->out.next);
        /* What is pushed meanwhile does not disturb. */
        (void)T_IS(t_push(s, "q", i == 0 ? "new0" : i == 1 ? "new1" : "new2"), IL_OK);
    }
    T_EQU(T_IS(t_job_list(s, "q", .limit = 28), IL_OK)->out.n_jobs, 28);
    T_TRUE(T_IS(t_job_list(s, "q", .limit = 28), IL_OK)->out.next == NULL); /* exactly all */
}

T_TEST(pages_by_state)
{
    t_push_many(s, "q", "a", 5, T_JOB());
    t_push_many(s, "q", "b", 5, T_JOB(.delay_ms = 1000));
    t_push_many(s, "q", "c", 5, T_JOB());
    const il_op *op = t_job_list(s, "q", .limit = 7, .states = T_STATE(READY));
    IDS(op, "c4", "c3", "c2", "c1", "c0", "a4", "a3");
    IDS(t_job_list(s, "q", .limit = 7, .states = T_STATE(READY), .cursor = op->out.next), "a2",
        "a1", "a0");
}

T_TEST(all_queues_of_a_tenant)
{
    (void)T_IS(t_push(s, "q", "a"), IL_OK);
    (void)T_IS(t_push(s, "r", "b"), IL_OK);
    (void)T_IS(t_push(s, "q", "c"), IL_OK);
    (void)T_IS(t_push(s, "q", "x", .tenant = "two"), IL_OK);
    IDS(t_job_list(s, NULL), "c", "b", "a");
    const il_op *op = t_job_list(s, NULL, .limit = 2);
    IDS(op, "c", "b");
    IDS(t_job_list(s, NULL, .limit = 2, .cursor = op->out.next), "a");
    IDS(t_job_list(s, "r"), "b");
    T_EQU(T_IS(t_job_list(s, "nobody"), IL_OK)->out.n_jobs, 0);
}

T_TEST(parents_show_their_counts_in_a_list)
{
    (void)T_IS(t_push(s, "q", "p", .flags = IL_PUSH_PARENT), IL_OK);
    t_push_many(s, "q", "c", 3, T_JOB(.parent = "p"));
    (void)T_IS(t_cancel(s, "c1"), IL_OK);
    const il_op *op = T_IS(t_job_list(s, "q", .states = T_STATE(RUNNING)), IL_OK);
    T_EQ(op->out.jobs[0].is_parent, 1);
    T_EQ(op->out.jobs[0].n_children, 3);
    T_EQ(op->out.jobs[0].n_children_failed, 1);
}

T_TEST(get_shows_payload_and_result)
{
    one_of_each(s, "q");
    const il_op       *op = T_IS(t_job_get(s, "done"), IL_OK);
    const il_job_info *j  = &op->out.jobs[0];
    T_STREQ(j->payload, "payload");
    T_STREQ(j->result, "result");
    T_EQU(op->out.fence, j->token);
    T_EQ(T_IS(t_job_get(s, "runs"), IL_OK)->out.remaining_ms, 30000);
}

/* What a job carries is shown by a listing, unless it is large: then its size is. */
T_TEST(a_listing_shows_what_is_small)
{
    static char large[IL_TEXT_BYTES_MAX + 1];

    memset(large, 'x', sizeof large);
    (void)T_IS(t_push(s, "q", "a"), IL_OK);
    (void)T_IS(t_finish(s, "a", t_claim_is(s, "q", "w", "a")), IL_OK);
    for (unsigned i = 0; i < 2; i++) {
        const char *id = i == 0 ? "b" : "c";
        (void)T_IS(t_push(s, "q", id, .data = large, .data_bytes = IL_TEXT_BYTES_MAX + i), IL_OK);
        (void)T_IS(t_finish(s, id, t_claim_is(s, "q", "w", id), .data = large,
                            .data_bytes = IL_TEXT_BYTES_MAX + 1 - i),
                   IL_OK);
    }
    (void)T_IS(t_push(s, "q", "d", .data = "live"), IL_OK);
    for (unsigned all = 0; all < 2; all++) {
        const il_job_info *j = T_IS(t_job_list(s, all != 0 ? NULL : "q"), IL_OK)->out.jobs;
        T_STREQ(j[0].payload, "live");
        T_EQU(j[0].payload_bytes, 4);
        T_TRUE(j[0].result == NULL); /* not yet */
        T_EQU(j[0].result_bytes, 0);
        T_TRUE(j[1].payload == NULL);
        T_EQU(j[1].payload_bytes, IL_TEXT_BYTES_MAX + 1);
        T_EQU(strlen(j[1].result), IL_TEXT_BYTES_MAX);
        T_EQU(j[1].result_bytes, IL_TEXT_BYTES_MAX);
        T_EQU(strlen(j[2].payload), IL_TEXT_BYTES_MAX);
        T_EQU(j[2].payload_bytes, IL_TEXT_BYTES_MAX);
        T_TRUE(j[2].result == NULL);
        T_EQU(j[2].result_bytes, IL_TEXT_BYTES_MAX + 1);
        T_STREQ(j[3].payload, "");
        T_STREQ(j[3].result, "");
    }
    T_EQU(strlen(T_IS(t_job_get(s, "c"), IL_OK)->out.jobs[0].payload), IL_TEXT_BYTES_MAX + 1);
}

/* ---- queues ---------------------------------------------------------------------------------- */

T_TEST(a_queue_is_counted)
{
    one_of_each(s, "q");
    (void)T_IS(t_push(s, "q", "dup"), IL_OK);
    t_pass(s, 5000);
    const il_queue_info *q = t_queue(s, "q");
    T_STREQ(q->tenant, "default");
    T_EQ(q->paused, 0);
    T_STREQ(q->reason, "");
    T_EQ(q->n_workers, 1);
    T_EQU(q->n_scheduled, 1);
    T_EQU(q->n_ready, 2);
    T_EQU(q->n_running, 1);
    T_EQU(q->n_failed, 1);
    T_EQ(q->oldest_ms, 5000);
    T_EQU(q->pushed, 7);
    T_EQU(q->claimed, 3);
    T_EQU(q->completed, 1);
    T_EQU(q->failed_attempts, 1);
    T_EQU(q->failed, 1);
    T_EQU(q->cancelled, 1);
    T_EQU(q->snoozed, 0);
    T_EQU(q->recovered, 0);
    T_EQU(q->duplicates, 0);
    T_EQU(q->stale, 0);
    t_pass(s, 55000); /* `later` is due, the others wait since a minute */
    q = t_queue(s, "q");
    T_EQU(q->n_scheduled, 0);
    T_EQU(q->n_ready, 3);
    T_EQ(q->oldest_ms, 60000);
    t_clock_set_wall(&s->clock, -3600000);
    q = t_queue(s, "q");
    T_EQU(q->n_scheduled, 1);
    T_EQ(q->oldest_ms, 0); /* never negative */
}

T_TEST(workers_of_the_last_minute)
{
    (void)T_IS(t_queue_set(s, "q"), IL_OK);
    T_EQ(t_queue(s, "q")->n_workers, 0);
    t_claim_none(s, "q", "w1");
    t_pass(s, 30000);
    t_claim_none(s, "q", "w2");
    t_claim_none(s, "q", "w2");
    T_EQ(t_queue(s, "q")->n_workers, 2);
    t_pass(s, 29999);
    T_EQ(t_queue(s, "q")->n_workers, 2);
    t_pass(s, 1);
    T_EQ(t_queue(s, "q")->n_workers, 1); /* swept or not */
    (void)T_IS(t_sweep(s), IL_OK);
    T_EQ(t_queue(s, "q")->n_workers, 1);
    t_claim_none(s, "q", "w1");
    T_EQ(t_queue(s, "q")->n_workers, 2);
}

T_TEST(queues_by_name)
{
    static const char *const names[] = { "b", "a2", "a10", "c", "a1" };

    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        (void)T_IS(t_queue_set(s, names[i]), IL_OK);
    (void)T_IS(t_push(s, "a0", "x", .tenant = "two"), IL_OK);
    const il_op *op = T_IS(t_queue_list(s), IL_OK);
    T_EQU(op->out.n_queues, 5);
    T_STREQ(op->out.queues[0].name, "a1");
    T_STREQ(op->out.queues[1].name, "a10");
    T_STREQ(op->out.queues[4].name, "c");
    op = T_IS(t_queue_list(s, .prefix = "a", .limit = 2), IL_OK);
    T_EQU(op->out.n_queues, 2);
    op = T_IS(t_queue_list(s, .prefix = "a", .limit = 2, .cursor = op->out.next), IL_OK);
    T_EQU(op->out.n_queues, 1);
    T_STREQ(op->out.queues[0].name, "a2");
    T_TRUE(op->out.next == NULL);
    T_TRUE(T_IS(t_queue_list(s, .limit = 5), IL_OK)->out.next == NULL);
}

T_TEST(defaults_and_settings)
{
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    const il_queue_opts *o = &t_queue(s, "q")->opts;
    T_EQ(o->strategy, 1 + IL_STRATEGY_PESSIMISTIC);
    T_EQ(o->max_attempts, 5);
    T_EQ(o->lease_ms, 30000);
    T_EQ(o->backoff_ms, 1000);
    T_EQ(o->backoff_max_ms, 3600000);
    T_EQ(o->group_limit, -1);
    T_EQ(o->rate_n, -1);
    T_EQ(o->rate_ms, 1000);
    T_EQ(o->keep_ms, INT64_C(7) * 86400000);
    T_EQ(o->keep_failed_ms, INT64_C(30) * 86400000);
    T_EQ(o->processing_timeout_ms, 300000);
    T_EQ(o->executing_timeout_ms, 120000);

    const il_op *op =
        T_IS(t_queue_set(s, "q", .strategy = 2, .max_attempts = 9, .lease_ms = 1000,
                         .backoff_ms = 1, .backoff_max_ms = 2, .group_limit = 3, .rate_n = 4,
                         .rate_ms = 5, .keep_ms = -1, .keep_failed_ms = 6,
                         .processing_timeout_ms = 7000, .executing_timeout_ms = 8000),
             IL_OK);
    T_EQU(op->out.n_queues, 1);
    T_EQU(op->out.queues[0].n_ready, 1);
    (void)T_IS(t_queue_set(s, "q", .keep_failed_ms = 60), IL_OK); /* the others stay */
    o = &t_queue(s, "q")->opts;
    T_EQ(o->strategy, 1 + IL_STRATEGY_OPTIMISTIC);
    T_EQ(o->max_attempts, 9);
    T_EQ(o->lease_ms, 1000);
    T_EQ(o->backoff_ms, 1);
    T_EQ(o->backoff_max_ms, 2);
    T_EQ(o->group_limit, 3);
    T_EQ(o->rate_n, 4);
    T_EQ(o->rate_ms, 5);
    T_EQ(o->keep_ms, IL_FOREVER);
    T_EQ(o->keep_failed_ms, 60);
    T_EQ(o->processing_timeout_ms, 7000);
    T_EQ(o->executing_timeout_ms, 8000);
    /* max_attempts is the queue's at the time of the push. */
    T_EQ(T_IS(t_push(s, "q", "k"), IL_OK)->out.jobs[0].max_attempts, 9);
    T_EQ(t_job_is(s, "j", IL_JOB_READY)->max_attempts, 5);
}

static void
refused(const il_op *op, const char *why)
{
    T_HAS(T_IS(op, IL_INVAL)->out.detail, why);
}

T_TEST(settings_that_are_refused)
{
    refused(t_queue_set(s, ""), "queue is empty");
    refused(t_queue_set(s, "q", .strategy = 3), "strategy must be between 1 and 2, not 3");
    refused(t_queue_set(s, "q", .strategy = -1), "strategy");
    refused(t_queue_set(s, "q", .max_attempts = 1001), "max_attempts");
    refused(t_queue_set(s, "q", .max_attempts = -1), "max_attempts");
    refused(t_queue_set(s, "q", .lease_ms = 999), "lease_ms");
    refused(t_queue_set(s, "q", .lease_ms = IL_TTL_MS_MAX + 1), "lease_ms");
    refused(t_queue_set(s, "q", .backoff_ms = -1), "backoff_ms");
    refused(t_queue_set(s, "q", .backoff_max_ms = IL_DELAY_MS_MAX + 1), "backoff_max_ms");
    refused(t_queue_set(s, "q", .group_limit = -2),
            "group_limit must be between 1 and 1000000 (or -1), not -2");
    refused(t_queue_set(s, "q", .rate_n = 10001), "rate_n");
    refused(t_queue_set(s, "q", .rate_ms = -1), "rate_ms");
    refused(t_queue_set(s, "q", .keep_ms = -2), "keep_ms");
    refused(t_queue_set(s, "q", .keep_failed_ms = IL_DELAY_MS_MAX + 1), "keep_failed_ms");
    refused(t_queue_set(s, "q", .processing_timeout_ms = -1), "processing_timeout_ms");
    refused(t_queue_set(s, "q", .executing_timeout_ms = 999), "executing_timeout_ms");
    T_EQU(T_IS(t_queue_list(s), IL_OK)->out.n_queues, 0);
}

T_TEST(listings_that_are_refused)
{
    refused(t_job_list(s, "q", .states = 1), "unknown job states");
    refused(t_job_list(s, "q", .states = 1U << IL_JOB_STATE_COUNT), "unknown job states");
    refused(t_job_list(s, "q", .limit = IL_PAGE_ITEMS_MAX + 1), "limit");
    refused(t_job_list(s, "q", .cursor = "nonsense"), "cursor");
    refused(t_job_list(s, ""), "queue is empty");
    refused(t_queue_list(s, .cursor = ":x"), "cursor");
    refused(t_queue_list(s, .prefix = "a\n"), "prefix contains a control");
    refused(t_purge(s, NULL, .states = T_STATE(FAILED)), "no queue");
    refused(t_purge(s, "q"), "no state to purge");
    refused(t_purge(s, "q", .states = 1), "unknown job states");
    refused(t_purge(s, "q", .states = T_STATE(FAILED) | T_STATE(RUNNING)), "running jobs");
    refused(t_purge(s, "q", .states = T_STATE(FAILED), .older_ms = -1), "older_ms");
    refused(t_purge(s, "q", .states = T_STATE(FAILED), .limit = 1001), "limit");
}

/* ---- purge ----------------------------------------------------------------------------------- */

/* Dead letters with retry and purge. */
T_TEST(purge_by_state)
{
    one_of_each(s, "q");
    T_EQ(T_IS(t_purge(s, "q", .states = T_STATE(FAILED)), IL_OK)->out.sweep.n_purged, 1);
    (void)T_IS(t_job_get(s, "dead"), IL_NOT_FOUND);
    T_EQU(t_queue(s, "q")->n_failed, 0);
    T_EQU(t_queue(s, "q")->failed, 1); /* totals stay */
    T_EQ(T_IS(t_purge(s, "q", .states = T_STATE(READY) | T_STATE(SCHEDULED)), IL_OK)
             ->out.sweep.n_purged,
         2);
    IDS(t_job_list(s, "q"), "runs", "off", "done");
    T_EQ(T_IS(t_purge(s, "q", .states = T_STATE(COMPLETED) | T_STATE(CANCELLED)), IL_OK)
             ->out.sweep.n_purged,
         2);
    IDS(t_job_list(s, "q"), "runs");
    t_claim_none(s, "q", "w");
    t_pass(s, 60000);
    (void)t_claim_is(s, "q", "w", "runs"); /* nothing else comes */
    t_claim_none(s, "q", "w");
    T_EQ(T_IS(t_purge(s, "nobody", .states = T_STATE(FAILED)), IL_OK)->out.sweep.n_purged, 0);
    /* Its id can be used again. */
    T_EQ(T_IS(t_push(s, "q", "dead", .data = "other"), IL_OK)->out.flags, 0);
}

T_TEST(purge_what_is_old)
{
    (void)T_IS(t_push(s, "q", "a"), IL_OK);
    (void)T_IS(t_cancel(s, "a"), IL_OK);
    t_pass(s, 1000);
    (void)T_IS(t_push(s, "q", "b"), IL_OK);
    (void)T_IS(t_cancel(s, "b"), IL_OK);
    t_pass(s, 1000);
    T_EQ(T_IS(t_purge(s, "q", .states = T_STATE(CANCELLED), .older_ms = 2001), IL_OK)
             ->out.sweep.n_purged,
         0);
    T_EQ(T_IS(t_purge(s, "q", .states = T_STATE(CANCELLED), .older_ms = 2000), IL_OK)
             ->out.sweep.n_purged,
         1);
    IDS(t_job_list(s, "q"), "b");
}

T_TEST(purge_is_bounded)
{
    t_push_many(s, "q", "j", 25, T_JOB());
    const il_op *op = T_IS(t_purge(s, "q", .states = T_STATE(READY), .limit = 10), IL_OK);
    T_EQ(op->out.sweep.n_purged, 10);
    T_EQ(op->out.flags, IL_OUT_MORE);
    (void)T_IS(t_job_get(s, "j9"), IL_NOT_FOUND); /* the oldest first */
    (void)t_job_is(s, "j10", IL_JOB_READY);
    T_EQ(T_IS(t_purge(s, "q", .states = T_STATE(READY), .limit = 10), IL_OK)->out.flags,
         IL_OUT_MORE);
    op = T_IS(t_purge(s, "q", .states = T_STATE(READY), .limit = 5), IL_OK);
    T_EQ(op->out.sweep.n_purged, 5);
    T_EQ(op->out.flags, 0); /* exactly all */
    T_EQ(T_IS(t_purge(s, "q", .states = T_STATE(READY), .limit = 5), IL_OK)->out.sweep.n_purged, 0);
}

T_TEST(a_due_job_is_purged_as_ready)
{
    (void)T_IS(t_push(s, "q", "d", .delay_ms = 1000), IL_OK);
    t_pass(s, 1000);
    T_EQ(T_IS(t_purge(s, "q", .states = T_STATE(SCHEDULED)), IL_OK)->out.sweep.n_purged, 0);
    T_EQ(T_IS(t_purge(s, "q", .states = T_STATE(READY)), IL_OK)->out.sweep.n_purged, 1);
    t_claim_none(s, "q", "w");
}

T_TEST(purge_of_one_queue_and_tenant)
{
    (void)T_IS(t_push(s, "q", "a"), IL_OK);
    (void)T_IS(t_push(s, "r", "b"), IL_OK);
    (void)T_IS(t_push(s, "q", "c", .tenant = "two"), IL_OK);
    T_EQ(T_IS(t_purge(s, "q", .states = T_STATE(READY)), IL_OK)->out.sweep.n_purged, 1);
    (void)t_job_is(s, "b", IL_JOB_READY);
    (void)T_IS(t_job_get(s, "c", .tenant = "two"), IL_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(newest_first),
        T_ROW(by_state),
        T_ROW(pages),
        T_ROW(pages_by_state),
        T_ROW(all_queues_of_a_tenant),
        T_ROW(parents_show_their_counts_in_a_list),
        T_ROW(get_shows_payload_and_result),
        T_ROW(a_listing_shows_what_is_small),
        T_ROW(a_queue_is_counted),
        T_ROW(workers_of_the_last_minute),
        T_ROW(queues_by_name),
        T_ROW(defaults_and_settings),
        T_ROW(settings_that_are_refused),
        T_ROW(listings_that_are_refused),
        T_ROW(purge_by_state),
        T_ROW(purge_what_is_old),
        T_ROW(purge_is_bounded),
        T_ROW(a_due_job_is_purged_as_ready),
        T_ROW(purge_of_one_queue_and_tenant),
    };

    return T_SUITE("job_list", tests);
}
