/*
 * skills_json.h: the document football_skills of a license: {"passing": {"baseline": 60.0,
 * "current_level": 68.0, "tournament_delta": 8.0, "total_delta": 8.0, "tournament_count": 1}, …}.
 * An entry that is only a number is of the old format: promoted when it is next written. Pure
 * functions on JSON.
 */
#ifndef IL_APPS_CAMPUS_SKILLS_JSON_H
#define IL_APPS_CAMPUS_SKILLS_JSON_H

#include <jansson.h>

#include "apps/campus/skill_math.h"

#define CAMPUS_SKILL_BYTES_MAX 64

/* What a participation keeps of its step. */
struct campus_played {
    struct campus_step step;    /* its weight is that of skills without one in `weights` */
    const json_t      *weights; /* {"passing": 1.5}; may be NULL */
};

/* The baseline of an entry, as it is stored. */
double campus_skill_baseline(const json_t *entry);
/* The mean baseline of all skills, CAMPUS_BASELINE without skills. */
double campus_skills_mean(const json_t *skills);
/* The level of a skill after all of these tournaments, in this order; *ret_last (may be NULL) is
 * the change by the last. */
double campus_skill_replay(const char *skill, double baseline, const struct campus_played *played,
                           size_t n, double *ret_last);

/* Replace an entry by what its baseline and these tournaments give. False: out of memory. */
bool campus_skill_set(json_t *skills, const char *skill, double baseline,
                      const struct campus_played *played, size_t n) MUST_USE;
/* The same for all of them; baselines outside 40 .. 99 and numbers of the old format are healed.
 * *ret_n (may be NULL): how many entries changed. False: out of memory. */
bool campus_skills_rebuild(json_t *skills, const struct campus_played *played, size_t n,
                           size_t *ret_n) MUST_USE;
/* The mean change by the i-th tournament; 0 without skills. */
double campus_skills_delta(const json_t *skills, const struct campus_played *played, size_t i);

#endif
