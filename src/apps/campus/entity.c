/*
 * entity.c: creating and showing users, licenses, tournaments, sessions and matches.
 *
 * The id of a call becomes the id of the row that it creates: a repeated call finds the row.
 */
#include <inttypes.h>

#include "apps/campus/campus_tx.h"
#include "apps/campus/ledger.h"
#include "apps/campus/skills_json.h"
#include "base/arena.h"
#include "base/error.h"

#include "apps/campus/campus_entity_sql.inc"

#define PIPELINE "campus"
#define WEIGHT_MAX 10

il_status
campus_parse(const char *text, const char *field, json_t **ret, il_error *reterr)
{
    json_error_t why;
    json_t *json = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, &why) : json_object();

    if (json == NULL && text == NULL)
        return campus_no_memory(reterr);
    if (!json_is_object(json)) {
        json_decref(json);
        return il__error_set(reterr, IL_INVAL, "field '%s': expected a JSON object", field);
    }
    *ret = json;
    return IL_OK;
}

/* A number from min to max for each skill. */
static il_status
check_numbers(const json_t *values, const char *field, double min, double max, il_error *reterr)
{
    const char *name  = NULL;
    json_t     *value = NULL;

    if (json_object_size(values) > CAMPUS_SKILLS_MAX)
        return il__error_set(reterr, IL_INVAL, "field '%s': at most %d skills are allowed", field,
                             CAMPUS_SKILLS_MAX);
    json_object_foreach((json_t *)(uintptr_t)values, name, value)
    {
        double number = json_number_value(value);
        if (name[0] == '\0' || strlen(name) > CAMPUS_SKILL_BYTES_MAX)
            return il__error_set(reterr, IL_INVAL,
                                 "field '%s': a skill name must have 1 to %d bytes", field,
                                 CAMPUS_SKILL_BYTES_MAX);
        if (!json_is_number(value) || number < min || number > max)
            return il__error_set(reterr, IL_INVAL,
                                 "field '%s': '%.64s' must be a number from %g to %g", field, name,
                                 min, max);
    }
    return IL_OK;
}

static const char *
specialization_of(const struct campus_in *in)
{
    return in->specialization != NULL ? in->specialization : CAMPUS_SPECIALIZATION;
}

/* Insert a row under its id, or find it. `taken`: the code if another unique index refuses it. */
static il_status
create(struct campus_op *op, il_guard_tx *tx, const char *table, const il_guard_column *row,
       size_t n, enum campus_code taken, int *ret_new, il_error *reterr)
{
    static const char *const unique[] = { "tenant", "id" };
    il_status                st =
        il_guard_insert_or_get(tx, table, row, n, unique, ARRAY_LEN(unique), ret_new, NULL, reterr);

    if (st == IL_UNIQUE)
        return campus_refuse(op->c, taken, reterr, "%s", campus_code_text(taken));
    return st;
}

/* ---- users ----------------------------------------------------------------------------------- */

il_status
campus_user_read(struct campus_call *c, il_guard_tx *tx, const char *id, struct campus_user *ret,
                 il_error *reterr)
{
    static const struct app_statement get = APP_STATEMENT(user_get);
    struct campus_rows                r;
    il_status                         st = campus_read(c, tx, &get, CAMPUS_OF(c, id), &r, reterr);

    if (st == IL_OK && r.n == 0)
        st = campus_refuse(c, CAMPUS_E_USER_NOT_FOUND, reterr, "user %s not found", id);
    if (st == IL_OK)
        *ret = (struct campus_user){ .id         = campus_text(&r, 0, 0),
                                     .email      = campus_text(&r, 0, 1),
                                     .is         = campus_int(&r, 0, 2) != 0 ? CAMPUS_IS_ACTIVE : 0,
                                     .credits    = campus_int(&r, 0, 3),
                                     .xp         = campus_int(&r, 0, 4),
                                     .created_ms = campus_int(&r, 0, 5) };
    return st;
}

/* The first credits have a row of the ledger, as all others: its key is the id of the call. */
static il_status
create_user(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op     *op     = cookie;
    struct campus_call   *c      = op->c;
    const il_guard_column row[]  = { { "tenant", il_guard_text(c->tenant) },
                                     { "id", il_guard_text(c->id) },
                                     { "email", il_guard_text(op->in->email) },
                                     { "created_at", il_guard_int(c->now_ms) } };
    struct campus_payment first  = { .ledger = CAMPUS_CREDITS,
                                     .user   = c->id,
                                     .amount = op->in->credits,
                                     .type   = "OPENING_BALANCE",
                                     .key    = c->id };
    int                   is_new = 0;
    bool                  paid;

    il_status st =
        create(op, tx, "users", row, ARRAY_LEN(row), CAMPUS_E_USER_EXISTS, &is_new, reterr);
    if (st == IL_OK && is_new && op->in->credits > 0)
        st = campus_pay(c, tx, &first, &paid, reterr);
    return st == IL_OK ? campus_user_read(c, tx, c->id, op->out, reterr) : st;
}

il_status
campus_user_create(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    return campus_transact(&(struct campus_op){ c, in, out, NULL }, PIPELINE, "user_create", NULL,
                           create_user, reterr);
}

static il_status
get_user(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op *op = cookie;

    return campus_user_read(op->c, tx, op->in->user, op->out, reterr);
}

il_status
campus_user_get(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    return campus_transact_read_only(&(struct campus_op){ c, in, out, NULL }, PIPELINE, NULL,
                                     get_user, reterr);
}

/* ---- licenses -------------------------------------------------------------------------------- */

struct campus_license
campus_license_of(const struct campus_rows *r, size_t i)
{
    return (struct campus_license){ .id             = campus_text(r, i, 0),
                                    .user           = campus_text(r, i, 1),
                                    .specialization = campus_text(r, i, 2),
                                    .is     = campus_int(r, i, 3) != 0 ? CAMPUS_IS_ACTIVE : 0,
                                    .skills = campus_text(r, i, 4) };
}

static const struct app_statement license = APP_STATEMENT(license_get);

il_status
campus_license_read(struct campus_call *c, il_guard_tx *tx, const char *id,
                    struct campus_license *ret, il_error *reterr)
{
    struct campus_rows r;
    il_status          st = campus_read(c, tx, &license, CAMPUS_OF(c, id), &r, reterr);

    if (st == IL_OK && r.n == 0)
        st = campus_refuse(c, CAMPUS_E_LICENSE_NOT_FOUND, reterr, "license %s not found", id);
    if (st == IL_OK)
        *ret = campus_license_of(&r, 0);
    return st;
}

il_status
campus_license_lock(struct campus_call *c, il_guard_tx *tx, const char *id,
                    struct campus_license *ret, il_error *reterr)
{
    struct campus_rows r;
    il_status st = campus_lock_read(c, tx, CAMPUS_LICENSE(c, id), CAMPUS_E_LICENSE_NOT_FOUND,
                                    &license, CAMPUS_OF(c, id), &r, reterr);

    if (st == IL_OK)
        *ret = campus_license_of(&r, 0);
    return st;
}

/* The skills of a new license: a number is the baseline of its skill. NULL: no memory. */
static char *
first_skills(const json_t *values)
{
    json_t     *skills = json_object();
    const char *name   = NULL;
    json_t     *value  = NULL;
    char       *text   = NULL;
    bool        ok     = skills != NULL;

    json_object_foreach((json_t *)(uintptr_t)values, name, value) ok =
        ok && campus_skill_set(skills, name, campus_round(json_number_value(value), 1), NULL, 0);
    if (ok)
        text = json_dumps(skills, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(skills);
    return text;
}

static il_status
create_license(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op     *op    = cookie;
    struct campus_call   *c     = op->c;
    const il_guard_column row[] = {
        { "tenant", il_guard_text(c->tenant) },
        { "id", il_guard_text(c->id) },
        { "user_id", il_guard_text(op->in->user) },
        { "specialization_type", il_guard_text(specialization_of(op->in)) },
        { "is_active", il_guard_int(1) },
        { "football_skills", il_guard_json(op->own) },
        { "created_at", il_guard_int(c->now_ms) },
    };
    struct campus_user user;
    int                is_new = 0;

    il_status st = campus_user_read(c, tx, op->in->user, &user, reterr);
    if (st == IL_OK)
        st = create(op, tx, "user_licenses", row, ARRAY_LEN(row), CAMPUS_E_LICENSE_EXISTS, &is_new,
                    reterr);
    return st == IL_OK ? campus_license_read(c, tx, c->id, op->out, reterr) : st;
}

il_status
campus_license_create(struct campus_call *c, const struct campus_in *in, void *out,
                      il_error *reterr)
{
    json_t   *values = NULL;
    char     *skills = NULL;
    il_status st     = campus_parse(in->skills, "skills", &values, reterr);

    if (st == IL_OK)
        st = check_numbers(values, "skills", CAMPUS_LEVEL_MIN, CAMPUS_LEVEL_MAX, reterr);
    if (st == IL_OK && (skills = first_skills(values)) == NULL)
        st = campus_no_memory(reterr);
    if (st == IL_OK)
        st = campus_transact(&(struct campus_op){ c, in, out, skills }, PIPELINE, "license_create",
                             NULL, create_license, reterr);
    free(skills); /* NOLINT: jansson allocated it */
    json_decref(values);
    return st;
}

/* ---- tournaments ----------------------------------------------------------------------------- */

static const struct app_statement tournament = APP_STATEMENT(tournament_get);

struct campus_tournament
campus_tournament_of(const struct campus_rows *r, size_t i)
{
    return (struct campus_tournament){ .id             = campus_text(r, i, 0),
                                       .code           = campus_text(r, i, 1),
                                       .name           = campus_text(r, i, 2),
                                       .state          = campus_text(r, i, 3),
                                       .campus         = campus_text(r, i, 4),
                                       .specialization = campus_text(r, i, 5),
                                       .reward_config  = campus_text(r, i, 6),
                                       .max_players    = campus_int(r, i, 7),
                                       .cost           = campus_int(r, i, 8),
                                       .n_enrolled     = campus_int(r, i, 9),
                                       .completed_ms   = campus_int(r, i, 10),
                                       .created_ms     = campus_int(r, i, 11) };
}

il_status
campus_tournament_read(struct campus_call *c, il_guard_tx *tx, const char *id,
                       struct campus_tournament *ret, il_error *reterr)
{
    struct campus_rows r;
    il_status          st = campus_read(c, tx, &tournament, CAMPUS_OF(c, id), &r, reterr);

    if (st == IL_OK && r.n == 0)
        st = campus_refuse(c, CAMPUS_E_TOURNAMENT_NOT_FOUND, reterr, "tournament %s not found", id);
    if (st == IL_OK)
        *ret = campus_tournament_of(&r, 0);
    return st;
}

il_status
campus_tournament_lock(struct campus_call *c, il_guard_tx *tx, const char *id,
                       struct campus_tournament *ret, il_error *reterr)
{
    struct campus_rows r;
    il_status st = campus_lock_read(c, tx, CAMPUS_SEMESTER(c, id), CAMPUS_E_TOURNAMENT_NOT_FOUND,
                                    &tournament, CAMPUS_OF(c, id), &r, reterr);

    if (st == IL_OK)
        *ret = campus_tournament_of(&r, 0);
    return st;
}

static il_status
add_weights(struct campus_call *c, il_guard_tx *tx, const json_t *weights, il_error *reterr)
{
    static const struct app_statement add   = APP_STATEMENT(weight_add);
    const char                       *name  = NULL;
    json_t                           *value = NULL;
    il_status                         st    = IL_OK;

    json_object_foreach((json_t *)(uintptr_t)weights, name, value)
    {
        if (st == IL_OK)
            st = campus_run(tx, &add,
                            APP_VALUES(il_guard_text(c->tenant), il_guard_text(c->id),
                                       il_guard_text(name),
                                       il_guard_double(json_number_value(value))),
                            NULL, reterr);
    }
    return st;
}

static il_status
create_tournament(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op       *op    = cookie;
    struct campus_call     *c     = op->c;
    const struct campus_in *in    = op->in;
    const il_guard_column   row[] = {
          { "tenant", il_guard_text(c->tenant) },
          { "id", il_guard_text(c->id) },
          { "code", il_guard_text(in->code) },
          { "name", il_guard_text(in->name != NULL ? in->name : in->code) },
          { "tournament_status", il_guard_text(campus_state_name(CAMPUS_DRAFT)) },
          { "campus_id", il_guard_text(in->campus) },
          { "specialization_type", il_guard_text(specialization_of(in)) },
          { "max_players", il_guard_int(in->max_players) },
          { "enrollment_cost", il_guard_int(in->cost) },
          { "reward_config", il_guard_json(in->reward_config) },
          { "created_at", il_guard_int(c->now_ms) },
    };
    int is_new = 0;

    il_status st = create(op, tx, "semesters", row, ARRAY_LEN(row), CAMPUS_E_TOURNAMENT_EXISTS,
                          &is_new, reterr);
    if (st == IL_OK && is_new)
        st = add_weights(c, tx, op->own, reterr);
    return st == IL_OK ? campus_tournament_read(c, tx, c->id, op->out, reterr) : st;
}

il_status
campus_tournament_create(struct campus_call *c, const struct campus_in *in, void *out,
                         il_error *reterr)
{
    json_t     *weights = NULL, *rewards = NULL;
    const char *why = NULL;
    il_status   st  = campus_parse(in->weights, "weights", &weights, reterr);

    if (st == IL_OK)
        st = check_numbers(weights, "weights", 0, WEIGHT_MAX, reterr);
    if (st == IL_OK)
        st = campus_parse(in->reward_config, "reward_config", &rewards, reterr);
    if (st == IL_OK && !campus_reward_config_ok(rewards, &why))
        st = il__error_set(reterr, IL_INVAL, "field 'reward_config': %s", why);
    if (st == IL_OK)
        st = campus_transact(&(struct campus_op){ c, in, out, weights }, PIPELINE,
                             "tournament_create", NULL, create_tournament, reterr);
    json_decref(weights);
    json_decref(rewards);
    return st;
}

static il_status
get_tournament(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op *op = cookie;

    return campus_tournament_read(op->c, tx, op->in->tournament, op->out, reterr);
}

il_status
campus_tournament_get(struct campus_call *c, const struct campus_in *in, void *out,
                      il_error *reterr)
{
    return campus_transact_read_only(&(struct campus_op){ c, in, out, NULL }, PIPELINE, NULL,
                                     get_tournament, reterr);
}

/* ---- sessions -------------------------------------------------------------------------------- */

static il_status
show_session(struct campus_op *op, il_guard_tx *tx, const char *id, il_error *reterr)
{
    static const struct app_statement get = APP_STATEMENT(session_get);
    struct campus_rows                r;
    il_status st = campus_read(op->c, tx, &get, CAMPUS_OF(op->c, id), &r, reterr);

    if (st == IL_OK && r.n == 0)
        st = campus_refuse(op->c, CAMPUS_E_SESSION_NOT_FOUND, reterr, "session %s not found", id);
    if (st == IL_OK)
        *(struct campus_session *)op->out =
            (struct campus_session){ .id         = campus_text(&r, 0, 0),
                                     .tournament = campus_text(&r, 0, 1),
                                     .name       = campus_text(&r, 0, 2),
                                     .price      = campus_int(&r, 0, 3),
                                     .capacity   = campus_int(&r, 0, 4),
                                     .available  = campus_int(&r, 0, 5),
                                     .start_ms   = campus_int(&r, 0, 6),
                                     .end_ms     = campus_int(&r, 0, 7) };
    return st;
}

/* May this tournament, whose row is locked, have the session that was just inserted? */
static il_status
check_session(struct campus_call *c, il_guard_tx *tx, const struct campus_tournament *t,
              il_error *reterr)
{
    static const struct app_statement count = APP_STATEMENT(session_count);
    struct campus_rows                r;

    /* Race-free: cancelling holds the same lock, so it has either ended or not begun. */
    if (campus_state_is_closed(campus_state_named(t->state)))
        return campus_refuse(c, CAMPUS_E_TOURNAMENT_STATE, reterr,
                             "cannot add a session: tournament %s is %s", t->id, t->state);
    il_status st = campus_read(c, tx, &count, CAMPUS_OF(c, t->id), &r, reterr);
    if (st == IL_OK && campus_int(&r, 0, 0) > CAMPUS_SESSIONS_MAX)
        st = campus_refuse(c, CAMPUS_E_TOO_MANY_SESSIONS, reterr,
                           "tournament %s already has %d sessions, the maximum", t->id,
                           CAMPUS_SESSIONS_MAX);
    return st;
}

static il_status
create_session(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op        *op    = cookie;
    struct campus_call      *c     = op->c;
    const struct campus_in  *in    = op->in;
    const il_guard_column    row[] = { { "tenant", il_guard_text(c->tenant) },
                                       { "id", il_guard_text(c->id) },
                                       { "semester_id", il_guard_text(in->tournament) },
                                       { "name", il_guard_text(in->name) },
                                       { "price", il_guard_int(in->price) },
                                       { "capacity", il_guard_int(in->capacity) },
                                       { "available_spots", il_guard_int(in->capacity) },
                                       { "date_start", il_guard_int(in->start_ms) },
                                       { "date_end", il_guard_int(in->end_ms) },
                                       { "created_at", il_guard_int(c->now_ms) } };
    struct campus_tournament t;
    int                      is_new = 0;
    il_status                st     = IL_OK;

    if (in->tournament != NULL)
#ifdef IL_MUTANT_campus_session_unlocked
        st = campus_tournament_read(c, tx, in->tournament, &t, reterr);
#else
        st = campus_tournament_lock(c, tx, in->tournament, &t, reterr);
#endif
    if (st == IL_OK)
        st = create(op, tx, "sessions", row, ARRAY_LEN(row), CAMPUS_E_SESSION_NOT_FOUND, &is_new,
                    reterr);
    if (st == IL_OK && is_new && in->tournament != NULL)
        st = check_session(c, tx, &t, reterr);
    return st == IL_OK ? show_session(op, tx, c->id, reterr) : st;
}

il_status
campus_session_create(struct campus_call *c, const struct campus_in *in, void *out,
                      il_error *reterr)
{
    if (in->end_ms <= in->start_ms)
        return il__error_set(reterr, IL_INVAL, "field 'date_end': must be after date_start");
    return campus_transact(&(struct campus_op){ c, in, out, NULL }, PIPELINE, "session_create",
                           NULL, create_session, reterr);
}

static il_status
get_session(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op *op = cookie;

    return show_session(op, tx, op->in->session, reterr);
}

il_status
campus_session_get(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    return campus_transact_read_only(&(struct campus_op){ c, in, out, NULL }, PIPELINE, NULL,
                                     get_session, reterr);
}

/* ---- matches --------------------------------------------------------------------------------- */

static il_status
read_match(struct campus_op *op, il_guard_tx *tx, const char *id, struct campus_match *ret,
           il_error *reterr)
{
    static const struct app_statement get = APP_STATEMENT(match_get);
    struct campus_rows                r;
    il_status st = campus_read(op->c, tx, &get, CAMPUS_OF(op->c, id), &r, reterr);

    if (st == IL_OK && r.n == 0)
        st = campus_refuse(op->c, CAMPUS_E_MATCH_NOT_FOUND, reterr, "match %s not found", id);
    if (st == IL_OK)
        *ret = (struct campus_match){ .id         = campus_text(&r, 0, 0),
                                      .tournament = campus_text(&r, 0, 1),
                                      .home       = campus_text(&r, 0, 2),
                                      .away       = campus_text(&r, 0, 3),
                                      .home_goals = campus_int(&r, 0, 4),
                                      .away_goals = campus_int(&r, 0, 5),
                                      .is = campus_int(&r, 0, 6) != 0 ? CAMPUS_IS_FINISHED : 0 };
    return st;
}

/* Matches change only while the tournament is in progress, under its lock: finalization ranks what
 * is there. */
static il_status
require_in_progress(struct campus_call *c, const struct campus_tournament *t, il_error *reterr)
{
    if (campus_state_named(t->state) == CAMPUS_IN_PROGRESS)
        return IL_OK;
    return campus_refuse(c, CAMPUS_E_TOURNAMENT_STATE, reterr,
                         "matches of tournament %s cannot change: it is %s, not IN_PROGRESS", t->id,
                         t->state);
}

static il_status
create_match(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement look  = APP_STATEMENT(match_check);
    struct campus_op                 *op    = cookie;
    struct campus_call               *c     = op->c;
    const struct campus_in           *in    = op->in;
    const il_guard_column             row[] = {
                    { "tenant", il_guard_text(c->tenant) },
                    { "id", il_guard_text(c->id) },
                    { "semester_id", il_guard_text(in->tournament) },
                    { "home_user_id", il_guard_text(in->home) },
                    { "away_user_id", il_guard_text(in->away) },
                    { "home_goals", il_guard_int(in->home_goals) },
                    { "away_goals", il_guard_int(in->away_goals) },
                    { "finished", il_guard_int((in->has & CAMPUS_HAS_RESULT) != 0) },
                    { "created_at", il_guard_int(c->now_ms) },
    };
    struct campus_tournament t;
    struct campus_rows       r;
    int                      is_new = 0;

    il_status st = campus_tournament_lock(c, tx, in->tournament, &t, reterr);
    if (st == IL_OK)
        st = campus_read(c, tx, &look,
                         APP_VALUES(il_guard_text(c->tenant), il_guard_text(in->tournament),
                                    il_guard_text(in->home), il_guard_text(in->away),
                                    il_guard_text(c->id)),
                         &r, reterr);
    if (st != IL_OK)
        return st;
    if (campus_text(&r, 0, 1) != NULL) /* this call, repeated */
        return read_match(op, tx, c->id, op->out, reterr);
    st = require_in_progress(c, &t, reterr);
    if (st == IL_OK && campus_int(&r, 0, 0) != 2)
        st = campus_refuse(c, CAMPUS_E_NOT_ENROLLED, reterr,
                           "both players of a match must be enrolled in tournament %s",
                           in->tournament);
    if (st == IL_OK)
        st = create(op, tx, "tournament_matches", row, ARRAY_LEN(row), CAMPUS_E_MATCH_FINISHED,
                    &is_new, reterr);
    return st == IL_OK ? read_match(op, tx, c->id, op->out, reterr) : st;
}

il_status
campus_match_create(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    if (strcmp(in->home, in->away) == 0)
        return il__error_set(reterr, IL_INVAL, "field 'away': must differ from 'home'");
    return campus_transact(&(struct campus_op){ c, in, out, NULL }, PIPELINE, "match_create", NULL,
                           create_match, reterr);
}

static il_status
finish_match(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement finish = APP_STATEMENT(match_finish);
    struct campus_op                 *op     = cookie;
    struct campus_call               *c      = op->c;
    const struct campus_in           *in     = op->in;
    struct campus_match              *m      = op->out;
    struct campus_tournament          t;

    il_status st = read_match(op, tx, in->match, m, reterr);
    if (st == IL_OK && (m->is & CAMPUS_IS_FINISHED) == 0) {
        st = campus_tournament_lock(c, tx, m->tournament, &t, reterr);
        if (st == IL_OK)
            st = require_in_progress(c, &t, reterr);
        if (st == IL_OK)
            st = campus_run(tx, &finish,
                            APP_VALUES(il_guard_text(c->tenant), il_guard_text(in->match),
                                       il_guard_int(in->home_goals), il_guard_int(in->away_goals)),
                            NULL, reterr);
        if (st == IL_OK)
            st = read_match(op, tx, in->match, m, reterr);
    }
    if (st == IL_OK && (m->home_goals != in->home_goals || m->away_goals != in->away_goals))
        st = campus_refuse(c, CAMPUS_E_MATCH_FINISHED, reterr,
                           "match %s already has the result %" PRId64 ":%" PRId64, m->id,
                           m->home_goals, m->away_goals);
    return st;
}

il_status
campus_match_finish(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    return campus_transact(&(struct campus_op){ c, in, out, NULL }, PIPELINE, "match_finish", NULL,
                           finish_match, reterr);
}
