/*
 * rules.c: the rules of the campus without a database: states, rewards, badges, skills.
 */
#include <math.h>
#include <stdio.h>

#include "apps/campus/rules.h"
#include "apps/campus/skills_json.h"
#include "harness/check.h"
#include "harness/cmocka.h"

/* ---- states ---------------------------------------------------------------------------------- */

static void
states_have_these_edges(void **state UNUSED)
{
    static const char *const edges[] = {
        "DRAFT SEEKING_INSTRUCTOR",
        "DRAFT ENROLLMENT_OPEN",
        "DRAFT CANCELLED",
        "SEEKING_INSTRUCTOR ENROLLMENT_OPEN",
        "SEEKING_INSTRUCTOR CANCELLED",
        "ENROLLMENT_OPEN ENROLLMENT_CLOSED",
        "ENROLLMENT_OPEN CANCELLED",
        "ENROLLMENT_CLOSED ENROLLMENT_OPEN",
        "ENROLLMENT_CLOSED CHECK_IN_OPEN",
        "ENROLLMENT_CLOSED CANCELLED",
        "CHECK_IN_OPEN IN_PROGRESS",
        "CHECK_IN_OPEN CANCELLED",
        "IN_PROGRESS COMPLETED",
        "IN_PROGRESS CANCELLED",
        "COMPLETED REWARDS_DISTRIBUTED",
        "REWARDS_DISTRIBUTED ARCHIVED",
        "CANCELLED ARCHIVED",
    };
    unsigned n = 0;

    for (unsigned from = 0; from < CAMPUS_STATE_COUNT; from++) {
        T_EQ(campus_state_named(campus_state_name(from)), from);
        for (unsigned to = 0; to < CAMPUS_STATE_COUNT; to++) {
            char text[64];
            bool listed = false;
            (void)snprintf(text, sizeof text, "%s %s", campus_state_name(from),
                           campus_state_name(to));
            for (unsigned i = 0; i < ARRAY_LEN(edges); i++)
                listed = listed || strcmp(edges[i], text) == 0;
            if (campus_state_may(from, to) != listed)
                T_FAIL("%s: %d", text, listed);
            n += listed;
        }
    }
    T_EQ(n, ARRAY_LEN(edges));
    T_EQ(campus_state_named("OPEN"), CAMPUS_STATE_COUNT);
}

/* ---- rewards --------------------------------------------------------------------------------- */

static void
expect_reward(const char *config, int64_t place, int64_t xp, int64_t credits)
{
    json_t              *json = config != NULL ? json_loads(config, 0, NULL) : NULL;
    struct campus_reward r    = campus_reward(json, place);

    T_EQ(r.xp, xp);
    T_EQ(r.credits, credits);
    json_decref(json);
}

static void
places_earn_by_policy_or_config(void **state UNUSED)
{
    const char *config = "{\"1\": {\"xp\": 600}, \"3\": {\"credits\": 30}, \"others\": {\"xp\": 0, "
                         "\"credits\": 1}}";

    expect_reward(NULL, 1, 500, 100);
    expect_reward(NULL, 2, 300, 50);
    expect_reward(NULL, 3, 200, 25);
    expect_reward(NULL, 4, 50, 0);
    expect_reward(NULL, 64, 50, 0);
    expect_reward(config, 1, 600, 100);
    expect_reward(config, 2, 300, 50);
    expect_reward(config, 3, 200, 30);
    expect_reward(config, 9, 0, 1);
}

static void
a_wrong_config_is_refused(void **state UNUSED)
{
    static const char *const wrong[] = {
        "[]",
        "{\"4\": {}}",
        "{\"1\": 500}",
        "{\"1\": {\"gold\": 1}}",
        "{\"1\": {\"xp\": -1}}",
        "{\"1\": {\"xp\": 1.5}}",
        "{\"1\": {\"xp\": 1000001}}",
    };
    const char *why = NULL;

    for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
        json_t *json = json_loads(wrong[i], 0, NULL);
        if (campus_reward_config_ok(json, &why))
            T_FAIL("%s", wrong[i]);
        T_TRUE(why != NULL);
        json_decref(json);
    }
    json_t *json = json_loads("{\"1\": {\"xp\": 0, \"credits\": 1000000}}", 0, NULL);
    T_TRUE(campus_reward_config_ok(json, &why));
    json_decref(json);
}

/* ---- badges ---------------------------------------------------------------------------------- */

static void
expect_badges(struct campus_career career, const char *expected)
{
    char     text[256] = "";
    unsigned set       = campus_badges(&career);

    for (unsigned b = 0; b < CAMPUS_BADGE_COUNT; b++) {
        size_t n = strlen(text);
        if ((set & 1U << b) != 0)
            (void)snprintf(text + n, sizeof text - n, "%s%s", n > 0 ? " " : "",
                           campus_badge_name(b));
    }
    T_STREQ(text, expected);
}

static void
placements_earn_badges(void **state UNUSED)
{
    expect_badges((struct campus_career){ .place = 1, .n_tournaments = 1, .n_wins_in_row = 1 },
                  "CHAMPION PODIUM_FINISH FIRST_TOURNAMENT");
    expect_badges((struct campus_career){ .place = 2, .n_tournaments = 2 },
                  "RUNNER_UP PODIUM_FINISH TOURNAMENT_PARTICIPANT");
    expect_badges((struct campus_career){ .place = 3, .n_tournaments = 3 },
                  "THIRD_PLACE PODIUM_FINISH TOURNAMENT_PARTICIPANT");
    expect_badges((struct campus_career){ .place = 4, .n_tournaments = 4 },
                  "TOURNAMENT_PARTICIPANT");
    expect_badges((struct campus_career){ .place = 5, .n_tournaments = 5 },
                  "TOURNAMENT_PARTICIPANT TOURNAMENT_VETERAN");
    expect_badges((struct campus_career){ .place = 5, .n_tournaments = 6, .is_veteran = true },
                  "TOURNAMENT_PARTICIPANT");
    expect_badges((struct campus_career){ .place = 5, .n_tournaments = 10, .is_veteran = true },
                  "TOURNAMENT_PARTICIPANT TOURNAMENT_LEGEND");
    expect_badges((struct campus_career){ .place = 1, .n_tournaments = 3, .n_wins_in_row = 2 },
                  "CHAMPION PODIUM_FINISH TOURNAMENT_PARTICIPANT");
    expect_badges((struct campus_career){ .place = 1, .n_tournaments = 3, .n_wins_in_row = 3 },
                  "CHAMPION PODIUM_FINISH TOURNAMENT_PARTICIPANT TRIPLE_CROWN");
    expect_badges((struct campus_career){ .place = 1, .n_tournaments = 4, .n_wins_in_row = 4 },
                  "CHAMPION PODIUM_FINISH TOURNAMENT_PARTICIPANT");
}

/* ---- skills ---------------------------------------------------------------------------------- */

static void
expect_number(double actual, double expected)
{
    if (fabs(actual - expected) > 1e-9)
        T_FAIL("%.6f, expected %.6f", actual, expected);
}

static struct campus_step
step(int64_t place, double weight, double modifier, double factor)
{
    return (struct campus_step){ place, 8, weight, modifier, factor };
}

static void
one_tournament_moves_a_level(void **state UNUSED)
{
    const struct {
        struct campus_step step;
        double             level;
    } vectors[] = {
        { step(1, 1, 0, 1), 68.0 },   { step(8, 1, 0, 1), 56.0 },   { step(4, 1, 0, 1), 62.9 },
        { step(1, 1.5, 0, 1), 70.6 }, { step(1, 0.5, 0, 1), 64.7 }, { step(1, 1, 0, 1.2), 69.6 },
        { step(8, 1, 0, 1.2), 56.7 }, { step(1, 1, 0.5, 1), 72.0 }, { step(8, 1, 0.5, 1), 58.0 },
        { step(1, 0, 0, 1), 60.0 },   /* no weight, no change */
        { step(1, 1, 0, 9), 76.0 },   /* a factor is at most 2 */
        { step(8, 1, 0, 0.1), 52.0 }, /* and at least 0.5 */
    };

    for (unsigned i = 0; i < ARRAY_LEN(vectors); i++)
        expect_number(campus_skill_step(60, &vectors[i].step), vectors[i].level);
    struct campus_step alone = { 1, 1, 1, 0, 1 };
    expect_number(campus_skill_step(60, &alone), 68.0);
    struct campus_step best = step(1, 10, 1, 2), worst = step(8, 10, -1, 0.5);
    expect_number(campus_skill_step(98, &best), 99.0);
    expect_number(campus_skill_step(41, &worst), 40.0);
}

static void
a_chain_of_tournaments(void **state UNUSED)
{
    static const int64_t place[]  = { 1, 1, 1, 8 };
    static const double  levels[] = { 68.0, 74.4, 79.5, 71.6 };
    double               level    = 60;

    for (unsigned i = 0; i < ARRAY_LEN(place); i++) {
        struct campus_step s = step(place[i], 1, 0, 1);
        level                = campus_skill_step(level, &s);
        expect_number(level, levels[i]);
    }
}

static void
matches_and_opponents_count(void **state UNUSED)
{
    expect_number(campus_match_modifier(4, 3, 7, 3), 0.2588);
    expect_number(campus_match_modifier(0, 0, 0, 0), 0);
    expect_number(campus_match_modifier(1, 0, 0, 0), -0.1269); /* no goals */
    expect_number(campus_opponent_factor(0, 0, 60), 1);
    expect_number(campus_opponent_factor(140, 2, 60), 1.1667);
}

static void
expect_entry(const json_t *skills, const char *skill, double baseline, double level, double last,
             double total, int n)
{
    const json_t *entry = json_object_get(skills, skill);

    expect_number(json_number_value(json_object_get(entry, "baseline")), baseline);
    expect_number(json_number_value(json_object_get(entry, "current_level")), level);
    expect_number(json_number_value(json_object_get(entry, "tournament_delta")), last);
    expect_number(json_number_value(json_object_get(entry, "total_delta")), total);
    T_EQ(json_integer_value(json_object_get(entry, "tournament_count")), n);
    T_EQ(json_object_size(entry), 5);
}

static void
numbers_are_promoted_and_low_levels_lifted(void **state UNUSED)
{
    json_t *skills  = json_loads("{\"passing\": 60.0, \"vision\": {\"baseline\": 31.5, "
                                  "\"current_level\": 31.5}, \"pace\": 22}",
                                 0, NULL);
    json_t *weights = json_loads("{\"passing\": 1.5}", 0, NULL);
    const struct campus_played played[] = {
        { step(1, 1, 0, 1), weights },
        { step(8, 1, 0, 1), NULL },
    };
    size_t n = 0;

    expect_number(campus_skills_mean(skills), (60.0 + 31.5 + 22) / 3);
    T_TRUE(campus_skills_rebuild(skills, played, 1, &n));
    T_EQ(n, 3);
    expect_entry(skills, "passing", 60, 70.6, 10.6, 10.6, 1);
    expect_entry(skills, "vision", 40, 52, 12, 12, 1);
    expect_entry(skills, "pace", 40, 52, 12, 12, 1);
    T_TRUE(campus_skills_rebuild(skills, played, 1, &n)); /* again: nothing changes */
    T_EQ(n, 0);
    expect_number(campus_skills_delta(skills, played, 0), campus_round((10.6 + 12 + 12) / 3, 4));
    T_TRUE(campus_skills_rebuild(skills, played, 2, &n));
    expect_entry(skills, "vision", 40, 49.6, -2.4, 9.6, 2);
    json_decref(skills);
    json_decref(weights);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_have_these_edges),
        cmocka_unit_test(places_earn_by_policy_or_config),
        cmocka_unit_test(a_wrong_config_is_refused),
        cmocka_unit_test(placements_earn_badges),
        cmocka_unit_test(one_tournament_moves_a_level),
        cmocka_unit_test(a_chain_of_tournaments),
        cmocka_unit_test(matches_and_opponents_count),
        cmocka_unit_test(numbers_are_promoted_and_low_levels_lifted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
