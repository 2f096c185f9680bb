/*
 * cancel.c: cancelling a tournament with more bookings than one transaction can hold.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "campus/field.h"
#include "harness/proc.h"

#define N_BOOKINGS 4200 /* in two sessions; a transaction holds 4,096 rows */
#define N_PLAYERS 3

/* Users who have booked, past our code: w1, w3, … the session s1 and w2, w4, … the session s2, with
 * one place each. */
static const char *const crowd[] = {
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4200) "
    "INSERT INTO users (tenant, id, email, created_at) SELECT 'acme', 'w' || i, 'w' || i, 1 FROM n",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4200) "
    "INSERT INTO bookings (tenant, id, user_id, session_id, status, is_live, waitlist_position, "
    "price, created_at) SELECT 'acme', 'b' || i, 'w' || i, 's' || (2 - i % 2), CASE WHEN i <= 2 "
    "THEN 'CONFIRMED' ELSE 'WAITLISTED' END, true, CASE WHEN i > 2 THEN (i - 1) / 2 END, 10, 1 "
    "FROM n",
    "UPDATE sessions SET available_spots = 0",
};

static void
fill(struct t_field *f)
{
    char out[4096];

    t_users(f, N_PLAYERS, 100, NULL);
    t_tournament(f, "t", 4, 10, CAMPUS_ENROLLMENT_OPEN);
    t_enroll(f, "t", 1, N_PLAYERS);
    t_session(f, "s1", "t", 1, 10, 48);
    t_session(f, "s2", "t", 1, 10, 72);
    for (unsigned i = 0; i < ARRAY_LEN(crowd); i++)
        (void)t_ask(f, crowd[i], out);
    T_EQ(t_count(f, "SELECT count(*) FROM bookings WHERE is_live"), N_BOOKINGS);
    t_verify(f);
}

static void
expect_refunded_once(struct t_field *f)
{
    T_EQ(t_count(f, "SELECT count(*) FROM bookings WHERE is_live"), 0);
    T_EQ(t_count(f, "SELECT count(*) FROM semester_enrollments WHERE is_active"), 0);
    T_EQ(t_count(f, "SELECT count(*) FROM users WHERE credit_balance = 10"), N_BOOKINGS);
    T_EQ(t_count(f, "SELECT count(*) FROM users WHERE credit_balance = 100"), N_PLAYERS);
    T_EQ(t_count(f, "SELECT count(*) FROM credit_transactions WHERE type = 'BOOKING_REFUND'"),
         N_BOOKINGS);
    T_EQ(t_count(f, "SELECT sum(available_spots) FROM sessions"), 2);
    T_EQ(t_count(f, "SELECT count(*) FROM system_events WHERE type = 'REFUND'"),
         N_BOOKINGS + N_PLAYERS);
    t_verify(f);
}

C_TEST(a_large_tournament_is_cancelled)
{
    struct campus_tournament t;

    fill(f);
    T_EQ(T_CALL(f, campus_transition, NULL, NULL, .tournament = "t", .state = "ARCHIVED"),
         CAMPUS_E_TOURNAMENT_STATE);
    T_DO(f, campus_transition, "call", &t, .tournament = "t", .state = "CANCELLED");
    T_STREQ(t.state, "CANCELLED");
    expect_refunded_once(f);
    T_DO(f, campus_transition, "call", &t, .tournament = "t", .state = "CANCELLED"); /* repeated */
    T_STREQ(t.state, "CANCELLED");
    expect_refunded_once(f);
}

static int
cancel_and_die(void *arg)
{
    struct t_victim         *v = arg;
    struct campus_tournament t;
    struct campus_in         in = { .tournament = "t", .state = "CANCELLED" };

    t_field_open(v->f);
    struct campus_call c = { .db     = v->f->db,
                             .store  = v->f->store,
                             .tenant = F_TENANT,
                             .id     = "call",
                             .now_ms = il__clock_wall_ms(),
                             .step   = t_count_down,
                             .cookie = v };
    return campus_transition(&c, &in, &t, &v->f->err) != IL_OK;
}

/* Each process is killed after its next commit; at each of these moments all invariants hold. */
C_TEST(a_large_cancellation_is_killed_and_repeated)
{
    static struct t_proc proc;
    unsigned             n_killed = 0;
    int                  status;

    fill(f);
    do {
        /* The first transaction of a call only finds that there is too much for one. */
        struct t_victim v = { .f = f, .at = 2 };
        t_field_close(f);
        t_proc_fork(&proc, cancel_and_die, &v);
        status = t_proc_exit(&proc, F_LIMIT_MS);
        t_proc_release(&proc);
        n_killed += status == 128 + SIGKILL;
        t_field_open(f);
        t_verify(f);
    } while (status == 128 + SIGKILL);
    T_EQ(status, 0);
    T_EQ(n_killed, 2); /* of 4,200 bookings, 1,500 twice */
    expect_refunded_once(f);
}

/* Others book while it goes on: whoever could is refunded as well. */
C_TEST(a_large_cancellation_meets_bookings)
{
    static struct t_task tasks[N_PLAYERS + 1];

    fill(f);
    tasks[0] = (struct t_task){ .fn = campus_transition,
                                .in = { .tournament = "t", .state = "CANCELLED" } };
    for (unsigned i = 1; i <= N_PLAYERS; i++) {
        tasks[i] = (struct t_task){ .fn = campus_book };
        (void)snprintf(tasks[i].texts[0], sizeof tasks[i].texts[0], "u%u", i);
        tasks[i].in = (struct campus_in){ .session = "s1", .user = tasks[i].texts[0] };
    }
    t_at_once(f, tasks, ARRAY_LEN(tasks));
    T_EQ(tasks[0].code, CAMPUS_OK);
    T_EQ(t_count(f, "SELECT count(*) FROM bookings WHERE is_live"), 0);
    T_EQ(t_count(f, "SELECT count(*) FROM users WHERE credit_balance = 100"), N_PLAYERS);
    T_EQ(t_count(f, "SELECT sum(available_spots) FROM sessions"), 2);
    t_verify(f);
}

C_TEST(a_tournament_has_a_limit_of_sessions)
{
    char    out[4096];
    int64_t start_ms = il__clock_wall_ms() + 2 * F_DAY_MS;

    t_users(f, 1, 0, NULL);
    t_tournament(f, "t", 4, 0, CAMPUS_ENROLLMENT_OPEN);
    (void)t_ask(f,
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1023) "
                "INSERT INTO sessions (tenant, id, semester_id, name, capacity, available_spots, "
                "date_start, date_end, created_at) SELECT 'acme', 'x' || i, 't', 'x', 1, 1, 1, 2, "
                "1 FROM n",
                out);
    t_session(f, "last", "t", 1, 0, 48);
    T_EQ(T_CALL(f, campus_session_create, NULL, NULL, .tournament = "t", .name = "more",
                .capacity = 1, .start_ms = start_ms, .end_ms = start_ms + 1),
         CAMPUS_E_TOO_MANY_SESSIONS);
    t_session(f, "last", "t", 1, 0, 48); /* repeated */
    t_session(f, "of none", NULL, 1, 0, 48);
    t_move(f, "t", CAMPUS_CANCELLED);
    t_verify(f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        C_ROW(a_large_tournament_is_cancelled),
        C_ROW(a_large_cancellation_is_killed_and_repeated),
        C_ROW(a_large_cancellation_meets_bookings),
        C_ROW(a_tournament_has_a_limit_of_sessions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
