/*
 * rules.c: the rules of the campus that need no database; see rules.h.
 */
#include "apps/campus/rules.h"

#include <stdio.h>

#define VETERAN_AFTER 5
#define LEGEND_AFTER 10
#define CROWN_AFTER 3

/* ---- states of a tournament ------------------------------------------------------------------ */

#define TO(state) (1U << CAMPUS_##state)

/* The edges, from each state; docs/pipelines/enrollment.md shows them. */
static const unsigned edges[CAMPUS_STATE_COUNT] = {
    [CAMPUS_DRAFT]               = TO(SEEKING_INSTRUCTOR) | TO(ENROLLMENT_OPEN) | TO(CANCELLED),
    [CAMPUS_SEEKING_INSTRUCTOR]  = TO(ENROLLMENT_OPEN) | TO(CANCELLED),
    [CAMPUS_ENROLLMENT_OPEN]     = TO(ENROLLMENT_CLOSED) | TO(CANCELLED),
    [CAMPUS_ENROLLMENT_CLOSED]   = TO(ENROLLMENT_OPEN) | TO(CHECK_IN_OPEN) | TO(CANCELLED),
    [CAMPUS_CHECK_IN_OPEN]       = TO(IN_PROGRESS) | TO(CANCELLED),
    [CAMPUS_IN_PROGRESS]         = TO(COMPLETED) | TO(CANCELLED),
    [CAMPUS_COMPLETED]           = TO(REWARDS_DISTRIBUTED),
    [CAMPUS_REWARDS_DISTRIBUTED] = TO(ARCHIVED),
    [CAMPUS_CANCELLED]           = TO(ARCHIVED),
};

const char *
campus_state_name(enum campus_state state)
{
    static const char *const names[] = {
#define X(name) #name,
#include "apps/campus/states.def"
#undef X
    };

    CHECK(state < CAMPUS_STATE_COUNT);
    return names[state];
}

enum campus_state
campus_state_named(const char *name)
{
    unsigned i = 0;

    while (i < CAMPUS_STATE_COUNT && strcmp(campus_state_name(i), name) != 0)
        i++;
    return i;
}

bool
campus_state_may(enum campus_state from, enum campus_state to)
{
    CHECK(from < CAMPUS_STATE_COUNT);
    CHECK(to < CAMPUS_STATE_COUNT);
    return (edges[from] & 1U << to) != 0;
}

bool
campus_state_may_leave(enum campus_state state)
{
    return state == CAMPUS_ENROLLMENT_OPEN || state == CAMPUS_ENROLLMENT_CLOSED ||
           state == CAMPUS_CHECK_IN_OPEN;
}

bool
campus_state_is_closed(enum campus_state state)
{
    return state == CAMPUS_CANCELLED || state == CAMPUS_ARCHIVED;
}

/* ---- rewards --------------------------------------------------------------------------------- */

static const struct campus_reward policy[] = { { 500, 100 }, { 300, 50 }, { 200, 25 }, { 50, 0 } };
static const char *const          places[] = { "1", "2", "3", "others" };
#define N_PLACES (sizeof places / sizeof *places)
_Static_assert(sizeof policy / sizeof *policy == N_PLACES, "a reward for each place");

struct campus_reward
campus_reward(const json_t *config, int64_t place)
{
    size_t i = place >= 1 && place < (int64_t)N_PLACES ? (size_t)place - 1 : N_PLACES - 1;
    struct campus_reward reward  = policy[i];
    const json_t        *own     = json_object_get(config, places[i]);
    const json_t        *xp      = json_object_get(own, "xp");
    const json_t        *credits = json_object_get(own, "credits");

    if (xp != NULL)
        reward.xp = json_integer_value(xp);
    if (credits != NULL)
        reward.credits = json_integer_value(credits);
    return reward;
}

static bool
is_amount(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) <= CAMPUS_REWARD_MAX;
}

bool
campus_reward_config_ok(const json_t *config, const char **ret_why)
{
    const char *place = NULL, *name = NULL;
    json_t     *own = NULL, *value = NULL;

    *ret_why = "expected an object with the ranks 1, 2, 3 and others";
    if (!json_is_object(config))
        return false;
    json_object_foreach((json_t *)(uintptr_t)config, place, own)
    {
        size_t i = 0;
        while (i < N_PLACES && strcmp(places[i], place) != 0)
            i++;
        if (i == N_PLACES || !json_is_object(own))
            return false;
        json_object_foreach(own, name, value)
        {
            *ret_why = "each rank takes only xp and credits, integers from 0 to 1000000";
            if ((strcmp(name, "xp") != 0 && strcmp(name, "credits") != 0) || !is_amount(value))
                return false;
        }
    }
    return true;
}

/* ---- badges ---------------------------------------------------------------------------------- */

const char *
campus_badge_name(enum campus_badge badge)
{
    static const char *const names[] = {
#define X(name) #name,
#include "apps/campus/badges.def"
#undef X
    };

    CHECK(badge < CAMPUS_BADGE_COUNT);
    return names[badge];
}

unsigned
campus_badges(const struct campus_career *c)
{
    unsigned set = 0;

#define BADGE(name) (1U << CAMPUS_BADGE_##name)
    if (c->place == 1)
        set |= BADGE(CHAMPION);
    if (c->place == 2)
        set |= BADGE(RUNNER_UP);
    if (c->place == 3)
        set |= BADGE(THIRD_PLACE);
    if (c->place <= 3)
        set |= BADGE(PODIUM_FINISH);
    set |= c->n_tournaments == 1 ? BADGE(FIRST_TOURNAMENT) : BADGE(TOURNAMENT_PARTICIPANT);
    if (c->n_tournaments >= VETERAN_AFTER && !c->is_veteran)
        set |= BADGE(TOURNAMENT_VETERAN);
    if (c->n_tournaments >= LEGEND_AFTER && !c->is_legend)
        set |= BADGE(TOURNAMENT_LEGEND);
    if (c->n_wins_in_row > 0 && c->n_wins_in_row % CROWN_AFTER == 0)
        set |= BADGE(TRIPLE_CROWN);
#undef BADGE
    return set;
}
