/*
 * invariants.c: each invariant finds its fault when it is planted by hand, past the constraints,
 * and is silent otherwise.
 */
#include <stdio.h>
#include <string.h>

#include "campus/field.h"

#define SKILLS "{\"passing\": 60, \"vision\": 60}"
#define LICENSE(doc) "UPDATE user_licenses SET football_skills = '" doc "' WHERE id = 'l1'"
#define ENTRY(base, level)                                                            \
    "\"baseline\": " base ", \"current_level\": " level ", \"tournament_delta\": 0, " \
    "\"total_delta\": 0, \"tournament_count\": 0"

/* A campus with some of everything: a finalized tournament, bookings, a waitlist. */
static void
fill(struct t_field *f)
{
    t_users(f, 4, 1000, SKILLS);
    t_tournament(f, "t", 4, 10, CAMPUS_ENROLLMENT_OPEN);
    t_enroll(f, "t", 1, 3);
    t_tournament(f, "open", 4, 10, CAMPUS_ENROLLMENT_OPEN);
    t_enroll(f, "open", 1, 2);
    for (unsigned i = CAMPUS_ENROLLMENT_CLOSED; i <= CAMPUS_IN_PROGRESS; i++)
        t_move(f, "t", i);
    T_DO(f, campus_finalize, NULL, NULL, .tournament = "t");
    t_session(f, "s", NULL, 1, 10, 48);
    t_session(f, "far", NULL, 1, 10, 96);
    for (unsigned i = 1; i <= 3; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "b%u", i);
        T_DO(f, campus_book, id, NULL, .session = "s", .user = t_user(i));
    }
    T_DO(f, campus_book, "far1", NULL, .session = "far", .user = "u1");
    t_session(f, "cup", "open", 1, 0, 120);
    T_DO(f, campus_book, "cup1", NULL, .session = "cup", .user = "u1");
    T_DO(f, campus_attend, "att", NULL, .booking = "b1");
}

struct seen {
    char names[1024];
};

static void
see(void *cookie, const struct app_invariant *invariant, int64_t n UNUSED, const char *key,
    const char *text UNUSED)
{
    struct seen *s   = cookie;
    size_t       end = strlen(s->names);

    T_TRUE(key != NULL && key[0] != '\0');
    (void)snprintf(s->names + end, sizeof s->names - end, "%s ", invariant->name);
}

static void
expect_broken(struct t_field *f, const char *invariant, const char *fault)
{
    struct seen s = { "" };
    size_t      n;
    char        name[64];
    il_error    err;

    t_plant(f, fault);
    if (campus_verify(f->db, F_TENANT, see, &s, &n, &err) != IL_OK)
        T_FAIL("%s: %s", invariant, err.message);
    (void)snprintf(name, sizeof name, "%s ", invariant);
    if (strstr(s.names, name) == NULL)
        T_FAIL("%s is not broken by %s, but: %s", invariant, fault, s.names);
}

C_TEST(all_is_well)
{
    fill(f);
    t_verify(f);
}

/* The statements of one row run one after the other in one campus; each breaks its invariant,
 * whatever else it breaks. In PostgreSQL CHECKs are dropped by the first. */
static const struct {
    const char *invariant, *fault;
} faults[] = {
    { "enrollment_balance", "UPDATE users SET credit_balance = -1 WHERE id = 'u4'" },
    { "enrollment_withdrawn", "UPDATE semester_enrollments SET request_status = 'WITHDRAWN' WHERE "
                              "semester_id = 'open' AND user_id = 'u2'" },
    { "enrollment_unpaid", "DELETE FROM credit_transactions WHERE type = 'TOURNAMENT_ENROLLMENT' "
                           "AND user_id = 'u1'" },
    { "enrollment_count", "UPDATE semesters SET current_enrollment_count = 4 WHERE id = 'open'" },
    { "enrollment_cancelled", "UPDATE semesters SET tournament_status = 'CANCELLED' WHERE id = "
                              "'open'" },
    { "booking_cancelled", "SELECT 1" }, /* the same, of the booking */
    { "enrollment_cancelled", "UPDATE semesters SET tournament_status = 'ARCHIVED' WHERE id = "
                              "'open'" },
    { "booking_cancelled", "SELECT 1" },
    { "enrollment_duplicate",
      "DROP INDEX uq_user_semester_enrollment; UPDATE semester_enrollments SET semester_id = 't' "
      "WHERE semester_id = 'open'" },
    { "enrollment_constraints", "SELECT 1" }, /* the index is gone */
    { "booking_spots", "UPDATE sessions SET available_spots = 1 WHERE id = 's'" },
    { "booking_overlap", "UPDATE sessions SET date_start = (SELECT o.date_start FROM sessions o "
                         "WHERE o.id = 's') WHERE id = 'far'" },
    { "booking_waitlist", "UPDATE bookings SET waitlist_position = 7 WHERE id = 'b3'" },
    { "booking_waitlist", "UPDATE bookings SET waitlist_position = NULL WHERE id = 'b3'" },
    { "booking_capacity", "UPDATE bookings SET status = 'CONFIRMED', waitlist_position = NULL "
                          "WHERE id = 'b2'" },
    { "booking_duplicate", "DROP INDEX uq_booking_live; UPDATE bookings SET user_id = 'u1' WHERE "
                           "id = 'b2'" },
    { "booking_attendance",
      "DROP INDEX uq_attendance_booking; INSERT INTO attendance (tenant, id, booking_id, status, "
      "created_at) VALUES ('acme', 'more', 'b1', 'LATE', 1)" },
    { "booking_constraints", "SELECT 1" },
    { "reward_balance", "UPDATE users SET xp_balance = xp_balance + 1 WHERE id = 'u1'" },
    { "reward_unpaid", "DELETE FROM tournament_participations WHERE user_id = 'u3'" },
    { "reward_participation",
      "DROP INDEX uq_user_semester_participation; UPDATE tournament_participations SET user_id = "
      "'u1' WHERE user_id = 'u2'" },
    { "reward_badge", "DROP INDEX uq_user_tournament_badge; UPDATE tournament_badges SET "
                      "badge_type = 'CHAMPION' WHERE user_id = 'u1'" },
    { "reward_twice", "UPDATE xp_transactions SET user_id = 'u1' WHERE user_id = 'u2'" },
    { "reward_key", "DROP INDEX uq_xp_transaction_idempotency; UPDATE xp_transactions SET "
                    "idempotency_key = 'same'" },
    { "reward_constraints", "SELECT 1" },
    { "skill_delta", "UPDATE tournament_participations SET skill_rating_delta = NULL" },
    { "skill_replay", LICENSE("{\"passing\": {" ENTRY("60", "61") "}}") },
    { "skill_level", LICENSE("{\"passing\": {" ENTRY("60", "39.9") "}}") },
    { "skill_level", LICENSE("{\"passing\": {" ENTRY("60", "99.1") "}}") },
    { "skill_baseline", LICENSE("{\"passing\": {" ENTRY("10", "60") "}}") },
    { "skill_format", LICENSE("{\"passing\": 60}") },
    { "skill_floats", "UPDATE user_licenses SET football_skills = '{\"passing\": 60}'" },
    { "skill_constraints", "DROP INDEX uq_user_license_active" },
};

C_TEST(each_finds_its_fault)
{
    fill(f);
    for (unsigned i = 0; i < ARRAY_LEN(faults); i++)
        expect_broken(f, faults[i].invariant, faults[i].fault);
    /* none was forgotten */
    for (unsigned i = 0; i < CAMPUS_INVARIANTS; i++) {
        unsigned k = 0;
        while (k < ARRAY_LEN(faults) && strcmp(faults[k].invariant, campus_invariants[i].name) != 0)
            k++;
        if (k == ARRAY_LEN(faults))
            T_FAIL("no fault for %s", campus_invariants[i].name);
    }
}

/* Two positions that are equal: the unique constraint has to go first. */
C_TEST(equal_positions_are_found)
{
    fill(f);
    expect_broken(f, "booking_waitlist",
                  f->is_postgres
                      ? "ALTER TABLE bookings DROP CONSTRAINT uq_booking_waitlist_position; UPDATE "
                        "bookings SET waitlist_position = 1 WHERE id = 'b3'"
                      : "DROP INDEX uq_booking_waitlist_position; UPDATE bookings SET "
                        "waitlist_position = 1 WHERE id = 'b3'");
}

/* Each part of what a player gets is missed by itself. */
C_TEST(each_missing_payment_is_found)
{
    static const char *const parts[][2] = { { "xp_transactions", "reward_xp_t_u3" },
                                            { "credit_transactions", "tournament_reward_t_u3" } };
    char                     sql[256], out[4096];

    fill(f);
    for (unsigned i = 0; i < ARRAY_LEN(parts); i++) {
        (void)snprintf(sql, sizeof sql,
                       "UPDATE %s SET idempotency_key = 'x' WHERE "
                       "idempotency_key = '%s'",
                       parts[i][0], parts[i][1]);
        expect_broken(f, "reward_unpaid", sql);
        (void)snprintf(sql, sizeof sql,
                       "UPDATE %s SET idempotency_key = '%s' WHERE "
                       "idempotency_key = 'x'",
                       parts[i][0], parts[i][1]);
        (void)t_ask(f, sql, out);
    }
}

/* More licenses than are read at once; the fault is in the last. */
C_TEST(all_licenses_are_looked_at)
{
    char out[4096];

    t_users(f, 1, 0, SKILLS);
    (void)t_ask(f,
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2100) "
                "INSERT INTO user_licenses (tenant, id, user_id, specialization_type, is_active, "
                "football_skills, created_at) SELECT 'acme', 'm' || i, 'u1', 'x', false, '{}', 1 "
                "FROM n",
                out);
    t_verify(f);
    expect_broken(f, "skill_level",
                  "UPDATE user_licenses SET football_skills = '{\"passing\": {" ENTRY(
                      "60", "39") "}}' WHERE id = 'm999'");
}

C_TEST(a_broken_one_is_an_event)
{
    char out[4096];

    fill(f);
    campus_broken(f->db, F_TENANT, &campus_invariants[0], "campus.one: 1 new");
    T_STREQ(t_ask(f,
                  "SELECT level || ' ' || text FROM system_events WHERE tenant = 'acme' AND type = "
                  "'INVARIANT_BROKEN'",
                  out),
            "ERROR campus.one: 1 new");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        C_ROW(all_is_well),
        C_ROW(each_finds_its_fault),
        C_ROW(equal_positions_are_found),
        C_ROW(each_missing_payment_is_found),
        C_ROW(all_licenses_are_looked_at),
        C_ROW(a_broken_one_is_an_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
