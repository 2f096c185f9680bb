/*
 * booking.c: booking sessions, waitlists, cancelling, confirming, attendance; alone and by
 * processes at once.
 */
#include <stdio.h>

#include "base/clock.h"
#include "campus/field.h"

#define N 8
#define HOUR_MS (INT64_C(3600) * 1000)

/* ---- alone ----------------------------------------------------------------------------------- */

static void
book(struct t_field *f, const char *session, unsigned user)
{
    char id[32];

    (void)snprintf(id, sizeof id, "%s-%u", session, user);
    T_DO(f, campus_book, id, NULL, .session = session, .user = t_user(user));
}

static void
expect_booking(struct t_field *f, const char *id, const char *state, int64_t position)
{
    struct campus_booking b;

    T_DO(f, campus_booking_get, NULL, &b, .booking = id);
    T_STREQ(b.state, state);
    T_EQ(b.position, position);
}

C_TEST(places_then_the_waitlist)
{
    t_users(f, 5, 100, NULL);
    t_session(f, "s", NULL, 2, 10, 48);
    for (unsigned i = 1; i <= 5; i++)
        book(f, "s", i);
    expect_booking(f, "s-2", "CONFIRMED", 0);
    expect_booking(f, "s-3", "WAITLISTED", 1);
    expect_booking(f, "s-5", "WAITLISTED", 3);
    T_EQ(t_credits(f, "u5"), 90); /* charged when it was made */
    T_EQ(T_CALL(f, campus_book, NULL, NULL, .session = "s", .user = "u1"), CAMPUS_E_ALREADY_BOOKED);
    T_DO(f, campus_cancel, NULL, NULL, .booking = "s-4"); /* a gap in the middle */
    expect_booking(f, "s-5", "WAITLISTED", 2);
    T_DO(f, campus_cancel, "c1", NULL, .booking = "s-1"); /* the head moves up */
    expect_booking(f, "s-3", "CONFIRMED", 0);
    expect_booking(f, "s-5", "WAITLISTED", 1);
    T_EQ(t_credits(f, "u1"), 100);
    T_EQ(t_credits(f, "u3"), 90);
    T_EQ(T_CALL(f, campus_cancel, NULL, NULL, .booking = "s-1"), CAMPUS_E_BOOKING_CANCELLED);
    T_DO(f, campus_cancel, "c1", NULL, .booking = "s-1"); /* repeated */
    T_EQ(t_credits(f, "u1"), 100);
    T_DO(f, campus_book, NULL, NULL, .session = "s", .user = "u1"); /* again, at the end */
    t_verify(f);
}

/* Many rows move at once, whatever the order of their ids. */
C_TEST(a_long_waitlist_closes_its_gaps)
{
    char id[32];

    t_users(f, 40, 0, NULL);
    t_session(f, "s", NULL, 1, 0, 48);
    for (unsigned i = 1; i <= 40; i++) {
        (void)snprintf(id, sizeof id, "%02u-b", i * 29 % 41);
        T_DO(f, campus_book, id, NULL, .session = "s", .user = t_user(i));
    }
    for (unsigned i = 1; i <= 39; i += 2) {
        (void)snprintf(id, sizeof id, "%02u-b", i * 29 % 41);
        T_DO(f, campus_cancel, NULL, NULL, .booking = id);
        t_verify(f);
    }
    T_EQ(t_count(f, "SELECT max(waitlist_position) FROM bookings"), 19);
}

C_TEST(times_are_kept)
{
    t_users(f, 2, 100, NULL);
    t_session(f, "s", NULL, 2, 10, 48);
    int64_t start_ms = t_count(f, "SELECT date_start FROM sessions WHERE id = 's'");
    f->now_ms        = start_ms - 24 * HOUR_MS + 1;
    T_EQ(T_CALL(f, campus_book, NULL, NULL, .session = "s", .user = "u1"),
         CAMPUS_E_SESSION_TOO_SOON);
    f->now_ms = start_ms - 24 * HOUR_MS; /* 24 hours before the start */
    book(f, "s", 1);
    book(f, "s", 2);
    f->now_ms = start_ms - 12 * HOUR_MS + 1;
    T_EQ(T_CALL(f, campus_cancel, NULL, NULL, .booking = "s-1"), CAMPUS_E_SESSION_TOO_SOON);
    f->now_ms = start_ms - 12 * HOUR_MS; /* 12 hours before the start */
    T_DO(f, campus_cancel, NULL, NULL, .booking = "s-1");
    t_verify(f);
}

C_TEST(overlapping_sessions_are_refused)
{
    t_users(f, 1, 0, NULL);
    t_session(f, "a", NULL, 2, 0, 48);
    t_session(f, "b", NULL, 2, 0, 49);
    t_session(f, "c", NULL, 2, 0, 51);
    book(f, "a", 1);
    T_EQ(T_CALL(f, campus_book, NULL, NULL, .session = "b", .user = "u1"),
         CAMPUS_E_SESSION_OVERLAPS);
    T_HAS(f->err.message, "session a");
    book(f, "c", 1);
    T_DO(f, campus_cancel, NULL, NULL, .booking = "a-1");
    T_EQ(T_CALL(f, campus_book, NULL, NULL, .session = "b", .user = "u1"), CAMPUS_OK);
    T_EQ(T_CALL(f, campus_book, NULL, NULL, .session = "x", .user = "u1"),
         CAMPUS_E_SESSION_NOT_FOUND);
    T_EQ(T_CALL(f, campus_cancel, NULL, NULL, .booking = "x"), CAMPUS_E_BOOKING_NOT_FOUND);
    t_verify(f);
}

C_TEST(an_admin_confirms_while_there_is_room)
{
    t_users(f, 4, 0, NULL);
    t_session(f, "s", NULL, 1, 0, 48);
    for (unsigned i = 1; i <= 4; i++)
        book(f, "s", i);
    T_EQ(T_CALL(f, campus_confirm, NULL, NULL, .booking = "s-3"), CAMPUS_E_SESSION_FULL);
    t_plant(f, "UPDATE sessions SET capacity = 2, available_spots = 1");
    T_DO(f, campus_confirm, NULL, NULL, .booking = "s-3");
    T_DO(f, campus_confirm, NULL, NULL, .booking = "s-3"); /* again: nothing changes */
    expect_booking(f, "s-3", "CONFIRMED", 0);
    expect_booking(f, "s-4", "WAITLISTED", 2);
    T_DO(f, campus_cancel, NULL, NULL, .booking = "s-2");
    T_EQ(T_CALL(f, campus_confirm, NULL, NULL, .booking = "s-2"), CAMPUS_E_BOOKING_CANCELLED);
    expect_booking(f, "s-4", "WAITLISTED", 1);
}

C_TEST(attendance_is_recorded_once)
{
    struct campus_attendance a, again;

    t_users(f, 2, 0, NULL);
    t_session(f, "s", NULL, 1, 0, 48);
    book(f, "s", 1);
    book(f, "s", 2);
    T_EQ(T_CALL(f, campus_attend, NULL, NULL, .booking = "s-2"), CAMPUS_E_BOOKING_NOT_CONFIRMED);
    T_DO(f, campus_attend, NULL, &a, .booking = "s-1", .attendance = "LATE");
    T_DO(f, campus_attend, NULL, &again, .booking = "s-1", .attendance = "LATE");
    T_STREQ(again.id, a.id);
    T_STREQ(again.state, "LATE");
    T_EQ(T_CALL(f, campus_attend, NULL, NULL, .booking = "s-1"), CAMPUS_E_ATTENDANCE_RECORDED);
    T_HAS(f->err.message, "recorded as LATE");
    T_DO(f, campus_cancel, NULL, NULL, .booking = "s-1");
    T_DO(f, campus_attend, a.id, &again, .booking = "s-1", .attendance = "LATE");
    T_STREQ(again.id, a.id); /* repeated, whatever came since */
    T_STREQ(again.state, "LATE");
    T_EQ(T_CALL(f, campus_attend, NULL, NULL, .booking = "s-1"), CAMPUS_E_BOOKING_NOT_CONFIRMED);
    t_verify(f);
}

/* ---- processes at once ----------------------------------------------------------------------- */

/* Each process calls with a user of its own. */
static void
by_users(struct t_field *f, struct t_task *tasks, campus_fn *fn, const char *session)
{
    for (unsigned i = 0; i < N; i++) {
        tasks[i] = (struct t_task){ .fn = fn };
        (void)snprintf(tasks[i].texts[0], sizeof tasks[i].texts[0], "u%u", i + 1);
        (void)snprintf(tasks[i].texts[1], sizeof tasks[i].texts[1], "%s-%u", session, i + 1);
        tasks[i].in = (struct campus_in){ .session = session,
                                          .user    = tasks[i].texts[0],
                                          .booking = tasks[i].texts[1] };
    }
    t_at_once(f, tasks, N);
}

C_TEST(the_last_spot_is_confirmed_once)
{
    static struct t_task tasks[N];

    t_users(f, N, 100, NULL);
    t_session(f, "s", NULL, 1, 10, 48);
    by_users(f, tasks, campus_book, "s");
    T_EQ(t_with_code(tasks, N, CAMPUS_OK), N);
    T_EQ(t_count(f, "SELECT count(*) FROM bookings WHERE status = 'CONFIRMED'"), 1);
    T_EQ(t_count(f, "SELECT max(waitlist_position) FROM bookings"), N - 1);
    t_verify(f);
}

C_TEST(booking_twice_at_once_charges_once)
{
    static struct t_task tasks[N];

    t_users(f, 1, 100, NULL);
    t_session(f, "s", NULL, 4, 10, 48);
    t_n_times(f, tasks, N, campus_book, &(struct campus_in){ .session = "s", .user = "u1" });
    T_EQ(t_with_code(tasks, N, CAMPUS_OK), 1);
    T_EQ(t_with_code(tasks, N, CAMPUS_E_ALREADY_BOOKED), N - 1);
    T_EQ(t_credits(f, "u1"), 90);
    t_verify(f);
}

C_TEST(overlapping_sessions_booked_at_once)
{
    static struct t_task tasks[N];

    t_users(f, 1, 0, NULL);
    for (unsigned i = 0; i < N; i++) {
        tasks[i] = (struct t_task){ .fn = campus_book };
        (void)snprintf(tasks[i].texts[0], sizeof tasks[i].texts[0], "s%u", i);
        t_session(f, tasks[i].texts[0], NULL, 2, 0, 48);
        tasks[i].in = (struct campus_in){ .session = tasks[i].texts[0], .user = "u1" };
    }
    t_at_once(f, tasks, N);
    T_EQ(t_with_code(tasks, N, CAMPUS_OK), 1);
    T_EQ(t_with_code(tasks, N, CAMPUS_E_SESSION_OVERLAPS), N - 1);
    t_verify(f);
}

C_TEST(cancelling_twice_at_once_refunds_once)
{
    static struct t_task tasks[N];

    t_users(f, 2, 100, NULL);
    t_session(f, "s", NULL, 1, 10, 48);
    book(f, "s", 1);
    book(f, "s", 2);
    t_n_times(f, tasks, N, campus_cancel, &(struct campus_in){ .booking = "s-1" });
    T_EQ(t_with_code(tasks, N, CAMPUS_OK), 1);
    T_EQ(t_with_code(tasks, N, CAMPUS_E_BOOKING_CANCELLED), N - 1);
    T_EQ(t_credits(f, "u1"), 100);
    expect_booking(f, "s-2", "CONFIRMED", 0);
    t_verify(f);
}

C_TEST(all_cancel_at_once)
{
    static struct t_task tasks[N];

    t_users(f, N + 2, 100, NULL);
    t_session(f, "s", NULL, 3, 10, 48);
    for (unsigned i = 1; i <= N + 2; i++)
        book(f, "s", i);
    by_users(f, tasks, campus_cancel, "s");
    T_EQ(t_with_code(tasks, N, CAMPUS_OK), N);
    T_EQ(t_count(f, "SELECT available_spots FROM sessions"), 1);
    T_EQ(t_count(f, "SELECT count(*) FROM bookings WHERE status = 'CONFIRMED'"), 2);
    t_verify(f);
}

C_TEST(attendance_at_once_is_one_row)
{
    static struct t_task tasks[N];

    t_users(f, 1, 0, NULL);
    t_session(f, "s", NULL, 1, 0, 48);
    book(f, "s", 1);
    t_n_times(f, tasks, N, campus_attend, &(struct campus_in){ .booking = "s-1" });
    T_EQ(t_with_code(tasks, N, CAMPUS_OK), N);
    T_EQ(t_count(f, "SELECT count(*) FROM attendance"), 1);
    t_verify(f);
}

C_TEST(confirming_at_once_respects_capacity)
{
    static struct t_task tasks[N];

    t_users(f, N, 0, NULL);
    t_session(f, "s", NULL, 1, 0, 48);
    for (unsigned i = 1; i <= N; i++)
        book(f, "s", i);
    t_plant(f, "UPDATE sessions SET capacity = 3, available_spots = 2");
    by_users(f, tasks, campus_confirm, "s");
    T_EQ(t_with_code(tasks, N, CAMPUS_OK), 3);
    T_EQ(t_with_code(tasks, N, CAMPUS_E_SESSION_FULL), N - 3);
    T_EQ(t_count(f, "SELECT available_spots FROM sessions"), 0);
    T_EQ(t_count(f, "SELECT max(waitlist_position) FROM bookings"), N - 3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        C_ROW(places_then_the_waitlist),
        C_ROW(a_long_waitlist_closes_its_gaps),
        C_ROW(times_are_kept),
        C_ROW(overlapping_sessions_are_refused),
        C_ROW(an_admin_confirms_while_there_is_room),
        C_ROW(attendance_is_recorded_once),
        C_ROW(the_last_spot_is_confirmed_once),
        C_ROW(booking_twice_at_once_charges_once),
        C_ROW(overlapping_sessions_booked_at_once),
        C_ROW(cancelling_twice_at_once_refunds_once),
        C_ROW(all_cancel_at_once),
        C_ROW(attendance_at_once_is_one_row),
        C_ROW(confirming_at_once_respects_capacity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
