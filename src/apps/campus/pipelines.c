/*
 * pipelines.c: the pipelines of the campus for `interlock doctor --checklist`: what they lock, rely
 * on and are watched by. docs/pipelines says more about each.
 */
#include "apps/campus/campus.h"

static const struct app_constraint enrollment_constraints[] = {
    { "semester_enrollments", "uq_user_semester_enrollment" },
    { "semester_enrollments", "ck_enrollment_active" },
    { "users", "ck_user_credit_balance" },
    { "semesters", "ck_semester_enrollment_count" },
    { "semesters", "ck_semester_status" },
    { "semesters", "ck_semester_campus" },
};
static const struct app_constraint booking_constraints[] = {
    { "bookings", "uq_booking_live" },  { "bookings", "uq_booking_waitlist_position" },
    { "bookings", "ck_booking_live" },  { "bookings", "ck_booking_position" },
    { "sessions", "ck_session_spots" }, { "attendance", "uq_attendance_booking" },
};
static const struct app_constraint reward_constraints[] = {
    { "tournament_participations", "uq_user_semester_participation" },
    { "tournament_badges", "uq_user_tournament_badge" },
    { "credit_transactions", "uq_credit_transaction_idempotency" },
    { "xp_transactions", "uq_xp_transaction_idempotency" },
    { "tournament_rankings", "uq_tournament_rank" },
};
static const struct app_constraint skill_constraints[] = {
    { "user_licenses", "uq_user_license_active" },
};

#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define YES(item, evidence) [CHECKLIST_##item] = { PIPELINE_YES, evidence }
#define NOT(item, why) [CHECKLIST_##item] = { PIPELINE_NOT_APPLICABLE, why }

/* What all of them have in common. */
#define PIPELINE(id, summary_)                                         \
    .name = #id, .summary = summary_, .constraints = id##_constraints, \
    .n_constraints = ARRAY_LEN(id##_constraints)
#define ANSWERS(id)                                                                         \
    YES(constraints, "invariant " #id "_constraints"), YES(invariant, "Mondays 09:00 UTC"), \
        YES(freeze, "docs/pipelines/" #id ".md"), YES(race_test, "tests/campus/" #id ".c"), \
        NOT(claim, "no queue"), NOT(aggregates, "counters, which invariants recount"),      \
        NOT(timeouts, "no claims"), NOT(indexes, "no table of jobs")

/* clang-format off */
const struct app_pipeline campus_pipelines[CAMPUS_PIPELINES] = {
    [CAMPUS_PIPELINE_enrollment] = {
        PIPELINE(enrollment, "enrolls users in tournaments"),
        .entities = NAMES("Semester", "SemesterEnrollment", "User", "Session"),
        .invariants = NAMES("enrollment_duplicate", "enrollment_balance",
            "enrollment_withdrawn", "enrollment_unpaid", "enrollment_count",
            "enrollment_cancelled", "enrollment_constraints"),
        .checklist = {
            YES(row_lock, "the tournament first"),
            YES(counters, "il_guard_add()"),
            YES(repeats, "the id of the call"),
            NOT(json, "no JSON document"),
            NOT(replay, "no replay"),
            ANSWERS(enrollment),
        },
    },
    [CAMPUS_PIPELINE_booking] = {
        PIPELINE(booking, "books sessions"),
        .entities = NAMES("User", "Session", "Booking"),
        .invariants = NAMES("booking_capacity", "booking_spots", "booking_duplicate",
            "booking_cancelled", "booking_overlap", "booking_waitlist", "booking_attendance",
            "booking_constraints"),
        .checklist = {
            YES(row_lock, "user, session, booking"),
            YES(counters, "il_guard_add()"),
            YES(repeats, "the id of the call"),
            NOT(json, "no JSON document"),
            NOT(replay, "no replay"),
            ANSWERS(booking),
        },
    },
    [CAMPUS_PIPELINE_reward] = {
        PIPELINE(reward, "pays the players of a tournament"),
        .entities = NAMES("Semester", "UserLicense", "TournamentParticipation", "User"),
        .invariants = NAMES("reward_participation", "reward_badge", "reward_key",
            "reward_balance", "reward_twice", "reward_unpaid", "reward_constraints"),
        .checklist = {
            YES(row_lock, "license, participation, user"),
            YES(counters, "il_guard_add()"),
            YES(repeats, "keys of the ledgers"),
            YES(json, "il_guard_set_json()"),
            YES(replay, "(achieved_at, id)"),
            ANSWERS(reward),
        },
    },
    [CAMPUS_PIPELINE_skill] = {
        PIPELINE(skill, "keeps the skills of licenses"),
        .entities = NAMES("UserLicense"),
        .invariants = NAMES("skill_level", "skill_floats", "skill_format", "skill_delta",
            "skill_replay", "skill_baseline", "skill_constraints"),
        .checklist = {
            YES(row_lock, "the license"),
            NOT(counters, "no counters"),
            YES(repeats, "the id of the call"),
            YES(json, "il_guard_set_json()"),
            YES(replay, "(achieved_at, id)"),
            ANSWERS(skill),
        },
    },
};
/* clang-format on */
