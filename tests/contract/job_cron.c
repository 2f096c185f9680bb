/*
 * job_cron.c: schedules: one job per tick, whichever process pushes it; missed ticks as configured.
 */
#include "harness/job.h"
#include "harness/suite.h"

#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)
#define W T_WALL_MS_START /* 2027-01-15T08:00:00Z, a Friday */

static void
every_minute(struct t_store *s, const char *name, il_missed missed)
{
    (void)T_IS(t_cron_set(s, "q", .name = name, .schedule = "* * * * *", .missed = missed), IL_OK);
}

T_TEST(an_entry_is_shown)
{
    const il_op *op =
        T_IS(t_cron_set(s, "q", .name = "nightly", .schedule = "30 2 * * *", .data = "x",
                        .data_bytes = 1, .missed = IL_MISSED_ONE, .priority = 7, .max_attempts = 3),
             IL_OK);
    T_EQU(op->out.n_crons, 1);
    for (unsigned i = 0; i < 2; i++) {
        const il_cron_info *c = i == 0 ? &op->out.crons[0] : t_cron(s, "nightly");
        T_STREQ(c->tenant, "default");
        T_STREQ(c->name, "nightly");
        T_STREQ(c->queue, "q");
        T_STREQ(c->schedule, "30 2 * * *");
        T_EQU(c->payload_bytes, 1);
        T_STREQ(c->payload, "x");
        T_EQ(c->missed, IL_MISSED_ONE);
        T_EQ(c->priority, 7);
        T_EQ(c->max_attempts, 3);
        T_EQU(c->n_ticks, 0);
        T_EQ(c->next_at_ms, W + 18 * HOUR + 30 * MINUTE);
        T_EQ(c->last_at_ms, 0);
    }
}

/* A worker that waits for a scheduled queue is not told that there is none. */
T_TEST(an_entry_makes_its_queue)
{
    (void)T_IS(t_cron_set(s, "q", .name = "c", .schedule = "0 0 30 2 *"), IL_INVAL);
    T_EQU(T_IS(t_queue_list(s), IL_OK)->out.n_queues, 0); /* what is refused makes none */
    (void)T_IS(t_cron_set(s, "q", .name = "c", .schedule = "@hourly"), IL_OK);
    T_EQU(T_IS(t_queue_list(s), IL_OK)->out.n_queues, 1);
    T_EQU(t_queue(s, "q")->pushed, 0);
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, HOUR);
    (void)T_IS(t_pause(s, "q", .text = "not now"), IL_OK);
    (void)T_IS(t_queue_set(s, "q", .max_attempts = 9), IL_OK);
    every_minute(s, "c", IL_MISSED_SKIP); /* a queue that is there stays as it is */
    T_STREQ(t_queue(s, "q")->reason, "not now");
    T_EQ(t_queue(s, "q")->opts.max_attempts, 9);
    (void)T_IS(t_cron_set(s, "r", .name = "c", .schedule = "@hourly"), IL_OK);
    (void)T_IS(t_cron_remove(s, "c"), IL_OK);
    T_EQU(T_IS(t_queue_list(s), IL_OK)->out.n_queues, 2); /* never forgotten */
    T_EQ(T_IS(t_claim(s, "r", "w"), IL_EMPTY)->out.remaining_ms, IL_FOREVER);
}

T_TEST(a_tick_pushes_a_job)
{
    (void)T_IS(t_cron_set(s, "q", .name = "c", .schedule = "5 * * * *", .data = "pay",
                          .data_bytes = 3, .priority = 2, .max_attempts = 4),
               IL_OK);
    t_pass(s, 5 * MINUTE - 1);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 0);
    t_pass(s, 1);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 1);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 0); /* once */
    const il_cron_info *c = t_cron(s, "c");
    T_EQU(c->n_ticks, 1);
    T_EQ(c->last_at_ms, W + 5 * MINUTE);
    T_EQ(c->next_at_ms, W + HOUR + 5 * MINUTE);
    T_EQU(t_queue(s, "q")->pushed, 1);
    const il_job_info *j = &T_IS(t_claim(s, "q", "w"), IL_OK)->out.jobs[0];
    T_STREQ(j->payload, "pay");
    T_EQ(j->priority, 2);
    T_EQ(j->max_attempts, 4);
    T_EQ(j->run_at_ms, W + 5 * MINUTE);
    T_EQ(j->created_at_ms, W + 5 * MINUTE);
    T_TRUE(strlen(j->id) <= IL_ID_BYTES_MAX);
}

T_TEST(a_claim_of_its_queue_ticks_too)
{
    (void)T_IS(t_queue_set(s, "other"), IL_OK);
    every_minute(s, "c", IL_MISSED_SKIP);
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, MINUTE);
    T_EQ(T_IS(t_claim(s, "other", "w"), IL_EMPTY)->out.remaining_ms, IL_FOREVER);
    t_pass(s, MINUTE);
    t_claim_none(s, "other", "w");
    (void)T_IS(t_claim(s, "q", "w"), IL_OK);
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, MINUTE);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 0);
}

/* One enqueue per tick across all nodes: its id says which. */
T_TEST(a_tick_is_pushed_once_though_the_entry_is_made_anew)
{
    every_minute(s, "c", IL_MISSED_ONE);
    t_pass(s, MINUTE);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 1);
    (void)T_IS(t_cron_remove(s, "c"), IL_OK);
    t_clock_set_wall(&s->clock, -1); /* the same minute comes again */
    every_minute(s, "c", IL_MISSED_ONE);
    t_pass(s, 1);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 0);
    T_EQU(t_cron(s, "c")->n_ticks, 0);
    T_EQ(t_cron(s, "c")->next_at_ms, W + 2 * MINUTE);
    T_EQU(t_queue(s, "q")->pushed, 1);
}

T_TEST(entries_and_tenants_have_ids_of_their_own)
{
    every_minute(s, "a", IL_MISSED_SKIP);
    every_minute(s, "b", IL_MISSED_SKIP);
    il_op op   = { .type = IL_OP_CRON_SET, .tenant = "two", .key = "q" };
    op.in.cron = (il_cron_in){ .name = "a", .schedule = "* * * * *" };
    (void)T_IS(t_op_run(s, NULL, op), IL_OK);
    t_pass(s, MINUTE);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 3);
    const il_op *claim = T_IS(t_claim(s, "q", "w", .limit = 9), IL_OK);
    T_EQU(claim->out.n_jobs, 2);
    T_TRUE(strcmp(claim->out.jobs[0].id, claim->out.jobs[1].id) != 0);
    const il_op *other = T_IS(t_claim(s, "q", "w", .tenant = "two"), IL_OK);
    T_TRUE(strcmp(claim->out.jobs[0].id, other->out.jobs[0].id) != 0);
    T_TRUE(strcmp(claim->out.jobs[1].id, other->out.jobs[0].id) != 0);
}

/* ---- missed ticks ---------------------------------------------------------------------------- */

T_TEST(skip_a_late_tick_is_not_pushed)
{
    (void)T_IS(t_cron_set(s, "q", .name = "c", .schedule = "@hourly"), IL_OK);
    t_pass(s, HOUR + 59999);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 1); /* less than a minute late */
    T_EQ(t_cron(s, "c")->last_at_ms, W + HOUR);
    t_pass(s, HOUR + 1); /* a minute late */
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 0);
    T_EQ(t_cron(s, "c")->next_at_ms, W + 3 * HOUR);
    T_EQ(t_cron(s, "c")->last_at_ms, W + HOUR);
    T_EQU(t_cron(s, "c")->n_ticks, 1);
}

T_TEST(skip_goes_on_with_the_tick_that_is_due_now)
{
    every_minute(s, "c", IL_MISSED_SKIP);
    t_pass(s, 10 * MINUTE);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 1);
    T_EQ(t_cron(s, "c")->last_at_ms, W + 10 * MINUTE);
    t_pass(s, 10 * MINUTE + 30000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 1);
    T_EQ(t_cron(s, "c")->last_at_ms, W + 20 * MINUTE);
    T_EQ(t_cron(s, "c")->next_at_ms, W + 21 * MINUTE);
}

T_TEST(one_job_for_all_that_were_missed)
{
    every_minute(s, "c", IL_MISSED_ONE);
    t_pass(s, 10 * MINUTE + 1);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 1);
    T_EQ(t_cron(s, "c")->last_at_ms, W + MINUTE); /* the first of them */
    T_EQ(t_cron(s, "c")->next_at_ms, W + 11 * MINUTE);
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_OK)->out.jobs[0].run_at_ms, W + MINUTE);
}

T_TEST(all_that_were_missed)
{
    every_minute(s, "c", IL_MISSED_ALL);
    t_pass(s, 10 * MINUTE);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 10);
    T_EQU(t_cron(s, "c")->n_ticks, 10);
    T_EQ(t_cron(s, "c")->last_at_ms, W + 10 * MINUTE);
    const il_op *op = T_IS(t_claim(s, "q", "w", .limit = 100), IL_OK);
    T_EQU(op->out.n_jobs, 10);
    for (unsigned i = 0; i < 10; i++)
        T_EQ(op->out.jobs[i].run_at_ms, W + (i + 1) * MINUTE);
}

T_TEST(a_pass_is_bounded)
{
    every_minute(s, "c", IL_MISSED_ALL);
    t_pass(s, 25 * MINUTE);
    const il_op *op = T_IS(t_sweep(s, .limit = 10), IL_OK);
    T_EQ(op->out.sweep.n_ticks, 10);
    T_TRUE((op->out.flags & IL_OUT_MORE) != 0);
    T_EQ(t_cron(s, "c")->next_at_ms, W + 11 * MINUTE);
    T_EQ(T_IS(t_sweep(s, .limit = 10), IL_OK)->out.sweep.n_ticks, 10);
    op = T_IS(t_sweep(s, .limit = 10), IL_OK);
    T_EQ(op->out.sweep.n_ticks, 5);
    T_EQ(op->out.flags & IL_OUT_MORE, 0);
}

T_TEST(a_claim_pushes_a_thousand)
{
    every_minute(s, "c", IL_MISSED_ALL);
    t_pass(s, 1500 * MINUTE);
    (void)T_IS(t_claim(s, "q", "w"), IL_OK);
    T_EQU(t_cron(s, "c")->n_ticks, 1000);
    (void)T_IS(t_claim(s, "q", "w"), IL_OK);
    T_EQU(t_cron(s, "c")->n_ticks, 1500);
}

T_TEST(the_budget_is_shared_by_the_entries)
{
    every_minute(s, "a", IL_MISSED_ALL);
    every_minute(s, "b", IL_MISSED_ALL);
    (void)T_IS(t_cron_set(s, "q", .name = "h", .schedule = "1 * * * *"), IL_OK);
    t_pass(s, 5 * MINUTE);
    /* By next tick, then name: a's five, b's five; h counts as one though it is too late. */
    const il_op *op = T_IS(t_sweep(s, .limit = 7), IL_OK);
    T_EQ(op->out.sweep.n_ticks, 7);
    T_EQU(t_cron(s, "a")->n_ticks, 5);
    T_EQU(t_cron(s, "b")->n_ticks, 2);
    op = T_IS(t_sweep(s, .limit = 1), IL_OK);
    T_EQ(op->out.sweep.n_ticks, 0); /* h was due before the rest of b */
    T_TRUE((op->out.flags & IL_OUT_MORE) != 0);
    T_EQ(t_sweep_all(s, 2).n_ticks, 3);
    T_EQU(t_cron(s, "b")->n_ticks, 5);
    T_EQU(t_cron(s, "h")->n_ticks, 0);
}

/* ---- time zones ------------------------------------------------------------------------------ */

#define BERLIN "CRON_TZ=Europe/Berlin "
#define DAY (24 * HOUR)

/* Berlin skips 02:00 to 03:00 on 28 March 2027: what falls into it comes once, at the jump. */
T_TEST(an_hour_that_a_zone_skips)
{
    t_pass(s, 71 * DAY + 4 * HOUR); /* 2027-03-27T12:00Z */
    int64_t noon = W + 71 * DAY + 4 * HOUR;
    (void)T_IS(t_cron_set(s, "q", .name = "c", .schedule = BERLIN "0,30 2 * * *"), IL_OK);
    T_STREQ(t_cron(s, "c")->schedule, BERLIN "0,30 2 * * *");
    T_EQ(t_cron(s, "c")->next_at_ms, noon + 13 * HOUR);
    t_pass(s, 13 * HOUR);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 1);
    T_EQ(t_cron(s, "c")->last_at_ms, noon + 13 * HOUR);
    T_EQ(t_cron(s, "c")->next_at_ms, noon + 36 * HOUR); /* at 02:00 again, an hour earlier in UTC */
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 0);
    T_EQU(t_queue(s, "q")->pushed, 1);
}

/* 02:30 comes twice on 31 October 2027; the first one counts. */
T_TEST(an_hour_that_a_zone_repeats)
{
    t_pass(s, 288 * DAY + 4 * HOUR); /* 2027-10-30T12:00Z */
    int64_t noon = W + 288 * DAY + 4 * HOUR;
    (void)T_IS(
        t_cron_set(s, "q", .name = "c", .schedule = BERLIN "30 2 * * *", .missed = IL_MISSED_ALL),
        IL_OK);
    T_EQ(t_cron(s, "c")->next_at_ms, noon + 12 * HOUR + 30 * MINUTE);
    t_pass(s, 12 * HOUR + 30 * MINUTE);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 1);
    T_EQ(t_cron(s, "c")->next_at_ms, noon + 37 * HOUR + 30 * MINUTE);
    t_pass(s, HOUR);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 0);
    /* The same text keeps the tick; another zone computes it anew. */
    (void)T_IS(t_cron_set(s, "q", .name = "c", .schedule = BERLIN "30 2 * * *"), IL_OK);
    T_EQ(t_cron(s, "c")->next_at_ms, noon + 37 * HOUR + 30 * MINUTE);
    (void)T_IS(t_cron_set(s, "q", .name = "c", .schedule = "CRON_TZ=Asia/Tokyo 30 2 * * *"), IL_OK);
    T_EQ(t_cron(s, "c")->next_at_ms, noon + 29 * HOUR + 30 * MINUTE);
}

/* ---- changing entries ------------------------------------------------------------------------ */

T_TEST(setting_it_again)
{
    (void)T_IS(
        t_cron_set(s, "q", .name = "c", .schedule = "30 * * * *", .data = "a", .data_bytes = 1),
        IL_OK);
    t_pass(s, 45 * MINUTE);
    /* The same schedule: the tick that is due stays due. */
    (void)T_IS(t_cron_set(s, "q", .name = "c", .schedule = "30 * * * *", .data = "b",
                          .data_bytes = 1, .missed = IL_MISSED_ONE),
               IL_OK);
    T_EQ(t_cron(s, "c")->next_at_ms, W + 30 * MINUTE);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 1);
    T_STREQ(T_IS(t_claim(s, "q", "w"), IL_OK)->out.jobs[0].payload, "b");
    /* Another one begins now; what was counted stays. */
    (void)T_IS(t_cron_set(s, "r", .name = "c", .schedule = "50 * * * *"), IL_OK);
    const il_cron_info *c = t_cron(s, "c");
    T_EQ(c->next_at_ms, W + 50 * MINUTE);
    T_EQU(c->n_ticks, 1);
    T_EQ(c->last_at_ms, W + 30 * MINUTE);
    T_STREQ(c->queue, "r");
    T_EQU(T_IS(t_cron_list(s, "q"), IL_OK)->out.n_crons, 0);
    t_pass(s, 5 * MINUTE);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 1);
    (void)T_IS(t_claim(s, "r", "w"), IL_OK);
}

T_TEST(removing_it)
{
    (void)T_IS(t_cron_remove(s, "c"), IL_NOT_FOUND);
    every_minute(s, "c", IL_MISSED_ALL);
    (void)T_IS(t_cron_remove(s, "c"), IL_OK);
    (void)T_IS(t_cron_remove(s, "c"), IL_NOT_FOUND);
    t_pass(s, HOUR);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 0);
    T_EQU(T_IS(t_cron_list(s, NULL), IL_OK)->out.n_crons, 0);
}

T_TEST(listing)
{
    static const char *const names[] = { "b", "a2", "a1", "c", "a3" };

    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        (void)T_IS(t_cron_set(s, i == 3 ? "r" : "q", .name = names[i], .schedule = "@daily"),
                   IL_OK);
    const il_op *op = T_IS(t_cron_list(s, NULL), IL_OK);
    T_EQU(op->out.n_crons, 5);
    T_STREQ(op->out.crons[0].name, "a1");
    T_STREQ(op->out.crons[4].name, "c");
    T_TRUE(op->out.next == NULL);
    T_EQU(T_IS(t_cron_list(s, "r"), IL_OK)->out.n_crons, 1);
    T_EQU(T_IS(t_cron_list(s, "nobody"), IL_OK)->out.n_crons, 0);
    op = T_IS(t_cron_list(s, "q", .prefix = "a", .limit = 2), IL_OK);
    T_EQU(op->out.n_crons, 2);
    T_TRUE(op->out.next != NULL);
    op = T_IS(t_cron_list(s, "q", .prefix = "a", .limit = 2, .cursor = op->out.next), IL_OK);
    T_EQU(op->out.n_crons, 1);
    T_STREQ(op->out.crons[0].name, "a3");
    T_TRUE(op->out.next == NULL);
}

/* ---- time ------------------------------------------------------------------------------------ */

T_TEST(the_wall_clock_jumps)
{
    every_minute(s, "c", IL_MISSED_ALL);
    t_clock_set_wall(&s->clock, 3 * MINUTE);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 3);
    t_clock_set_wall(&s->clock, -3 * MINUTE);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 0);
    t_pass(s, 3 * MINUTE); /* these were */
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 0);
    t_pass(s, MINUTE);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 1);
}

T_TEST(entries_survive)
{
    T_NEEDS(s, durable);
    every_minute(s, "c", IL_MISSED_ALL);
    t_store_reopen(s);
    t_pass(s, 2 * MINUTE);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_ticks, 2);
}

static void
refused(const il_op *op, const char *why)
{
    T_HAS(T_IS(op, IL_INVAL)->out.detail, why);
}

T_TEST(what_is_refused)
{
    static char big[IL_BLOB_BYTES_MAX + 1];

    refused(t_cron_set(s, NULL, .name = "c", .schedule = "@daily"), "no queue");
    refused(t_cron_set(s, "q", .schedule = "@daily"), "no name of the schedule");
    refused(t_cron_set(s, "q", .name = "", .schedule = "@daily"), "name of the schedule is empty");
    refused(t_cron_set(s, "q", .name = "c"), "no schedule given");
    refused(t_cron_set(s, "q", .name = "c", .schedule = ""), "schedule is empty");
    refused(t_cron_set(s, "q", .name = "c", .schedule = "* * * *"), "has 4 fields, expected five");
    refused(t_cron_set(s, "q", .name = "c", .schedule = "60 * * * *"),
            "minute '60' is out of range");
    refused(t_cron_set(s, "q", .name = "c", .schedule = "@never"), "'@never' is not one of");
    refused(t_cron_set(s, "q", .name = "c", .schedule = "0 0 30 2 *"), "never matches");
    refused(t_cron_set(s, "q", .name = "c", .schedule = "CRON_TZ=Mars/Base @daily"),
            "unknown time zone 'Mars/Base'");
    refused(t_cron_set(s, "q", .name = "c", .schedule = "CRON_TZ=../../etc/passwd @daily"),
            "is not a time zone name");
    refused(t_cron_set(s, "q", .name = "c", .schedule = "CRON_TZ=UTC"), "needs a time zone and a");
    refused(t_cron_set(s, "q", .name = "c", .schedule = "@daily", .priority = 2000), "priority");
    refused(t_cron_set(s, "q", .name = "c", .schedule = "@daily", .max_attempts = 5000),
            "max_attempts");
    refused(t_cron_set(s, "q", .name = "c", .schedule = "@daily", .missed = IL_MISSED_COUNT),
            "missed");
    refused(t_cron_set(s, "q", .name = "c", .schedule = "@daily", .data = big,
                       .data_bytes = sizeof big),
            "payload has");
    refused(t_cron_remove(s, NULL), "no name of the schedule");
    refused(t_cron_list(s, NULL, .limit = 1001), "limit");
    refused(t_cron_list(s, NULL, .cursor = "x"), "cursor");
    T_EQU(T_IS(t_cron_list(s, NULL), IL_OK)->out.n_crons, 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(an_entry_is_shown),
        T_ROW(an_entry_makes_its_queue),
        T_ROW(a_tick_pushes_a_job),
        T_ROW(a_claim_of_its_queue_ticks_too),
        T_ROW(a_tick_is_pushed_once_though_the_entry_is_made_anew),
        T_ROW(entries_and_tenants_have_ids_of_their_own),
        T_ROW(skip_a_late_tick_is_not_pushed),
        T_ROW(skip_goes_on_with_the_tick_that_is_due_now),
        T_ROW(one_job_for_all_that_were_missed),
        T_ROW(all_that_were_missed),
        T_ROW(a_pass_is_bounded),
        T_ROW(a_claim_pushes_a_thousand),
        T_ROW(the_budget_is_shared_by_the_entries),
        T_ROW(an_hour_that_a_zone_skips),
        T_ROW(an_hour_that_a_zone_repeats),
        T_ROW(setting_it_again),
        T_ROW(removing_it),
        T_ROW(listing),
        T_ROW(the_wall_clock_jumps),
        T_ROW(entries_survive),
        T_ROW(what_is_refused),
    };

    return T_SUITE("job_cron", tests);
}
