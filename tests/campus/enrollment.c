/*
 * enrollment.c: enrolling, leaving, the states of a tournament; alone and by processes at once.
 */
#include <stdio.h>

#include "apps/campus/campus_tx.h"
#include "base/clock.h"
#include "campus/field.h"
#include "harness/proc.h"

#define N 8

/* ---- alone ----------------------------------------------------------------------------------- */

C_TEST(enrolling_charges_and_counts)
{
    struct campus_enrollment e;

    t_users(f, 2, 100, NULL);
    t_tournament(f, "t", 4, 35, CAMPUS_ENROLLMENT_OPEN);
    T_DO(f, campus_enroll, "e1", &e, .tournament = "t", .user = "u1");
    T_STREQ(e.state, "APPROVED");
    T_EQ(e.cost, 35);
    T_EQ(t_credits(f, "u1"), 65);
    T_EQ(t_count(f, "SELECT balance_after FROM credit_transactions WHERE idempotency_key = 'e1'"),
         65);
    T_EQ(t_count(f, "SELECT current_enrollment_count FROM semesters"), 1);
    T_EQ(T_CALL(f, campus_enroll, NULL, NULL, .tournament = "t", .user = "u1"),
         CAMPUS_E_ALREADY_ENROLLED);
    t_verify(f);
}

C_TEST(refusals_say_why)
{
    t_users(f, 3, 10, NULL);
    t_tournament(f, "t", 1, 10, CAMPUS_ENROLLMENT_OPEN);
    t_tournament(f, "dear", 4, 11, CAMPUS_ENROLLMENT_OPEN);
    t_tournament(f, "draft", 4, 0, CAMPUS_DRAFT);
    T_EQ(T_CALL(f, campus_enroll, NULL, NULL, .tournament = "x", .user = "u1"),
         CAMPUS_E_TOURNAMENT_NOT_FOUND);
    T_EQ(T_CALL(f, campus_enroll, NULL, NULL, .tournament = "t", .user = "x"),
         CAMPUS_E_USER_NOT_FOUND);
    T_EQ(T_CALL(f, campus_enroll, NULL, NULL, .tournament = "draft", .user = "u1"),
         CAMPUS_E_TOURNAMENT_NOT_OPEN);
    T_EQ(T_CALL(f, campus_enroll, NULL, NULL, .tournament = "dear", .user = "u1"),
         CAMPUS_E_INSUFFICIENT_CREDITS);
    T_HAS(f->err.message, "needs 11");
    t_enroll(f, "t", 1, 1);
    T_EQ(T_CALL(f, campus_enroll, NULL, NULL, .tournament = "t", .user = "u2"),
         CAMPUS_E_TOURNAMENT_FULL);
    t_plant(f, "UPDATE users SET is_active = false WHERE id = 'u3'");
    T_EQ(T_CALL(f, campus_enroll, NULL, NULL, .tournament = "dear", .user = "u3"),
         CAMPUS_E_USER_INACTIVE);
    T_EQ(campus_code_http(CAMPUS_E_TOURNAMENT_FULL), 400);
    T_EQ(campus_code_http(CAMPUS_E_ALREADY_ENROLLED), 409);
    T_EQ(campus_code_http(CAMPUS_E_NOT_ENROLLED), 404);
}

C_TEST(leaving_refunds_half_and_ends_bookings)
{
    struct campus_enrollment e;
    struct campus_booking    b;

    t_users(f, 2, 100, NULL);
    t_tournament(f, "t", 4, 35, CAMPUS_ENROLLMENT_OPEN);
    t_session(f, "s", "t", 1, 10, 48);
    t_session(f, "free", NULL, 1, 10, 72);
    t_enroll(f, "t", 1, 1);
    T_DO(f, campus_book, "b1", NULL, .session = "s", .user = "u1");
    T_DO(f, campus_book, "b2", NULL, .session = "s", .user = "u2");
    T_DO(f, campus_book, "b3", NULL, .session = "free", .user = "u1");
    T_DO(f, campus_unenroll, "w", &e, .tournament = "t", .user = "u1");
    T_STREQ(e.state, "WITHDRAWN");
    T_EQ(e.refund, 17);
    T_EQ(t_credits(f, "u1"), 100 - 35 + 17 - 10);
    T_DO(f, campus_booking_get, NULL, &b, .booking = "b1");
    T_STREQ(b.state, "CANCELLED");
    T_DO(f, campus_booking_get, NULL, &b, .booking = "b2"); /* promoted */
    T_STREQ(b.state, "CONFIRMED");
    T_DO(f, campus_booking_get, NULL, &b, .booking = "b3"); /* of no tournament */
    T_STREQ(b.state, "CONFIRMED");
    T_EQ(T_CALL(f, campus_unenroll, NULL, NULL, .tournament = "t", .user = "u1"),
         CAMPUS_E_NOT_ENROLLED);
    T_DO(f, campus_unenroll, "w", &e, .tournament = "t", .user = "u1"); /* repeated */
    T_EQ(e.refund, 17);
    t_verify(f);
}

C_TEST(a_user_can_enroll_again_after_leaving)
{
    t_users(f, 1, 1000, NULL);
    t_tournament(f, "t", 4, 10, CAMPUS_ENROLLMENT_OPEN);
    for (int i = 0; i < 3; i++) {
        t_enroll(f, "t", 1, 1);
        T_DO(f, campus_unenroll, NULL, NULL, .tournament = "t", .user = "u1");
    }
    t_enroll(f, "t", 1, 1);
    T_EQ(t_credits(f, "u1"), 1000 - 4 * 10 + 3 * 5);
    t_verify(f);
}

C_TEST(a_repeated_call_finds_its_effect)
{
    struct campus_enrollment e;

    t_users(f, 1, 100, NULL);
    t_tournament(f, "t", 1, 10, CAMPUS_ENROLLMENT_OPEN);
    for (int i = 0; i < 3; i++) {
        T_DO(f, campus_enroll, "e", &e, .tournament = "t", .user = "u1");
        T_STREQ(e.id, "e");
        T_DO(f, campus_user_create, "u1", NULL, .email = "u1@example.com", .credits = 100);
        T_DO(f, campus_transition, "close", NULL, .tournament = "t", .state = "ENROLLMENT_CLOSED");
    }
    T_EQ(t_credits(f, "u1"), 90);
    T_EQ(t_count(f, "SELECT count(*) FROM system_events WHERE id = 'close'"), 1);
}

C_TEST(states_follow_the_edges)
{
    t_users(f, 1, 0, NULL);
    T_DO(f, campus_tournament_create, "t", NULL, .code = "t", .max_players = 2);
    T_EQ(T_CALL(f, campus_transition, NULL, NULL, .tournament = "t", .state = "ENROLLMENT_OPEN"),
         CAMPUS_E_TOURNAMENT_NO_CAMPUS);
    T_EQ(T_CALL(f, campus_transition, NULL, NULL, .tournament = "t", .state = "COMPLETED"),
         CAMPUS_E_TOURNAMENT_STATE);
    t_tournament(f, "t2", 2, 0, CAMPUS_COMPLETED);
    T_EQ(T_CALL(f, campus_transition, NULL, NULL, .tournament = "t2",
                .state = "REWARDS_DISTRIBUTED"),
         CAMPUS_E_TOURNAMENT_STATE); /* only by finalizing it */
    T_EQ(T_CALL(f, campus_transition, NULL, NULL, .tournament = "t2", .state = "CANCELLED"),
         CAMPUS_E_TOURNAMENT_STATE);
    T_EQ(T_CALL(f, campus_unenroll, NULL, NULL, .tournament = "t2", .user = "u1"),
         CAMPUS_E_NOT_ENROLLED);
    T_EQ(T_CALL(f, campus_tournament_create, NULL, NULL, .code = "t", .max_players = 2),
         CAMPUS_E_TOURNAMENT_EXISTS);
    T_TRUE(t_count(f, "SELECT count(*) FROM system_events WHERE type = 'TOURNAMENT_STATE'") >= 5);
}

C_TEST(cancelling_a_tournament_refunds_everybody)
{
    t_users(f, 4, 100, NULL);
    t_tournament(f, "t", 4, 35, CAMPUS_ENROLLMENT_OPEN);
    t_session(f, "s", "t", 1, 10, 48);
    t_enroll(f, "t", 1, 3);
    T_DO(f, campus_book, NULL, NULL, .session = "s", .user = "u1");
    T_DO(f, campus_book, NULL, NULL, .session = "s", .user = "u4"); /* no player; waitlisted */
    T_DO(f, campus_unenroll, NULL, NULL, .tournament = "t", .user = "u3");
    t_move(f, "t", CAMPUS_CANCELLED);
    T_EQ(t_credits(f, "u1"), 100);
    T_EQ(t_credits(f, "u2"), 100);
    T_EQ(t_credits(f, "u3"), 100 - 35 + 17); /* left before */
    T_EQ(t_credits(f, "u4"), 100);
    T_EQ(t_count(f, "SELECT count(*) FROM semester_enrollments WHERE is_active"), 0);
    T_EQ(t_count(f, "SELECT count(*) FROM bookings WHERE is_live"), 0);
    T_EQ(t_count(f, "SELECT available_spots FROM sessions"), 1);
    T_EQ(T_CALL(f, campus_book, NULL, NULL, .session = "s", .user = "u2"),
         CAMPUS_E_TOURNAMENT_STATE);
    t_verify(f);
}

/* ---- processes at once ----------------------------------------------------------------------- */

C_TEST(the_last_place_goes_to_one)
{
    static struct t_task tasks[N];

    t_users(f, N, 100, NULL);
    t_tournament(f, "t", 1, 10, CAMPUS_ENROLLMENT_OPEN);
    for (unsigned i = 0; i < N; i++) {
        tasks[i] = (struct t_task){ .fn = campus_enroll };
        (void)snprintf(tasks[i].texts[0], sizeof tasks[i].texts[0], "u%u", i + 1);
        tasks[i].in = (struct campus_in){ .tournament = "t", .user = tasks[i].texts[0] };
    }
    t_at_once(f, tasks, N);
    T_EQ(t_with_code(tasks, N, CAMPUS_OK), 1);
    T_EQ(t_with_code(tasks, N, CAMPUS_E_TOURNAMENT_FULL), N - 1);
    T_EQ(t_count(f, "SELECT current_enrollment_count FROM semesters"), 1);
    t_verify(f);
}

C_TEST(enrolling_twice_at_once_charges_once)
{
    static struct t_task tasks[N];

    t_users(f, 1, 100, NULL);
    t_tournament(f, "t", 8, 10, CAMPUS_ENROLLMENT_OPEN);
    t_n_times(f, tasks, N, campus_enroll, &(struct campus_in){ .tournament = "t", .user = "u1" });
    T_EQ(t_with_code(tasks, N, CAMPUS_OK), 1);
    T_EQ(t_with_code(tasks, N, CAMPUS_E_ALREADY_ENROLLED), N - 1);
    T_EQ(t_credits(f, "u1"), 90);
    t_verify(f);
}

C_TEST(the_same_call_at_once_has_one_effect)
{
    static struct t_task tasks[N];

    t_users(f, 1, 100, NULL);
    t_tournament(f, "t", 8, 10, CAMPUS_ENROLLMENT_OPEN);
    for (unsigned i = 0; i < N; i++)
        tasks[i] = (struct t_task){ .fn = campus_enroll,
                                    .in = { .tournament = "t", .user = "u1" },
                                    .id = "once" };
    t_at_once(f, tasks, N);
    T_EQ(t_with_code(tasks, N, CAMPUS_OK), N);
    T_EQ(t_credits(f, "u1"), 90);
    t_verify(f);
}

C_TEST(leaving_at_once_refunds_once)
{
    static struct t_task tasks[N];

    t_users(f, 1, 100, NULL);
    t_tournament(f, "t", 8, 10, CAMPUS_ENROLLMENT_OPEN);
    t_enroll(f, "t", 1, 1);
    t_n_times(f, tasks, N, campus_unenroll, &(struct campus_in){ .tournament = "t", .user = "u1" });
    T_EQ(t_with_code(tasks, N, CAMPUS_OK), 1);
    T_EQ(t_with_code(tasks, N, CAMPUS_E_NOT_ENROLLED), N - 1);
    T_EQ(t_credits(f, "u1"), 95);
    t_verify(f);
}

/* Enrolling in several tournaments at once with credits for one. */
C_TEST(a_balance_never_becomes_negative)
{
    static struct t_task tasks[N];

    t_users(f, 1, 15, NULL);
    for (unsigned i = 0; i < N; i++) {
        tasks[i] = (struct t_task){ .fn = campus_enroll };
        (void)snprintf(tasks[i].texts[0], sizeof tasks[i].texts[0], "t%u", i);
        t_tournament(f, tasks[i].texts[0], 4, 10, CAMPUS_ENROLLMENT_OPEN);
        tasks[i].in = (struct campus_in){ .tournament = tasks[i].texts[0], .user = "u1" };
    }
    t_at_once(f, tasks, N);
    T_EQ(t_with_code(tasks, N, CAMPUS_OK), 1);
    T_EQ(t_with_code(tasks, N, CAMPUS_E_INSUFFICIENT_CREDITS), N - 1);
    T_EQ(t_credits(f, "u1"), 5);
    t_verify(f);
}

/* Cancelling while others enroll, leave and book: whoever paid gets it back. */
C_TEST(cancelling_meets_enrollments_and_bookings)
{
    static struct t_task tasks[N];

    t_users(f, 8, 100, NULL);
    t_tournament(f, "t", 8, 10, CAMPUS_ENROLLMENT_OPEN);
    t_session(f, "s", "t", 2, 10, 48);
    t_enroll(f, "t", 1, 4);
    for (unsigned i = 0; i < N; i++) {
        tasks[i] = (struct t_task){ .fn = i < 2   ? campus_unenroll
                                          : i < 5 ? campus_enroll
                                                  : campus_book };
        (void)snprintf(tasks[i].texts[0], sizeof tasks[i].texts[0], "u%u", i + 1);
        tasks[i].in =
            (struct campus_in){ .tournament = "t", .session = "s", .user = tasks[i].texts[0] };
    }
    tasks[3] = (struct t_task){ .fn = campus_transition,
                                .in = { .tournament = "t", .state = "CANCELLED" } };
    t_at_once(f, tasks, N);
    T_EQ(tasks[3].code, CAMPUS_OK);
    T_EQ(t_count(f, "SELECT count(*) FROM semester_enrollments WHERE is_active"), 0);
    T_EQ(t_count(f, "SELECT count(*) FROM bookings WHERE is_live"), 0);
    T_EQ(t_credits(f, "u4"), 100);
    T_EQ(t_credits(f, "u8"), 100);
    t_verify(f);
}

/* A session that is created while its tournament is cancelled: refused, or cancelled with it. */
C_TEST(a_session_meets_the_end_of_its_tournament)
{
    static struct t_task tasks[2];
    int64_t              start_ms = il__clock_wall_ms() + 2 * F_DAY_MS;

    t_users(f, 1, 100, NULL);
    for (unsigned i = 0; i < 8; i++) {
        char t[16], s[16];
        (void)snprintf(t, sizeof t, "t%u", i);
        (void)snprintf(s, sizeof s, "s%u", i);
        t_tournament(f, t, 8, 0, CAMPUS_ENROLLMENT_OPEN);
        tasks[0] = (struct t_task){ .fn = campus_transition,
                                    .in = { .tournament = t, .state = "CANCELLED" } };
        tasks[1] = (struct t_task){ .fn = campus_session_create,
                                    .in = { .tournament = t,
                                            .name       = s,
                                            .capacity   = 1,
                                            .start_ms   = start_ms,
                                            .end_ms     = start_ms + F_DAY_MS } };
        (void)snprintf(tasks[1].id, sizeof tasks[1].id, "%s", s);
        t_at_once(f, tasks, 2);
        T_EQ(tasks[0].code, CAMPUS_OK);
        T_TRUE(tasks[1].code == CAMPUS_OK || tasks[1].code == CAMPUS_E_TOURNAMENT_STATE);
        enum campus_code found = T_CALL(f, campus_book, NULL, NULL, .session = s, .user = "u1");
        T_EQ(found,
             tasks[1].code == CAMPUS_OK ? CAMPUS_E_TOURNAMENT_STATE : CAMPUS_E_SESSION_NOT_FOUND);
    }
    T_EQ(T_CALL(f, campus_session_create, NULL, NULL, .tournament = "t0", .name = "late",
                .capacity = 1, .start_ms = start_ms, .end_ms = start_ms + 1),
         CAMPUS_E_TOURNAMENT_STATE);
    t_verify(f);
}

/* It is over in the archive, too; and what a call has made it finds again. */
C_TEST(nothing_is_booked_in_an_archived_tournament)
{
    t_users(f, 1, 100, NULL);
    t_tournament(f, "t", 8, 0, CAMPUS_ENROLLMENT_OPEN);
    t_session(f, "s", "t", 2, 10, 48);
    t_move(f, "t", CAMPUS_CANCELLED);
    T_DO(f, campus_transition, NULL, NULL, .tournament = "t", .state = "ARCHIVED");
    T_EQ(T_CALL(f, campus_book, NULL, NULL, .session = "s", .user = "u1"),
         CAMPUS_E_TOURNAMENT_STATE);
    t_session(f, "s", "t", 2, 10, 48); /* the call of before, repeated */
    T_EQ(t_credits(f, "u1"), 100);
    t_verify(f);
}

/* ---- processes that meet at one row ---------------------------------------------------------- */

/* A process that does one thing when it is told to. */
struct actor {
    struct t_field *f;
    int (*act)(struct t_field *f, unsigned i);
    unsigned i;
};

static int
run_actor(void *arg)
{
    const struct actor *a = arg;
    char                word[16];

    t_field_open(a->f);
    (void)printf("ready\n");
    (void)fflush(stdout);
    if (fgets(word, sizeof word, stdin) == NULL)
        return 1;
    int status = a->act(a->f, a->i);
    t_field_close(a->f);
    return status;
}

/* Hold u1, until told again. */
static il_status
hold(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op *op = cookie;
    char              word[16];

    il_status st = il_guard_lock(tx, CAMPUS_USER(op->c, "u1"), NULL, reterr);
    (void)printf("held\n");
    (void)fflush(stdout);
    return fgets(word, sizeof word, stdin) != NULL ? st : IL_INVAL;
}

static int
act_hold(struct t_field *f, unsigned i UNUSED)
{
    struct campus_call c = { .db = f->db, .tenant = F_TENANT };

    return campus_transact(&(struct campus_op){ &c, NULL, NULL, NULL }, "enrollment", "test", NULL,
                           hold, &f->err) != IL_OK;
}

#define WAITING                                                                \
    "SELECT count(DISTINCT a.pid) FROM pg_stat_activity a JOIN pg_locks l ON " \
    "l.pid = a.pid WHERE a.wait_event_type = 'Lock' AND l.relation = "         \
    "'semesters'::regclass"

/* While u1 is held, two processes act, one after the other, each until it waits for a lock or has
 * ended. Only in PostgreSQL: a transaction of SQLite has begun with the lock of everything. */
static void
meet(struct t_field  *f, int (*const acts[2])(struct t_field *f, unsigned i),
     enum campus_code codes[2])
{
    static struct t_proc procs[3];
    int64_t              end_ns = il__clock_boot_ns() + (int64_t)F_LIMIT_MS * IL__NS_PER_MS;

    t_field_close(f);
    for (unsigned i = 0; i < 3; i++) {
        struct actor a = { f, i == 0 ? act_hold : acts[i - 1], i };
        t_proc_fork(&procs[i], run_actor, &a);
        T_LINE(&procs[i], "ready", F_LIMIT_MS, NULL);
    }
    for (unsigned i = 0; i < 3; i++) {
        t_proc_say(&procs[i], "go");
        if (i == 0)
            T_LINE(&procs[i], "held", F_LIMIT_MS, NULL);
        while (t_count(f, WAITING) < i && !t_proc_end(&procs[i], 1))
            T_TRUE(il__clock_boot_ns() < end_ns);
    }
    t_proc_say(&procs[0], "end");
    for (unsigned i = 0; i < 3; i++) {
        int status = t_proc_exit(&procs[i], F_LIMIT_MS);
        if (i == 0)
            T_EQ(status, 0);
        else
            codes[i - 1] = (enum campus_code)status;
        t_proc_release(&procs[i]);
    }
    t_field_open(f);
}

static int
act_cancel(struct t_field *f, unsigned i UNUSED)
{
    return (int)T_CALL(f, campus_transition, NULL, NULL, .tournament = "t", .state = "CANCELLED");
}

/* Create a session and book it: a booking that nobody would refund. */
static int
act_create(struct t_field *f, unsigned i UNUSED)
{
    int64_t start_ms = il__clock_wall_ms() + 2 * F_DAY_MS;

    enum campus_code code =
        T_CALL(f, campus_session_create, "s", NULL, .tournament = "t", .name = "s", .capacity = 1,
               .price = 10, .start_ms = start_ms, .end_ms = start_ms + F_DAY_MS);
    if (code == CAMPUS_OK)
        code = T_CALL(f, campus_book, NULL, NULL, .session = "s", .user = "u2");
    return (int)code;
}

/* It is created after the cancellation has looked for sessions: it waits, and is refused. */
C_TEST(a_session_comes_too_late_for_a_cancellation)
{
    enum campus_code codes[2] = { CAMPUS_OK, CAMPUS_OK };

    if (!f->is_postgres)
        return;
    t_users(f, 2, 100, NULL);
    t_tournament(f, "t", 8, 10, CAMPUS_ENROLLMENT_OPEN);
    t_enroll(f, "t", 1, 1); /* to be refunded, and so to be waited for */
    meet(f, (int (*const[])(struct t_field *, unsigned)){ act_cancel, act_create }, codes);
    T_EQ(codes[0], CAMPUS_OK);
    T_EQ(codes[1], CAMPUS_E_TOURNAMENT_STATE);
    T_EQ(t_count(f, "SELECT count(*) FROM sessions"), 0);
    t_verify(f);
}

static int
act_enroll(struct t_field *f, unsigned i)
{
    return (int)T_CALL(f, campus_enroll, NULL, NULL, .tournament = i == 1 ? "t1" : "t2",
                       .user = "u1");
}

/* Both have found enough credits before either is charged: the charge looks again. */
C_TEST(credits_for_one_of_two)
{
    enum campus_code codes[2] = { CAMPUS_OK, CAMPUS_OK };

    if (!f->is_postgres)
        return;
    t_users(f, 1, 15, NULL);
    t_tournament(f, "t1", 8, 10, CAMPUS_ENROLLMENT_OPEN);
    t_tournament(f, "t2", 8, 10, CAMPUS_ENROLLMENT_OPEN);
    meet(f, (int (*const[])(struct t_field *, unsigned)){ act_enroll, act_enroll }, codes);
    T_TRUE((codes[0] == CAMPUS_OK) != (codes[1] == CAMPUS_OK));
    T_EQ(codes[0] == CAMPUS_OK ? codes[1] : codes[0], CAMPUS_E_INSUFFICIENT_CREDITS);
    T_EQ(t_credits(f, "u1"), 5);
    t_verify(f);
}

/* ---- the order of locks ---------------------------------------------------------------------- */

static il_status
lock_backwards(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op *op = cookie;
    il_status         st = il_guard_lock(tx, CAMPUS_USER(op->c, "u1"), NULL, reterr);

    return st == IL_OK ? il_guard_lock(tx, CAMPUS_SEMESTER(op->c, "t"), NULL, reterr) : st;
}

C_TEST(the_opposite_order_is_refused)
{
    struct campus_call c  = { .db = f->db, .tenant = F_TENANT };
    struct campus_op   op = { &c, NULL, NULL, NULL };
    il_error           err;

    t_users(f, 1, 0, NULL);
    t_tournament(f, "t", 1, 0, CAMPUS_DRAFT);
    T_EQ(campus_transact(&op, "enrollment", "test", NULL, lock_backwards, &err), IL_ORDER);
    T_HAS(err.message, "Semester");
    T_HAS(err.message, "User");
    T_HAS(err.message, "enrollment.c:");
}

/* ---- counting races -------------------------------------------------------------------------- */

/* The first attempt is rolled back: the database says that it met another transaction. */
static il_status
race_twice(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const char *const   fail = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$";
    const struct app_statement s    = { fail, fail };
    struct campus_op          *op   = cookie;
    bool                      *again = op->own;

    il_status st = campus_count_race(op->c, tx, CAMPUS_DOUBLE_GRANT, "test", reterr);
    if (st != IL_OK || *again)
        return st;
    *again = true;
    return campus_run(tx, &s, APP_NO_VALUES, NULL, reterr);
}

C_TEST(a_race_counts_once)
{
    bool               again = false;
    struct campus_call c     = { .db = f->db, .tenant = F_TENANT, .n_races = { 1, 1, 1 } };
    struct campus_op   op    = { &c, NULL, NULL, &again };

    if (!f->is_postgres) /* SQLite never rolls back a transaction that has begun to write */
        return;
    T_EQ(campus_transact(&op, "enrollment", "test", NULL, race_twice, &f->err), IL_OK);
    T_TRUE(again);
    T_EQ(c.n_races[CAMPUS_DOUBLE_GRANT], 2);
    T_EQ(c.n_races[CAMPUS_DOUBLE_BADGE], 1);
    T_EQ(t_count(f, "SELECT count(*) FROM system_events"), 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        C_ROW(enrolling_charges_and_counts),
        C_ROW(refusals_say_why),
        C_ROW(leaving_refunds_half_and_ends_bookings),
        C_ROW(a_user_can_enroll_again_after_leaving),
        C_ROW(a_repeated_call_finds_its_effect),
        C_ROW(states_follow_the_edges),
        C_ROW(cancelling_a_tournament_refunds_everybody),
        C_ROW(the_last_place_goes_to_one),
        C_ROW(enrolling_twice_at_once_charges_once),
        C_ROW(the_same_call_at_once_has_one_effect),
        C_ROW(leaving_at_once_refunds_once),
        C_ROW(a_balance_never_becomes_negative),
        C_ROW(cancelling_meets_enrollments_and_bookings),
        C_ROW(a_session_meets_the_end_of_its_tournament),
        C_ROW(nothing_is_booked_in_an_archived_tournament),
        C_ROW(a_session_comes_too_late_for_a_cancellation),
        C_ROW(credits_for_one_of_two),
        C_ROW(the_opposite_order_is_refused),
        C_ROW(a_race_counts_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
