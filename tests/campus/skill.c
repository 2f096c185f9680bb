/*
 * skill.c: skills of licenses: assessments, tournaments, replays, the old format; alone and by
 * processes at once.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "apps/campus/campus_tx.h"
#include "apps/campus/seed.h"
#include "apps/campus/seed_debt.h"
#include "base/arena.h"
#include "base/clock.h"
#include "campus/field.h"
#include "harness/proc.h"

#define SKILLS "{\"passing\": 60, \"vision\": 60}"

/* A number of an entry of a license. */
static double
skill(struct t_field *f, const char *license, const char *name, const char *member)
{
    char sql[256], out[4096];

    (void)snprintf(sql, sizeof sql,
                   "SELECT CAST(football_skills AS text) FROM user_licenses WHERE id = '%s'",
                   license);
    json_t *json  = json_loads(t_ask(f, sql, out), 0, NULL);
    json_t *entry = json_object_get(json, name);
    double  value = json_number_value(member != NULL ? json_object_get(entry, member) : entry);
    json_decref(json);
    return value;
}

static void
expect_level(struct t_field *f, const char *license, const char *name, double level)
{
    double found = skill(f, license, name, "current_level");

    if (fabs(found - level) > 0.001)
        T_FAIL("%s of %s is %.2f, expected %.2f", name, license, found, level);
}

static void
assess(struct t_field *f, const char *license, const char *name, int64_t tenths)
{
    T_DO(f, campus_license_assess, NULL, NULL, .license = license, .skill = name,
         .value_1 = tenths);
}

static void
play(struct t_field *f, const char *tournament, unsigned n)
{
    t_tournament(f, tournament, n, 0, CAMPUS_ENROLLMENT_OPEN);
    t_enroll(f, tournament, 1, n);
    t_move(f, tournament, CAMPUS_ENROLLMENT_CLOSED);
    t_move(f, tournament, CAMPUS_CHECK_IN_OPEN);
    t_move(f, tournament, CAMPUS_IN_PROGRESS);
}

/* ---- alone ----------------------------------------------------------------------------------- */

/* Without matches the ids decide: u1 is the first. */
C_TEST(a_tournament_moves_levels)
{
    t_users(f, 8, 0, SKILLS);
    play(f, "t", 8);
    T_DO(f, campus_finalize, NULL, NULL, .tournament = "t");
    expect_level(f, "l1", "passing", 68.0);
    expect_level(f, "l4", "vision", 62.9);
    expect_level(f, "l8", "passing", 56.0);
    T_EQ(t_count(f, "SELECT count(*) FROM tournament_participations WHERE user_id = 'u1' AND "
                    "skill_rating_delta = 8 AND players = 8 AND match_modifier = 0 AND "
                    "opponent_factor = 1"),
         1);
    t_verify(f);
}

C_TEST(weights_matches_and_opponents_are_kept)
{
    t_users(f, 2, 0, SKILLS);
    assess(f, "l2", "passing", 720);
    assess(f, "l2", "vision", 720);
    T_DO(f, campus_tournament_create, "t", NULL, .code = "t", .campus = "n", .max_players = 2,
         .weights = "{\"vision\": 0}");
    t_move(f, "t", CAMPUS_ENROLLMENT_OPEN);
    t_enroll(f, "t", 1, 2);
    for (unsigned i = CAMPUS_ENROLLMENT_CLOSED; i <= CAMPUS_IN_PROGRESS; i++)
        t_move(f, "t", i);
    T_DO(f, campus_match_create, NULL, NULL, .tournament = "t", .home = "u1", .away = "u2",
         .home_goals = 1, .has = CAMPUS_HAS_RESULT);
    T_DO(f, campus_finalize, NULL, NULL, .tournament = "t");
    /* d = 8, m = (0.7 + 0.3)(1 - e^-0.2) = 0.1813, f = 72 / 60 */
    expect_level(f, "l1", "passing", 71.3);
    expect_level(f, "l1", "vision", 60.0);
    expect_level(f, "l2", "vision", 72.0);
    t_verify(f);
}

/* It is for audit: whatever happens to the levels later. */
C_TEST(a_delta_is_written_once)
{
    static const char *const delta = "SELECT CAST(skill_rating_delta * 10 AS bigint) FROM "
                                     "tournament_participations WHERE user_id = 'u1' AND "
                                     "semester_id = 't1'";
    struct campus_call       c     = { .db = f->db, .tenant = F_TENANT };
    struct campus_debt       debt;
    il_error                 err;

    t_users(f, 2, 0, SKILLS);
    play(f, "t1", 2);
    T_DO(f, campus_finalize, NULL, NULL, .tournament = "t1");
    T_EQ(t_count(f, delta), 80);
    assess(f, "l1", "passing", 900);
    T_EQ(t_count(f, delta), 80);
    play(f, "t2", 2);
    T_DO(f, campus_finalize, NULL, NULL, .tournament = "t2");
    T_DO(f, campus_finalize, NULL, NULL, .tournament = "t1");
    T_EQ(campus_normalise(&c, true, &debt, &err), IL_OK);
    il__arena_free(&c.mem);
    T_EQ(t_count(f, delta), 80);
    t_verify(f);
}

C_TEST(an_assessment_moves_the_baseline_and_the_level)
{
    t_users(f, 2, 0, SKILLS);
    play(f, "t", 2);
    T_DO(f, campus_finalize, NULL, NULL, .tournament = "t");
    expect_level(f, "l1", "passing", 68.0);
    T_DO(f, campus_license_assess, "a", NULL, .license = "l1", .skill = "passing", .value_1 = 705);
    expect_level(f, "l1", "passing", 76.4); /* 70.5 + 0.2 (100 - 70.5) */
    expect_level(f, "l1", "vision", 68.0);
    T_TRUE(skill(f, "l1", "passing", "tournament_count") == 1);
    T_DO(f, campus_license_assess, "a", NULL, .license = "l1", .skill = "passing", .value_1 = 705);
    T_EQ(t_count(f, "SELECT count(*) FROM football_skill_assessments"), 1);
    T_EQ(T_CALL(f, campus_license_assess, NULL, NULL, .license = "x", .skill = "a", .value_1 = 500),
         CAMPUS_E_LICENSE_NOT_FOUND);
    t_verify(f);
}

/* As many as can be created with it, however they come. */
C_TEST(a_license_has_a_limit_of_skills)
{
    struct campus_license l;
    char                  name[16];

    t_users(f, 1, 0, "{}");
    for (unsigned i = 0; i < CAMPUS_SKILLS_MAX; i++) {
        (void)snprintf(name, sizeof name, "s%u", i);
        assess(f, "l1", name, 700);
    }
    T_EQ(T_CALL(f, campus_license_assess, NULL, NULL, .license = "l1", .skill = "more",
                .value_1 = 700),
         CAMPUS_E_TOO_MANY_SKILLS);
    T_HAS(f->err.message, "64 skills");
    T_DO(f, campus_license_assess, NULL, &l, .license = "l1", .skill = "s7", .value_1 = 800);
    T_HAS(l.skills, "80");
    T_EQ(t_count(f, "SELECT count(*) FROM football_skill_assessments"), CAMPUS_SKILLS_MAX + 1);
    t_verify(f);
}

/* Whatever the order in which tournaments are finalized, they count in the order of completion, and
 * of ids among equal times. */
C_TEST(the_order_of_finalization_does_not_matter)
{
    static const char *const order[][3] = { { "t1", "t2", "t3" }, { "t3", "t1", "t2" } };
    double                   levels[2]  = { 0, 0 };
    char                     out[4096];

    for (unsigned round = 0; round < 2; round++) {
        t_field_release(f);
        t_field_make(f);
        t_users(f, 3, 0, SKILLS);
        for (unsigned i = 0; i < 3; i++) {
            play(f, order[0][i], 3);
            T_DO(f, campus_match_create, NULL, NULL, .tournament = order[0][i],
                 .home = t_user(i + 1), .away = t_user((i + 1) % 3 + 1), .home_goals = 2,
                 .has = CAMPUS_HAS_RESULT);
            t_move(f, order[0][i], CAMPUS_COMPLETED);
        }
        (void)t_ask(f, "UPDATE semesters SET completed_at = 1000", out);
        for (unsigned i = 0; i < 3; i++)
            T_DO(f, campus_finalize, NULL, NULL, .tournament = order[round][i]);
        levels[round] = skill(f, "l1", "passing", "current_level");
        t_verify(f);
    }
    T_TRUE(levels[0] == levels[1]);
    T_TRUE(levels[0] != 60);
}

/* ---- the old format -------------------------------------------------------------------------- */

C_TEST(numbers_are_healed_by_the_next_tournament)
{
    char out[4096];

    t_users(f, 2, 0, SKILLS);
    (void)t_ask(f,
                "UPDATE user_licenses SET football_skills = '{\"passing\": 60.0, \"vision\": 31}' "
                "WHERE id = 'l1'",
                out);
    play(f, "t", 2);
    T_DO(f, campus_finalize, NULL, NULL, .tournament = "t");
    /* f = 60 / mean(60, 31) */
    expect_level(f, "l1", "passing", 70.5);
    expect_level(f, "l1", "vision", 55.8); /* lifted to 40 first */
    assess(f, "l2", "vision", 500);
    t_verify(f);
}

C_TEST(an_assessment_promotes_a_number)
{
    t_users(f, 1, 0, SKILLS);
    t_plant(f, "UPDATE user_licenses SET football_skills = '{\"passing\": 60.0, \"vision\": 55}'");
    assess(f, "l1", "passing", 655);
    expect_level(f, "l1", "passing", 65.5);
    T_TRUE(skill(f, "l1", "vision", NULL) == 55); /* left alone */
}

/* The data set has its known debt: the invariants know it, and normalising pays it off. */
C_TEST(the_seed_and_its_debt)
{
    struct campus_call c = { .db = f->db, .tenant = F_TENANT };
    struct campus_seed s = { .seed = 1, .n_users = 16, .n_tournaments = 4, .n_sessions = 6 };
    struct campus_debt debt;
    il_error           err;

    T_EQ(campus_seed(&c, &s, &err), IL_OK);
    t_verify(f);
    T_EQ(campus_seed(&c, &s, &err), IL_OK); /* nothing changes */
    T_EQ(t_count(f, "SELECT count(*) FROM users"), 16);
    T_EQ(t_count(f, "SELECT count(*) FROM semester_enrollments"), 16);
    c.now_ms = il__clock_wall_ms();
    T_EQ(campus_normalise(&c, false, &debt, &err), IL_OK);
    T_EQ(debt.n_licenses, CAMPUS_DEBT_LICENSES + 2);
    T_EQ(debt.n_entries, 232 + CAMPUS_DEBT_LEVELS);
    T_EQ(campus_normalise(&c, true, &debt, &err), IL_OK);
    T_EQ(debt.n_entries, 232 + CAMPUS_DEBT_LEVELS);
    T_EQ(campus_normalise(&c, true, &debt, &err), IL_OK); /* idempotent */
    T_EQ(debt.n_entries, 0);
    il__arena_free(&c.mem);
    t_verify(f);
}

struct pages {
    const struct campus_call *c;
    size_t                    n, bytes[4]; /* bytes: of memory, at the end of each page */
};

static void
weigh_page(void *cookie)
{
    struct pages *p = cookie;

    T_TRUE(p->n < ARRAY_LEN(p->bytes));
    p->bytes[p->n++] = il__arena_bytes(p->c->mem);
}

/* More licenses than a transaction can hold: page by page, each in memory of its own. */
C_TEST(any_number_of_licenses_is_normalised)
{
    static const char *const many[] = {
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4100) INSERT "
        "INTO users (tenant, id, email, created_at) SELECT 'acme', 'm' || i, 'm' || i, 1 FROM n",
        "INSERT INTO user_licenses (tenant, id, user_id, specialization_type, is_active, "
        "football_skills, created_at) SELECT tenant, id, id, 'x', true, '{\"passing\": 50}', 1 "
        "FROM users",
    };
    struct pages       pages = { .n = 0 };
    struct campus_call c     = {
            .db = f->db, .tenant = F_TENANT, .step = weigh_page, .cookie = &pages
    };
    struct campus_debt debt;
    char               out[4096];
    il_error           err;

    for (unsigned i = 0; i < ARRAY_LEN(many); i++)
        (void)t_ask(f, many[i], out);
    pages.c = &c;
    T_EQ(campus_normalise(&c, false, &debt, &err), IL_OK);
    T_EQ(debt.n_licenses, 4100);
    T_EQ(campus_normalise(&c, true, &debt, &err), IL_OK);
    T_EQ(debt.n_licenses, 4100);
    T_EQ(debt.n_entries, 4100);
    T_EQ(pages.n, 2);
    T_TRUE(pages.bytes[0] > 0 && pages.bytes[1] < pages.bytes[0]); /* 4,000 licenses, then 100 */
    T_EQ(t_count(f, "SELECT count(*) FROM user_licenses WHERE CAST(football_skills AS text) LIKE "
                    "'%baseline%'"),
         4100);
    T_EQ(campus_normalise(&c, true, &debt, &err), IL_OK);
    T_EQ(debt.n_licenses, 0);
    T_EQ(pages.n, 4);
    T_TRUE(c.mem == NULL); /* nothing is left of the pages */
    t_verify(f);
}

static const struct campus_seed small_seed = { .seed          = 3,
                                               .n_users       = 16,
                                               .n_tournaments = 3,
                                               .n_sessions    = 4 };

/* What a seed has written, in numbers. */
static const char *const written[] = {
    "SELECT sum(credit_balance) FROM users",
    "SELECT sum(length(CAST(football_skills AS text))) FROM user_licenses",
    "SELECT count(*) FROM semester_enrollments WHERE is_active",
    "SELECT sum(home_goals * 31 + away_goals) FROM tournament_matches",
    "SELECT sum(capacity) FROM sessions",
    "SELECT count(*) FROM system_events WHERE type = 'TOURNAMENT_STATE'",
};

static int
seed_and_die(void *arg)
{
    struct t_victim *v = arg;

    t_field_open(v->f);
    struct campus_call c = {
        .db = v->f->db, .tenant = F_TENANT, .step = t_count_down, .cookie = v
    };
    return campus_seed(&c, &small_seed, &v->f->err) != IL_OK;
}

/* One process after the other is killed, each some transactions later than the one before. */
C_TEST(a_killed_seed_is_completed)
{
    static struct t_proc  proc;
    static struct t_field whole;
    struct campus_call    c      = { .tenant = F_TENANT };
    int                   status = 128 + SIGKILL, n_killed = -1;
    il_error              err;

    t_field_close(f);
    for (int at = 2; status == 128 + SIGKILL; at += 5) {
        struct t_victim v = { .f = f, .at = at };
        t_proc_fork(&proc, seed_and_die, &v);
        status = t_proc_exit(&proc, F_LIMIT_MS);
        t_proc_release(&proc);
        n_killed++;
    }
    T_EQ(status, 0);
    T_TRUE(n_killed > 10);
    t_field_make(&whole);
    c.db = whole.db;
    T_EQ(campus_seed(&c, &small_seed, &err), IL_OK);
    il__arena_free(&c.mem);
    for (unsigned i = 0; i < ARRAY_LEN(written); i++)
        T_EQ(t_count(f, written[i]), t_count(&whole, written[i]));
    t_field_release(&whole);
    t_field_open(f);
    t_verify(f);
}

static void
seed(struct t_field *f, int64_t n_tournaments, int64_t n_sessions)
{
    struct campus_call c = { .db = f->db, .tenant = F_TENANT };
    struct campus_seed s = {
        .seed = 3, .n_users = 16, .n_tournaments = n_tournaments, .n_sessions = n_sessions
    };

    if (campus_seed(&c, &s, &f->err) != IL_OK)
        T_FAIL("%s", f->err.message);
    T_EQ(c.code, CAMPUS_OK);
    il__arena_free(&c.mem);
}

static void
expect_state(struct t_field *f, const char *tournament, enum campus_state state)
{
    char sql[128], out[4096];

    (void)snprintf(sql, sizeof sql, "SELECT tournament_status FROM semesters WHERE id = '%s'",
                   tournament);
    T_STREQ(t_ask(f, sql, out), campus_state_name(state));
}

static const char *const first    = "seed-tournament-001";
static const char *const enrolled = "SELECT count(*) FROM semester_enrollments WHERE is_active";

C_TEST(a_larger_seed_leaves_cancelled_tournaments_alone)
{
    static const char *const sessions = "SELECT count(*) FROM sessions";

    seed(f, 1, 1);
    t_move(f, first, CAMPUS_CANCELLED);
    seed(f, 3, 3);
    expect_state(f, first, CAMPUS_CANCELLED);
    expect_state(f, "seed-tournament-002", CAMPUS_ENROLLMENT_OPEN);
    expect_state(f, "seed-tournament-003", CAMPUS_DRAFT);
    T_EQ(t_count(f, sessions), 3);
    t_move(f, "seed-tournament-002", CAMPUS_CANCELLED);
    seed(f, 3, 12);
    expect_state(f, "seed-tournament-002", CAMPUS_CANCELLED);
    T_EQ(t_count(f, sessions), 12 - 3); /* all but 6, 9 and 12, which would be its sessions */
    T_EQ(t_count(f, enrolled), 0);
    t_verify(f);
}

C_TEST(a_larger_seed_does_not_reopen)
{
    seed(f, 1, 1);
    t_move(f, first, CAMPUS_ENROLLMENT_OPEN);
    t_move(f, first, CAMPUS_ENROLLMENT_CLOSED);
    seed(f, 3, 1);
    expect_state(f, first, CAMPUS_ENROLLMENT_CLOSED);
    T_EQ(t_count(f, enrolled), 0);
    t_verify(f);
}

/* The step of a seed that was killed after it. */
static void
open_as_seed(struct t_field *f)
{
    seed(f, 1, 1);
    T_DO(f, campus_transition, "seed-tournament-001-ENROLLMENT_OPEN", NULL, .tournament = first,
         .state = campus_state_name(CAMPUS_ENROLLMENT_OPEN));
}

C_TEST(a_seed_meets_a_player_enrolled_by_hand)
{
    open_as_seed(f);
    T_DO(f, campus_enroll, NULL, NULL, .tournament = first, .user = "seed-user-003");
    seed(f, 3, 1);
    expect_state(f, first, CAMPUS_ENROLLMENT_OPEN);
    expect_state(f, "seed-tournament-002", CAMPUS_ENROLLMENT_OPEN);
    T_EQ(t_count(f, enrolled), 3);
    t_verify(f);
}

C_TEST(a_seed_meets_a_full_tournament)
{
    char out[4096];

    open_as_seed(f);
    (void)t_ask(f, "UPDATE semesters SET max_players = 2", out);
    seed(f, 3, 1);
    expect_state(f, first, CAMPUS_ENROLLMENT_OPEN);
    expect_state(f, "seed-tournament-002", CAMPUS_ENROLLMENT_OPEN);
    T_EQ(t_count(f, enrolled), 2);
    t_verify(f);
}

C_TEST(finalization_heals_the_debt)
{
    struct campus_call c = { .db = f->db, .tenant = F_TENANT };
    struct campus_seed s = { .seed = 2, .n_users = 16, .n_tournaments = 2, .n_sessions = 1 };
    struct campus_debt debt;
    il_error           err;

    T_EQ(campus_seed(&c, &s, &err), IL_OK);
    T_DO(f, campus_finalize, NULL, NULL, .tournament = "seed-tournament-001");
    T_EQ(campus_normalise(&c, false, &debt, &err), IL_OK);
    T_EQ(debt.n_entries, 0); /* all of them played */
    il__arena_free(&c.mem);
    t_verify(f);
}

/* ---- processes at once ----------------------------------------------------------------------- */

/* Assessments of different skills and two tournaments on one license: nothing is lost. */
C_TEST(assessments_meet_tournaments)
{
    static struct t_task     tasks[8];
    static const char *const names[] = { "passing", "vision", "pace", "stamina", "power", "calm" };

    t_users(f, 2, 0,
            "{\"passing\": 60, \"vision\": 60, \"pace\": 60, \"stamina\": 60, "
            "\"power\": 60, \"calm\": 60}");
    play(f, "a", 2);
    play(f, "b", 2);
    for (unsigned i = 0; i < 6; i++)
        tasks[i] = (struct t_task){
            .fn = campus_license_assess,
            .in = { .license = "l1", .skill = names[i], .value_1 = 500 + 10 * i }
        };
    tasks[6] = (struct t_task){ .fn = campus_finalize, .in = { .tournament = "a" } };
    tasks[7] = (struct t_task){ .fn = campus_finalize, .in = { .tournament = "b" } };
    t_at_once(f, tasks, 8);
    T_EQ(t_with_code(tasks, 8, CAMPUS_OK), 8);
    for (unsigned i = 0; i < 6; i++) {
        T_TRUE(skill(f, "l1", names[i], "baseline") == 50 + i);
        T_TRUE(skill(f, "l1", names[i], "tournament_count") == 2);
    }
    t_verify(f);
}

/* The profile is read before the lock: an assessment that commits in between counts. */
struct meanwhile {
    struct t_field *f;
    unsigned        n_steps;
};

/* The second step is the commit of u1's rewards: the roster has been read, u2 comes next. */
static void
assess_meanwhile(void *cookie)
{
    struct meanwhile *m = cookie;

    if (++m->n_steps == 2) {
        struct t_field *other = calloc(1, sizeof *other);
        T_TRUE(other != NULL);
        *other     = *m->f;
        other->mem = NULL;
        assess(other, "l2", "passing", 800);
        il__arena_free(&other->mem);
        free(other);
    }
}

C_TEST(an_assessment_between_profile_and_lock_counts)
{
    struct meanwhile        m  = { .f = f };
    struct campus_in        in = { .tournament = "t" };
    struct campus_finalized d;

    t_users(f, 2, 0, SKILLS);
    play(f, "t", 2);
    struct campus_call c = { .db     = f->db,
                             .store  = f->store,
                             .tenant = F_TENANT,
                             .id     = "call",
                             .now_ms = il__clock_wall_ms(),
                             .step   = assess_meanwhile,
                             .cookie = &m };
    T_EQ(campus_finalize(&c, &in, &d, &f->err), IL_OK);
    il__arena_free(&c.mem);
    T_TRUE(skill(f, "l2", "passing", "baseline") == 80);
    /* f = 60 / 70; the last of two: 80 - 0.2 (80 - 40) / f */
    expect_level(f, "l2", "passing", 70.7);
    t_verify(f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        C_ROW(a_tournament_moves_levels),
        C_ROW(weights_matches_and_opponents_are_kept),
        C_ROW(a_delta_is_written_once),
        C_ROW(an_assessment_moves_the_baseline_and_the_level),
        C_ROW(a_license_has_a_limit_of_skills),
        C_ROW(the_order_of_finalization_does_not_matter),
        C_ROW(numbers_are_healed_by_the_next_tournament),
        C_ROW(an_assessment_promotes_a_number),
        C_ROW(the_seed_and_its_debt),
        C_ROW(any_number_of_licenses_is_normalised),
        C_ROW(a_killed_seed_is_completed),
        C_ROW(a_larger_seed_leaves_cancelled_tournaments_alone),
        C_ROW(a_larger_seed_does_not_reopen),
        C_ROW(a_seed_meets_a_player_enrolled_by_hand),
        C_ROW(a_seed_meets_a_full_tournament),
        C_ROW(finalization_heals_the_debt),
        C_ROW(assessments_meet_tournaments),
        C_ROW(an_assessment_between_profile_and_lock_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
