/*
 * rules.h: the rules of the campus that need no database: the states of a tournament, rewards,
 * badges and times. Pure functions.
 */
#ifndef IL_APPS_CAMPUS_RULES_H
#define IL_APPS_CAMPUS_RULES_H

#include <jansson.h>

#include "base/base.h"

/* ---- states of a tournament ------------------------------------------------------------------ */

enum campus_state {
#define X(name) CAMPUS_##name,
#include "apps/campus/states.def"
#undef X
    CAMPUS_STATE_COUNT
};
const char *campus_state_name(enum campus_state state);
/* CAMPUS_STATE_COUNT: no such state. */
enum campus_state campus_state_named(const char *name);
/* Is there an edge? Only finalization takes the one to REWARDS_DISTRIBUTED. */
bool campus_state_may(enum campus_state from, enum campus_state to);
/* May a player leave the tournament? */
bool campus_state_may_leave(enum campus_state state);
/* Is it over: nothing can be booked or added any more? */
bool campus_state_is_closed(enum campus_state state);

/* ---- rewards --------------------------------------------------------------------------------- */

#define CAMPUS_REWARD_MAX 1000000

struct campus_reward {
    int64_t xp, credits;
};
/* What a place earns: the policy, or what the tournament's reward_config (may be NULL) says about
 * it: {"1": {"xp": 600, "credits": 80}, …, "others": {"xp": 10}}. */
struct campus_reward campus_reward(const json_t *config, int64_t place);
/* Is it a valid reward_config? *ret_why says what is wrong. */
bool campus_reward_config_ok(const json_t *config, const char **ret_why);

/* ---- badges ---------------------------------------------------------------------------------- */

enum campus_badge {
#define X(name) CAMPUS_BADGE_##name,
#include "apps/campus/badges.def"
#undef X
    CAMPUS_BADGE_COUNT
};
const char *campus_badge_name(enum campus_badge badge);

/* What the badges of a placement depend on. */
struct campus_career {
    int64_t place;
    int64_t n_tournaments;         /* with this one */
    int64_t n_wins_in_row;         /* that end with this one */
    bool    is_veteran, is_legend; /* has the badge already */
};
/* A set of 1 << enum campus_badge. */
unsigned campus_badges(const struct campus_career *career);

/* ---- times ----------------------------------------------------------------------------------- */

#define CAMPUS_BOOK_BEFORE_MS (INT64_C(24) * 3600 * 1000)   /* a booking, before the start */
#define CAMPUS_CANCEL_BEFORE_MS (INT64_C(12) * 3600 * 1000) /* a cancellation */

#endif
