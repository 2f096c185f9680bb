/*
 * skill.c: the skills of a license: its history, assessments, and the old format.
 *
 * football_skills is only written by a transaction that has locked the license, and what it writes
 * is computed from what it read under that lock: the baselines, and the participations with what
 * their steps used. So an assessment and a tournament never lose each other's change, and a replay
 * at any later time gives what is stored. docs/pipelines/skill.md lists the races and their tests;
 * run those tests after any change here.
 */
#include "apps/campus/history.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/error.h"

#include "apps/campus/campus_skill_sql.inc"

#define PIPELINE "skill"

/* ---- history --------------------------------------------------------------------------------- */

void
campus_history_release(struct campus_history *h)
{
    for (size_t i = 0; i < h->n; i++)
        json_decref((json_t *)(uintptr_t)h->items[i].played.weights);
    h->n = 0;
}

il_status
campus_history_read(struct campus_call *c, il_guard_tx *tx, const char *user,
                    struct campus_history *ret, il_error *reterr)
{
    static const struct app_statement text = APP_STATEMENT(history);
    struct campus_rows                r;

    *ret         = (struct campus_history){ .n = 0 };
    il_status st = campus_read(c, tx, &text, CAMPUS_OF(c, user), &r, reterr);
    if (st != IL_OK)
        return st;
    ret->items  = il__arena_alloc(&c->mem, (r.n + 1) * sizeof *ret->items);
    ret->played = il__arena_alloc(&c->mem, (r.n + 1) * sizeof *ret->played);
    if (ret->items == NULL || ret->played == NULL)
        return campus_no_memory(reterr);
    for (size_t i = 0; i < r.n && st == IL_OK; i++) {
        json_t *weights = NULL;
        st              = campus_parse(campus_text(&r, i, 6), "skill_weights", &weights, reterr);
        struct campus_step step = { .place    = campus_int(&r, i, 2),
                                    .players  = campus_int(&r, i, 3),
                                    .weight   = CAMPUS_WEIGHT,
                                    .modifier = campus_number(&r, i, 4),
                                    .factor   = campus_number(&r, i, 5) };
#ifdef IL_MUTANT_campus_factor_forgotten
        step.factor = 1;
#endif
        ret->items[ret->n++] = (struct campus_past){ .id          = campus_text(&r, i, 0),
                                                     .license     = campus_text(&r, i, 1),
                                                     .achieved_ms = campus_int(&r, i, 7),
                                                     .played      = { step, weights } };
    }
    return st;
}

static bool
comes_before(const struct campus_past *a, const struct campus_past *b)
{
    return a->achieved_ms != b->achieved_ms ? a->achieved_ms < b->achieved_ms
                                            : strcmp(a->id, b->id) < 0;
}

size_t
campus_history_insert(struct campus_history *h, const struct campus_past *p)
{
    size_t i = h->n++;

    for (; i > 0 && comes_before(p, &h->items[i - 1]); i--)
        h->items[i] = h->items[i - 1];
    h->items[i] = *p;
    json_incref((json_t *)(uintptr_t)p->played.weights);
    return i;
}

size_t
campus_history_of(struct campus_history *h, const char *license, size_t i, size_t *ret_i)
{
    size_t n = 0;

    for (size_t k = 0; k < h->n; k++) {
        if (h->items[k].license == NULL || strcmp(h->items[k].license, license) != 0)
            continue;
        if (k == i && ret_i != NULL)
            *ret_i = n;
        h->played[n++] = h->items[k].played;
    }
    return n;
}

/* ---- writing back ---------------------------------------------------------------------------- */

il_status
campus_skills_store(struct campus_call *c, il_guard_tx *tx, const char *license,
                    const json_t *skills, il_error *reterr)
{
    char *text = json_dumps(skills, JSON_COMPACT | JSON_SORT_KEYS);

    if (text == NULL)
        return campus_no_memory(reterr);
    il_status st =
        il_guard_set_json(tx, CAMPUS_LICENSE(c, license), "football_skills", text, reterr);
#ifdef IL_MUTANT_campus_delta_rewritten
    static const struct app_statement rewrite = APP_STATEMENT(delta_rewrite);
    if (st == IL_OK)
        st = campus_run(tx, &rewrite, CAMPUS_OF(c, license), NULL, reterr);
#endif
    free(text); /* NOLINT: jansson allocated it */
    return st;
}

/* ---- assessments ----------------------------------------------------------------------------- */

static il_status
add_assessment(struct campus_op *op, il_guard_tx *tx, double value, int *ret_new, il_error *reterr)
{
    static const char *const unique[] = { "tenant", "id" };
    struct campus_call      *c        = op->c;
    const il_guard_column    row[]    = { { "tenant", il_guard_text(c->tenant) },
                                          { "id", il_guard_text(c->id) },
                                          { "license_id", il_guard_text(op->in->license) },
                                          { "skill", il_guard_text(op->in->skill) },
                                          { "value", il_guard_double(value) },
                                          { "created_at", il_guard_int(c->now_ms) } };

    return il_guard_insert_or_get(tx, "football_skill_assessments", row, ARRAY_LEN(row), unique,
                                  ARRAY_LEN(unique), ret_new, NULL, reterr);
}

/* The new baseline of one skill, and the level that the history gives from there. */
static il_status
rebase(struct campus_op *op, il_guard_tx *tx, double value, il_error *reterr)
{
    struct campus_license             *l      = op->out;
    AUTO_HISTORY struct campus_history h      = { .n = 0 };
    json_t                            *skills = NULL;

    il_status st = campus_history_read(op->c, tx, l->user, &h, reterr);
    if (st == IL_OK)
        st = campus_parse(l->skills, "football_skills", &skills, reterr);
    if (st == IL_OK && json_object_get(skills, op->in->skill) == NULL &&
        json_object_size(skills) >= CAMPUS_SKILLS_MAX)
        st = campus_refuse(op->c, CAMPUS_E_TOO_MANY_SKILLS, reterr,
                           "license %s already has %d skills, the maximum", l->id,
                           CAMPUS_SKILLS_MAX);
    if (st == IL_OK) {
        size_t n = campus_history_of(&h, l->id, 0, NULL);
        if (!campus_skill_set(skills, op->in->skill, value, h.played, n))
            st = campus_no_memory(reterr);
    }
    if (st == IL_OK)
        st = campus_skills_store(op->c, tx, l->id, skills, reterr);
    json_decref(skills);
    return st;
}

static il_status
assess(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op      *op     = cookie;
    struct campus_call    *c      = op->c;
    struct campus_license *l      = op->out;
    double                 value  = (double)op->in->value_1 / 10;
    int                    is_new = 0;

    il_status st = il_guard_tag(tx, "license_id", il_guard_text(op->in->license), reterr);
#ifdef IL_MUTANT_campus_assess_stale
    if (st == IL_OK)
        st = campus_license_read(c, tx, op->in->license, l, reterr);
#endif
    if (st == IL_OK)
        st = campus_lock(c, tx, CAMPUS_LICENSE(c, op->in->license), CAMPUS_E_LICENSE_NOT_FOUND,
                         reterr);
    if (st == IL_OK)
        st = add_assessment(op, tx, value, &is_new, reterr);
#ifndef IL_MUTANT_campus_assess_stale
    if (st == IL_OK)
        st = campus_license_read(c, tx, op->in->license, l, reterr);
#endif
    if (st == IL_OK && is_new)
        st = rebase(op, tx, value, reterr);
    return st == IL_OK ? campus_license_read(c, tx, op->in->license, l, reterr) : st;
}

il_status
campus_license_assess(struct campus_call *c, const struct campus_in *in, void *out,
                      il_error *reterr)
{
    return campus_transact(&(struct campus_op){ c, in, out, NULL }, PIPELINE, "assess", NULL,
                           assess, reterr);
}

/* ---- the old format -------------------------------------------------------------------------- */

/* What there is to heal in a license: *skills is healed in memory. */
static il_status
heal(struct campus_call *c, il_guard_tx *tx, const char *id, const char *user, json_t *skills,
     size_t *ret_n, il_error *reterr)
{
    AUTO_HISTORY struct campus_history h  = { .n = 0 };
    il_status                          st = campus_history_read(c, tx, user, &h, reterr);

    if (st != IL_OK)
        return st;
    size_t n = campus_history_of(&h, id, 0, NULL);
    return campus_skills_rebuild(skills, h.played, n, ret_n) ? IL_OK : campus_no_memory(reterr);
}

/* Does it need to be healed: a number, or a baseline or level out of bounds? */
static bool
is_old(const json_t *skills)
{
    const char *name  = NULL;
    json_t     *entry = NULL;

    json_object_foreach((json_t *)(uintptr_t)skills, name, entry)
    {
        double baseline = campus_skill_baseline(entry);
        double level    = json_number_value(json_object_get(entry, "current_level"));
        if (!json_is_object(entry) || baseline != campus_level_clamp(baseline) ||
            level != campus_level_clamp(level))
            return true;
    }
    return false;
}

#define PAGE 4000 /* licenses: each page is one transaction, which can hold all of its rows */
_Static_assert(PAGE <= IL_GUARD_ROWS_MAX, "a transaction holds a page");

struct normalising {
    bool               apply;
    const char        *after; /* the page begins behind this license */
    const char        *last;  /* the last license of a full page; NULL: this was the last page */
    struct campus_debt debt;  /* of the page */
};

static il_status
normalise_one(struct campus_op *op, il_guard_tx *tx, const char *id, il_error *reterr)
{
    struct normalising   *n         = op->own;
    struct campus_license l         = { 0 };
    json_t               *skills    = NULL;
    size_t                n_changed = 0;

    il_status st = campus_license_read(op->c, tx, id, &l, reterr);
    if (st == IL_OK)
        st = campus_parse(l.skills, "football_skills", &skills, reterr);
    if (st == IL_OK && is_old(skills))
        st = heal(op->c, tx, id, l.user, skills, &n_changed, reterr);
    if (st == IL_OK && n_changed > 0 && n->apply)
        st = campus_skills_store(op->c, tx, id, skills, reterr);
    n->debt.n_licenses += n_changed > 0;
    n->debt.n_entries += (int64_t)n_changed;
    json_decref(skills);
    return st;
}

static il_status
normalise(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement page = APP_STATEMENT(licenses_page);
    struct campus_op                 *op   = cookie;
    struct normalising               *n    = op->own;
    struct campus_call               *c    = op->c;
    struct campus_rows                r;

    il__arena_clear(&c->mem); /* the page before, or an earlier attempt at this one */
    n->debt      = (struct campus_debt){ 0 };
    il_status st = campus_read(
        c, tx, &page,
        APP_VALUES(il_guard_text(c->tenant), il_guard_text(n->after), il_guard_int(PAGE)), &r,
        reterr);
    if (st != IL_OK)
        return st;
    n->last            = r.n == PAGE ? campus_text(&r, r.n - 1, 0) : NULL;
    const char **ids   = il__arena_alloc(&c->mem, (r.n + 1) * sizeof *ids);
    size_t       n_old = 0;
    if (ids == NULL)
        return campus_no_memory(reterr);
    for (size_t i = 0; i < r.n && st == IL_OK; i++) {
        json_t *skills = NULL;
        st             = campus_parse(campus_text(&r, i, 1), "football_skills", &skills, reterr);
        if (st == IL_OK && is_old(skills))
            ids[n_old++] = campus_text(&r, i, 0);
        json_decref(skills);
    }
    if (st == IL_OK && n->apply) /* then each is read again, under its lock */
        st = campus_lock_all(c, tx, "UserLicense", "user_licenses", ids, n_old, IL_GUARD_PLACE,
                             reterr);
    for (size_t i = 0; i < n_old && st == IL_OK; i++)
        st = normalise_one(op, tx, ids[i], reterr);
    return st;
}

il_status
campus_normalise(struct campus_call *c, bool apply, struct campus_debt *ret, il_error *reterr)
{
    struct normalising n    = { .apply = apply, .after = "" };
    struct campus_op   op   = { c, NULL, NULL, &n };
    struct campus_debt debt = { 0 };
    void              *mem = c->mem, *cursor = NULL;
    il_status          st;

    c->mem = NULL; /* the arena of one page after the other: nothing of it is returned */
    do {
        st = apply ? campus_transact(&op, PIPELINE, "normalise", NULL, normalise, reterr)
                   : campus_transact_read_only(&op, PIPELINE, NULL, normalise, reterr);
        debt.n_licenses += n.debt.n_licenses;
        debt.n_entries += n.debt.n_entries;
        if (st == IL_OK && n.last != NULL) {
            il__arena_clear(&cursor);
            n.after = il__arena_strdup(&cursor, n.last);
            st      = n.after != NULL ? IL_OK : campus_no_memory(reterr);
        }
    } while (st == IL_OK && n.last != NULL);
    il__arena_free(&cursor);
    il__arena_free(&c->mem);
    c->mem = mem;
    if (st == IL_OK)
        *ret = debt;
    return st;
}

/* ---- the gauge ------------------------------------------------------------------------------- */

static il_status
count_nulls(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement text = APP_STATEMENT(null_deltas);
    struct campus_op                 *op   = cookie;
    struct campus_rows                r;
    il_status                         st = campus_read(op->c, tx, &text, APP_NO_VALUES, &r, reterr);

    if (st == IL_OK)
        *(int64_t *)op->out =
            campus_int(&r, 0, 1) > 0 ? 1000 * campus_int(&r, 0, 0) / campus_int(&r, 0, 1) : 0;
    return st;
}

il_status
campus_null_deltas(il_guard *db, int64_t *ret_permille, il_error *reterr)
{
    struct campus_call c = { .db = db, .tenant = "" };
    il_status st = campus_transact_read_only(&(struct campus_op){ &c, NULL, ret_permille, NULL },
                                             PIPELINE, NULL, count_nulls, reterr);

    il__arena_free(&c.mem);
    return st;
}
