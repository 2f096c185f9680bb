/*
 * invariants.c: what must hold for the tables of the campus. `interlock check` runs these.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "apps/campus/history.h"
#include "apps/campus/seed_debt.h"
#include "base/arena.h"
#include "base/clock.h"

#include "apps/campus/campus_invariant_sql.inc"

#define EPSILON 0.051 /* a level has one decimal */
#define PAGE 1000     /* licenses that are in memory at once, with their histories */

/* ---- constraints ----------------------------------------------------------------------------- */

static il_status
find_missing(il_guard_tx *tx, enum campus_pipeline pipeline, struct invariant_found *found,
             il_error *reterr)
{
    const struct app_pipeline *p  = &campus_pipelines[pipeline];
    il_status                  st = IL_OK;

    for (size_t i = 0; i < p->n_constraints && (st == IL_OK || st == IL_NOT_FOUND); i++) {
        st = il_guard_require_constraint(tx, p->constraints[i].table, p->constraints[i].name,
                                         reterr);
        if (st == IL_NOT_FOUND)
            il__invariant_found(found, p->constraints[i].name, p->constraints[i].table);
    }
    return st == IL_NOT_FOUND ? IL_OK : st;
}

#define CONSTRAINTS(pipeline)                                                                  \
    static il_status find_##pipeline##_constraints(il_guard_tx *tx, const char *tenant UNUSED, \
                                                   struct invariant_found *found,              \
                                                   il_error               *reterr)             \
    {                                                                                          \
        return find_missing(tx, CAMPUS_PIPELINE_##pipeline, found, reterr);                    \
    }

CONSTRAINTS(enrollment)
CONSTRAINTS(booking)
CONSTRAINTS(reward)
CONSTRAINTS(skill)

/* ---- skills ---------------------------------------------------------------------------------- */

/* A license that is being looked at. */
struct looking {
    struct campus_call      c;
    il_guard_tx            *tx;
    struct invariant_found *found;
    const char             *license, *user;
    int64_t                 n_entries, n_numbers;
};
typedef il_status look_fn(struct looking *l, const json_t *skills, il_error *reterr);

/* One page: *ret_n licenses behind l->license, which becomes the last of them. */
static il_status
look_at_page(struct looking *l, look_fn *fn, size_t *ret_n, il_error *reterr)
{
    static const struct app_statement text = APP_STATEMENT(skill_licenses);
    struct campus_rows                r;

    il_status st = campus_read(
        &l->c, l->tx, &text,
        APP_VALUES(il_guard_text(l->c.tenant), il_guard_text(l->license), il_guard_int(PAGE)), &r,
        reterr);
    for (size_t i = 0; st == IL_OK && i < r.n; i++) {
        json_t *skills = NULL;
        l->license     = campus_text(&r, i, 0);
        l->user        = campus_text(&r, i, 1);
        st             = campus_parse(campus_text(&r, i, 2), "football_skills", &skills, reterr);
        if (st == IL_OK)
            st = fn(l, skills, reterr);
        json_decref(skills);
    }
    *ret_n = r.n;
    return st;
}

static il_status
each_license(il_guard_tx *tx, const char *tenant, struct invariant_found *found, look_fn *fn,
             struct looking *l, il_error *reterr)
{
    void     *page = NULL; /* the memory of the page before */
    size_t    n    = 0;
    il_status st;

    *l = (struct looking){ .c = { .tenant = tenant }, .tx = tx, .found = found, .license = "" };
    do {
        il__arena_free(&page);
        page     = l->c.mem;
        l->c.mem = NULL;
        st       = look_at_page(l, fn, &n, reterr);
    } while (st == IL_OK && n == PAGE);
    il__arena_free(&page);
    il__arena_free(&l->c.mem);
    return st;
}

static void
report(struct looking *l, const char *skill, const char *text)
{
    char key[INVARIANT_KEY_BYTES_MAX];

    (void)snprintf(key, sizeof key, "%s/%s", l->license, skill);
    il__invariant_found(l->found, key, text);
}

static il_status
look_at_levels(struct looking *l, const json_t *skills, il_error *reterr UNUSED)
{
    const char *name  = NULL;
    json_t     *entry = NULL;
    char        text[64];

    json_object_foreach((json_t *)(uintptr_t)skills, name, entry)
    {
        const json_t *value =
            json_is_number(entry) ? entry : json_object_get(entry, "current_level");
        double level = json_number_value(value);
        (void)snprintf(text, sizeof text, "level %.1f", level);
        if (level != campus_level_clamp(level))
            report(l, name, text);
    }
    return IL_OK;
}

static il_status
find_levels(il_guard_tx *tx, const char *tenant, struct invariant_found *found, il_error *reterr)
{
    struct looking l;

    return each_license(tx, tenant, found, look_at_levels, &l, reterr);
}

static il_status
look_at_baselines(struct looking *l, const json_t *skills, il_error *reterr UNUSED)
{
    const char *name  = NULL;
    json_t     *entry = NULL;
    char        text[64];

    json_object_foreach((json_t *)(uintptr_t)skills, name, entry)
    {
        double baseline = campus_skill_baseline(entry);
        (void)snprintf(text, sizeof text, "baseline %.1f", baseline);
        if (json_is_object(entry) && baseline != campus_level_clamp(baseline))
            report(l, name, text);
    }
    return IL_OK;
}

static il_status
find_baselines(il_guard_tx *tx, const char *tenant, struct invariant_found *found, il_error *reterr)
{
    struct looking l;

    return each_license(tx, tenant, found, look_at_baselines, &l, reterr);
}

/* Licenses with entries of the old format, and how many there are. */
static il_status
look_at_formats(struct looking *l, const json_t *skills, il_error *reterr UNUSED)
{
    const char *name  = NULL;
    json_t     *entry = NULL;
    int64_t     n     = 0;
    char        text[64];

    json_object_foreach((json_t *)(uintptr_t)skills, name, entry) n += !json_is_object(entry);
    l->n_entries += (int64_t)json_object_size(skills);
    l->n_numbers += n;
    (void)snprintf(text, sizeof text, "%" PRId64 " entries are numbers", n);
    if (n > 0 && l->found != NULL)
        il__invariant_found(l->found, l->license, text);
    return IL_OK;
}

static il_status
find_formats(il_guard_tx *tx, const char *tenant, struct invariant_found *found, il_error *reterr)
{
    struct looking l;

    return each_license(tx, tenant, found, look_at_formats, &l, reterr);
}

static il_status
find_float_share(il_guard_tx *tx, const char *tenant, struct invariant_found *found,
                 il_error *reterr)
{
    struct looking l;
    char           text[96];

    il_status st = each_license(tx, tenant, NULL, look_at_formats, &l, reterr);
    if (st != IL_OK)
        return st;
    (void)snprintf(text, sizeof text, "%" PRId64 " of %" PRId64 " entries are numbers", l.n_numbers,
                   l.n_entries);
    if (2 * l.n_numbers > l.n_entries)
        il__invariant_found(found, "football_skills", text);
    return IL_OK;
}

/* Replay the history of a license and compare. Numbers have no history yet: their format is the
 * matter of other invariants. */
static il_status
look_at_replay(struct looking *l, const json_t *skills, il_error *reterr)
{
    AUTO_HISTORY struct campus_history h     = { .n = 0 };
    const char                        *name  = NULL;
    json_t                            *entry = NULL;
    char                               text[96];
    il_status                          st = campus_history_read(&l->c, l->tx, l->user, &h, reterr);

    if (st != IL_OK)
        return st;
    size_t n = campus_history_of(&h, l->license, 0, NULL);
    json_object_foreach((json_t *)(uintptr_t)skills, name, entry)
    {
        double stored = json_number_value(json_object_get(entry, "current_level"));
        double replay = campus_skill_replay(name, campus_skill_baseline(entry), h.played, n, NULL);
        (void)snprintf(text, sizeof text, "stored %.1f, replay %.1f", stored, replay);
        if (json_is_object(entry) && fabs(stored - replay) > EPSILON)
            report(l, name, text);
    }
    return IL_OK;
}

static il_status
find_replay(il_guard_tx *tx, const char *tenant, struct invariant_found *found, il_error *reterr)
{
    struct looking l;

    return each_license(tx, tenant, found, look_at_replay, &l, reterr);
}

/* ---- the table ------------------------------------------------------------------------------- */

#define BY_SQL(name_, severity_, summary_)                                      \
    {                                                                           \
        .name = #name_, .summary = summary_, .severity = INVARIANT_##severity_, \
        .sqlite = sql_##name_, .postgres = sql_##name_                          \
    }
#define BY_FN(name_, severity_, fn_, baseline_, summary_)                                  \
    {                                                                                      \
        .name = #name_, .summary = summary_, .severity = INVARIANT_##severity_, .fn = fn_, \
        .baseline = baseline_                                                              \
    }

const struct app_invariant campus_invariants[CAMPUS_INVARIANTS] = {
    BY_SQL(enrollment_duplicate, ERROR, "a user has one active enrollment in a tournament"),
    BY_SQL(enrollment_balance, ERROR, "no balance is negative"),
    BY_SQL(enrollment_withdrawn, ERROR, "a withdrawn enrollment is not active"),
    BY_SQL(enrollment_unpaid, WARNING, "an approved enrollment has its row in the ledger"),
    BY_SQL(enrollment_count, ERROR, "the counter of a tournament is the number of enrollments"),
    BY_SQL(enrollment_cancelled, ERROR, "a cancelled tournament has no active enrollments"),
    BY_FN(enrollment_constraints, ERROR, find_enrollment_constraints, NULL,
          "the constraints of enrollment exist"),
    BY_SQL(booking_capacity, ERROR, "no session has more confirmed bookings than places"),
    BY_SQL(booking_spots, ERROR, "available_spots is capacity minus confirmed bookings"),
    BY_SQL(booking_duplicate, ERROR, "a user has one live booking of a session"),
    BY_SQL(booking_cancelled, ERROR, "a cancelled tournament has no live bookings"),
    BY_SQL(booking_overlap, ERROR, "live bookings of a user do not overlap in time"),
    BY_SQL(booking_waitlist, ERROR, "a waitlist has the positions 1, 2, 3, … without gaps"),
    BY_SQL(booking_attendance, ERROR, "a booking has one row of attendance"),
    BY_FN(booking_constraints, ERROR, find_booking_constraints, NULL,
          "the constraints of booking exist"),
    BY_SQL(reward_participation, ERROR, "a user participates once in a tournament"),
    BY_SQL(reward_badge, ERROR, "a badge is awarded once per user and tournament"),
    BY_SQL(reward_key, ERROR, "an idempotency key is used once"),
    BY_SQL(reward_balance, ERROR, "a balance is the sum of its ledger"),
    BY_SQL(reward_twice, ERROR, "a user is rewarded once for a tournament"),
    BY_SQL(reward_unpaid, ERROR, "every player of a finalized tournament is paid"),
    BY_FN(reward_constraints, ERROR, find_reward_constraints, NULL,
          "the constraints of rewards exist"),
    BY_FN(skill_level, ERROR, find_levels, campus_debt_levels, "levels are within 40 to 99"),
    BY_FN(skill_floats, WARNING, find_float_share, NULL,
          "at most half of the skills are plain numbers"),
    BY_FN(skill_format, INFO, find_formats, campus_debt_licenses, "skills are objects"),
    BY_SQL(skill_delta, WARNING, "at most 20 % of participations have no skill_rating_delta"),
    BY_FN(skill_replay, ERROR, find_replay, NULL, "replaying the history gives the stored levels"),
    BY_FN(skill_baseline, INFO, find_baselines, campus_debt_levels,
          "baselines are within 40 to 99"),
    BY_FN(skill_constraints, ERROR, find_skill_constraints, NULL,
          "the constraints of licenses exist"),
};

/* ---- events ---------------------------------------------------------------------------------- */

struct breach {
    const struct app_invariant *invariant;
    const char                 *text;
};

static il_status
add_breach(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const char *const levels[] = {
        [INVARIANT_INFO] = "INFO", [INVARIANT_WARNING] = "WARNING", [INVARIANT_ERROR] = "ERROR"
    };
    struct campus_op    *op = cookie;
    const struct breach *b  = op->own;

    return campus_event(op->c, tx, op->c->id, levels[b->invariant->severity], "INVARIANT_BROKEN",
                        reterr, "%s", b->text);
}

void
campus_broken(il_guard *db, const char *tenant, const struct app_invariant *invariant,
              const char *text)
{
    char               id[37];
    struct campus_call c = { .db = db, .tenant = tenant, .id = id, .now_ms = il__clock_wall_ms() };
    struct breach      b = { invariant, text };

    if (il_uuid(id) != IL_OK)
        return;
    IGNORE(campus_transact(&(struct campus_op){ &c, NULL, NULL, &b }, "invariants", "broken", NULL,
                           add_breach, NULL) != IL_OK); /* the history has it as well */
    il__arena_free(&c.mem);
}
