/*
 * skill_math.h: how a tournament changes a skill: an exponential moving average that moves the
 * level towards what the place is worth. Pure functions; docs/pipelines/skill.md has the formula.
 */
#ifndef IL_APPS_CAMPUS_SKILL_MATH_H
#define IL_APPS_CAMPUS_SKILL_MATH_H

#include "base/base.h"

#define CAMPUS_LEVEL_MIN 40.0
#define CAMPUS_LEVEL_MAX 99.0
#define CAMPUS_BASELINE 60.0 /* the onboarding value, unless set */
#define CAMPUS_WEIGHT 1.0    /* of a skill in a tournament, unless set */

/* One tournament of a player, as a skill sees it. */
struct campus_step {
    int64_t place, players;
    double  weight;   /* of the skill in the tournament, ≥ 0 */
    double  modifier; /* of the player's matches, -1 .. 1 */
    double  factor;   /* of the opponents; clamped to 0.5 .. 2 */
};
/* The level after the step, with one decimal. */
double campus_skill_step(double level, const struct campus_step *step);

/* The modifier of n matches, with 4 decimals; 0 without matches. */
double campus_match_modifier(int64_t n, int64_t wins, int64_t goals_for, int64_t goals_against);
/* The factor of n opponents whose mean baselines sum up to `sum`, with 4 decimals; 1 without
 * opponents. */
double campus_opponent_factor(double sum, int64_t n, double own);

double campus_level_clamp(double level);
double campus_round(double value, int decimals);

#endif
