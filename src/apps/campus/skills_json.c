/*
 * skills_json.c: the document football_skills; see skills_json.h.
 */
#include "apps/campus/skills_json.h"

#include <math.h>

#define EPSILON 0.001 /* levels have one decimal */

double
campus_skill_baseline(const json_t *entry)
{
    const json_t *value = json_is_number(entry) ? entry : json_object_get(entry, "baseline");

#ifdef IL_MUTANT_campus_numbers_ignored
    value = json_object_get(entry, "baseline");
#endif

    return json_is_number(value) ? json_number_value(value) : CAMPUS_BASELINE;
}

double
campus_skills_mean(const json_t *skills)
{
    const char *name  = NULL;
    json_t     *entry = NULL;
    double      sum   = 0;

    if (json_object_size(skills) == 0)
        return CAMPUS_BASELINE;
    json_object_foreach((json_t *)(uintptr_t)skills, name, entry) sum +=
        campus_skill_baseline(entry);
    return sum / (double)json_object_size(skills);
}

double
campus_skill_replay(const char *skill, double baseline, const struct campus_played *played,
                    size_t n, double *ret_last)
{
    double level = baseline, last = 0;

    for (size_t i = 0; i < n; i++) {
        struct campus_step step   = played[i].step;
        const json_t      *weight = json_object_get(played[i].weights, skill);
        if (json_is_number(weight))
            step.weight = json_number_value(weight);
        double next = campus_skill_step(level, &step);
        last        = next - level;
        level       = next;
    }
    if (ret_last != NULL)
        *ret_last = last;
    return level;
}

bool
campus_skill_set(json_t *skills, const char *skill, double baseline,
                 const struct campus_played *played, size_t n)
{
    double last  = 0;
    double level = campus_skill_replay(skill, baseline, played, n, &last);

    json_t *entry = json_pack("{s:f, s:f, s:f, s:f, s:I}", "baseline", baseline, "current_level",
                              level, "tournament_delta", campus_round(last, 1), "total_delta",
                              campus_round(level - baseline, 1), "tournament_count", (json_int_t)n);
    return entry != NULL && json_object_set_new(skills, skill, entry) == 0;
}

static bool
same_entry(const json_t *a, const json_t *b)
{
    static const char *const names[] = { "baseline", "current_level", "tournament_delta",
                                         "total_delta", "tournament_count" };

    if (!json_is_object(a) || json_object_size(a) != ARRAY_LEN(names))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const json_t *of_a = json_object_get(a, names[i]), *of_b = json_object_get(b, names[i]);
        if (!json_is_number(of_a) ||
            fabs(json_number_value(of_a) - json_number_value(of_b)) > EPSILON)
            return false;
    }
    return true;
}

bool
campus_skills_rebuild(json_t *skills, const struct campus_played *played, size_t n, size_t *ret_n)
{
    json_t *before    = json_deep_copy(skills);
    size_t  n_changed = 0;
    bool    ok        = before != NULL;

    const char *name  = NULL;
    json_t     *entry = NULL;
    json_object_foreach(before, name, entry)
    {
        double baseline = campus_level_clamp(campus_skill_baseline(entry));
        ok              = ok && campus_skill_set(skills, name, baseline, played, n);
        n_changed += ok && !same_entry(entry, json_object_get(skills, name));
    }
    json_decref(before);
    if (ret_n != NULL)
        *ret_n = n_changed;
    return ok;
}

double
campus_skills_delta(const json_t *skills, const struct campus_played *played, size_t i)
{
    const char *name  = NULL;
    json_t     *entry = NULL;
    double      sum = 0, last = 0;

    if (json_object_size(skills) == 0)
        return 0;
    json_object_foreach((json_t *)(uintptr_t)skills, name, entry)
    {
        (void)campus_skill_replay(name, campus_level_clamp(campus_skill_baseline(entry)), played,
                                  i + 1, &last);
        sum += last;
    }
    return campus_round(sum / (double)json_object_size(skills), 4);
}
