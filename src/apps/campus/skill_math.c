/*
 * skill_math.c: how a tournament changes a skill; see skill_math.h.
 */
#include "apps/campus/skill_math.h"

#include <math.h>

#define RATE 0.20 /* share of the way to the target, for a weight of 1 */
#define TARGET_FIRST 100.0
#define TARGET_SPAN 60.0 /* the last place is worth TARGET_FIRST - TARGET_SPAN */
#define FACTOR_MIN 0.5
#define FACTOR_MAX 2.0
#define WINS_SHARE 0.7
#define GOALS_SHARE 0.3
#define MATCHES_SCALE 5.0 /* so many matches give the modifier 63 % of its weight */
#define DECIMALS 4        /* of modifier and factor */

double
campus_round(double value, int decimals)
{
    double scale = pow(10.0, decimals);

    return round(value * scale) / scale;
}

static double
clamp(double value, double min, double max)
{
    return value < min ? min : value > max ? max : value;
}

double
campus_level_clamp(double level)
{
    return clamp(level, CAMPUS_LEVEL_MIN, CAMPUS_LEVEL_MAX);
}

double
campus_skill_step(double level, const struct campus_step *s)
{
    CHECK(s->place >= 1);
    CHECK(s->players >= 1);
    double percentile = s->players > 1 ? (double)(s->place - 1) / (double)(s->players - 1) : 0.0;
    double target     = TARGET_FIRST - TARGET_SPAN * percentile;
    double rate       = RATE * log1p(s->weight) / log(2.0);
    double factor     = clamp(s->factor, FACTOR_MIN, FACTOR_MAX);
    double change     = rate * (target - level);

    /* Good matches and strong opponents add to a gain and soften a loss. */
    change =
        change >= 0 ? change * (1 + s->modifier) * factor : change * (1 - s->modifier) / factor;
    return campus_round(campus_level_clamp(level + change), 1);
}

double
campus_match_modifier(int64_t n, int64_t wins, int64_t goals_for, int64_t goals_against)
{
    int64_t goals = goals_for + goals_against;

    if (n == 0)
        return 0;
    double by_wins  = 2.0 * (double)wins / (double)n - 1;
    double by_goals = goals > 0 ? (double)(goals_for - goals_against) / (double)goals : 0;
    double known    = 1 - exp(-(double)n / MATCHES_SCALE);
    return campus_round((WINS_SHARE * by_wins + GOALS_SHARE * by_goals) * known, DECIMALS);
}

double
campus_opponent_factor(double sum, int64_t n, double own)
{
    if (n == 0 || own <= 0)
        return 1;
    return campus_round(sum / (double)n / own, DECIMALS);
}
