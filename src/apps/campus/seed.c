/*
 * seed.c: the data set of `campus seed`; see seed.h.
 */
#include "apps/campus/seed.h"

#include <stdio.h>

#include "apps/campus/campus_tx.h"
#include "apps/campus/seed_debt.h"
#include "apps/campus/skills_json.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define HOUR_MS (INT64_C(3600) * 1000)
#define CREDITS 100000 /* of each user */
#define CAMPUSES 3
#define FIRST_PLAYERS 16 /* of the tournament that is in progress */
#define LOW_LICENSES 2   /* with low levels, after those of plain numbers */

const char *const campus_seed_skills[CAMPUS_SEED_SKILLS] = {
    "acceleration", "aggression",    "agility",      "anticipation", "balance",   "ball_control",
    "composure",    "concentration", "corners",      "crossing",     "decisions", "dribbling",
    "finishing",    "first_touch",   "free_kicks",   "heading",      "jumping",   "leadership",
    "long_shots",   "marking",       "off_the_ball", "passing",      "penalties", "positioning",
    "sprint_speed", "stamina",       "tackling",     "vision",       "work_rate",
};

const char *const campus_debt_licenses[CAMPUS_DEBT_LICENSES + 1] = {
    "seed-license-001", "seed-license-002", "seed-license-003",
    "seed-license-004", "seed-license-005", "seed-license-006",
    "seed-license-007", "seed-license-008", NULL,
};
const char *const campus_debt_levels[CAMPUS_DEBT_LEVELS + 1] = {
    "seed-license-009/acceleration",
    "seed-license-009/aggression",
    "seed-license-009/agility",
    "seed-license-009/anticipation",
    "seed-license-009/balance",
    "seed-license-009/ball_control",
    "seed-license-009/composure",
    "seed-license-010/acceleration",
    "seed-license-010/aggression",
    "seed-license-010/agility",
    "seed-license-010/anticipation",
    "seed-license-010/balance",
    "seed-license-010/ball_control",
    "seed-license-010/composure",
    NULL,
};
#define LOW_SKILLS (CAMPUS_DEBT_LEVELS / LOW_LICENSES)

uint64_t
campus_random(uint64_t *state, uint64_t below)
{
    /* xorshift64*: reproducible everywhere */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * UINT64_C(0x2545F4914F6CDD1D) >> 33) % below;
}

void
campus_seed_id(char out[CAMPUS_ID_BYTES_MAX + 1], const char *what, int64_t i)
{
    (void)snprintf(out, CAMPUS_ID_BYTES_MAX + 1, "seed-%s-%03lld", what, (long long)i);
}

/* The run of a seed. */
struct seeding {
    struct campus_call       *c;
    const struct campus_seed *s;
    uint64_t                  random;
    uint64_t                  done, total;
    char                      id[CAMPUS_ID_BYTES_MAX + 1];
};

/* An operation whose id is id. */
static il_status
apply(struct seeding *g, campus_fn *fn, const char *id, const struct campus_in *in, void *out,
      il_error *reterr)
{
    g->c->id   = id;
    g->c->code = CAMPUS_OK; /* of the operation before */
    return fn(g->c, in, out, reterr);
}

/* The result of steps that ended with `st`: success if somebody has changed the tournament or its
 * players so that the last step is refused. What remains of them is left out. */
static il_status
unless_moved(struct seeding *g, il_status st)
{
    switch (g->c->code) {
    case CAMPUS_E_TOURNAMENT_STATE:
    case CAMPUS_E_TOURNAMENT_NOT_OPEN:
    case CAMPUS_E_TOURNAMENT_FULL:
    case CAMPUS_E_TOO_MANY_SESSIONS:
    case CAMPUS_E_ALREADY_ENROLLED:
    case CAMPUS_E_NOT_ENROLLED:
    case CAMPUS_E_INSUFFICIENT_CREDITS:
        g->c->code = CAMPUS_OK;
        return IL_OK;
    default:
        return st;
    }
}

static void
tell(struct seeding *g)
{
    g->done++;
    if (g->s->progress != NULL)
        g->s->progress(g->s->cookie, g->done, g->total);
}

/* ---- users and licenses ---------------------------------------------------------------------- */

static json_t *
make_skills(struct seeding *g, int64_t i)
{
    json_t *skills = json_object();
    bool    ok     = skills != NULL;

    for (size_t k = 0; k < CAMPUS_SEED_SKILLS && ok; k++) {
        double baseline = 45 + (double)campus_random(&g->random, 400) / 10;
        if (i > CAMPUS_DEBT_LICENSES && i <= CAMPUS_DEBT_LICENSES + LOW_LICENSES && k < LOW_SKILLS)
            baseline = 20 + (double)campus_random(&g->random, 190) / 10;
        ok = i <= CAMPUS_DEBT_LICENSES
                 ? json_object_set_new(skills, campus_seed_skills[k], json_real(baseline)) == 0
                 : campus_skill_set(skills, campus_seed_skills[k], baseline, NULL, 0);
    }
    if (ok)
        return skills;
    json_decref(skills);
    return NULL;
}

struct new_license {
    const char *id, *user;
    char       *skills;
};

/* Not the operation, which would refuse the debt. */
static il_status
add_license(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const char *const  unique[] = { "tenant", "id" };
    struct campus_op         *op       = cookie;
    const struct new_license *l        = op->own;
    const il_guard_column     row[]    = {
               { "tenant", il_guard_text(op->c->tenant) },
               { "id", il_guard_text(l->id) },
               { "user_id", il_guard_text(l->user) },
               { "specialization_type", il_guard_text(CAMPUS_SPECIALIZATION) },
               { "is_active", il_guard_int(1) },
               { "football_skills", il_guard_json(l->skills) },
               { "created_at", il_guard_int(op->c->now_ms) },
    };

    return il_guard_insert_or_get(tx, "user_licenses", row, ARRAY_LEN(row), unique,
                                  ARRAY_LEN(unique), NULL, NULL, reterr);
}

static il_status
seed_user(struct seeding *g, int64_t i, il_error *reterr)
{
    char               email[CAMPUS_ID_BYTES_MAX], license[CAMPUS_ID_BYTES_MAX + 1];
    struct campus_in   in = { .email = email, .credits = CREDITS };
    struct campus_user out;

    (void)snprintf(email, sizeof email, "player%03lld@example.com", (long long)i);
    campus_seed_id(g->id, "user", i);
    il_status st = apply(g, campus_user_create, g->id, &in, &out, reterr);
    if (st != IL_OK)
        return st;
    campus_seed_id(license, "license", i);
    json_t            *skills = make_skills(g, i);
    struct new_license l      = { .id = license, .user = g->id };
    if (skills != NULL)
        l.skills = json_dumps(skills, JSON_COMPACT);
    st = l.skills != NULL ? campus_transact(&(struct campus_op){ g->c, &in, NULL, &l }, "campus",
                                            "seed", NULL, add_license, reterr)
                          : campus_no_memory(reterr);
    free(l.skills); /* NOLINT: jansson allocated it */
    json_decref(skills);
    tell(g);
    return st;
}

/* ---- tournaments ----------------------------------------------------------------------------- */

static il_status
seed_state(struct seeding *g, const char *tournament, enum campus_state state, il_error *reterr)
{
    char                     id[2 * CAMPUS_ID_BYTES_MAX];
    struct campus_in         in = { .tournament = tournament, .state = campus_state_name(state) };
    struct campus_tournament out;

    (void)snprintf(id, sizeof id, "%s-%s", tournament, in.state);
    return apply(g, campus_transition, id, &in, &out, reterr);
}

/* Players and matches of a tournament that is in progress: everybody plays against the next. */
static il_status
seed_matches(struct seeding *g, const char *tournament, il_error *reterr)
{
    char                id[2 * CAMPUS_ID_BYTES_MAX];
    char                home[CAMPUS_ID_BYTES_MAX + 1], away[CAMPUS_ID_BYTES_MAX + 1];
    struct campus_match out;
    il_status           st = IL_OK;

    for (int64_t i = 1; i <= FIRST_PLAYERS && st == IL_OK; i++) {
        campus_seed_id(home, "user", i);
        campus_seed_id(away, "user", i % FIRST_PLAYERS + 1);
        (void)snprintf(id, sizeof id, "%s-match-%02lld", tournament, (long long)i);
        struct campus_in in = { .tournament = tournament,
                                .home       = home,
                                .away       = away,
                                .home_goals = (int64_t)campus_random(&g->random, 5),
                                .away_goals = (int64_t)campus_random(&g->random, 5),
                                .has        = CAMPUS_HAS_RESULT };
        st                  = apply(g, campus_match_create, id, &in, &out, reterr);
    }
    return st;
}

static il_status
seed_players(struct seeding *g, const char *tournament, il_error *reterr)
{
    char                     id[2 * CAMPUS_ID_BYTES_MAX], user[CAMPUS_ID_BYTES_MAX + 1];
    struct campus_enrollment out;
    il_status                st = IL_OK;

    for (int64_t i = 1; i <= FIRST_PLAYERS && st == IL_OK; i++) {
        struct campus_in in = { .tournament = tournament, .user = user };
        campus_seed_id(user, "user", i);
        (void)snprintf(id, sizeof id, "%s-player-%02lld", tournament, (long long)i);
        st = apply(g, campus_enroll, id, &in, &out, reterr);
    }
    return st;
}

/* Open tournament i; the first gets players and matches, too. */
static il_status
seed_progress(struct seeding *g, int64_t i, const char *id, enum campus_state state,
              il_error *reterr)
{
    static const enum campus_state path[] = { CAMPUS_ENROLLMENT_CLOSED, CAMPUS_CHECK_IN_OPEN,
                                              CAMPUS_IN_PROGRESS };
    il_status                      st     = IL_OK;

    /* A tournament in any other state was opened before, or moved by somebody: it could be closed,
     * and is not reopened. */
    if (state == CAMPUS_DRAFT || state == CAMPUS_ENROLLMENT_OPEN)
        st = seed_state(g, id, CAMPUS_ENROLLMENT_OPEN, reterr);
    if (i > 1)
        return st;
    if (st == IL_OK)
        st = seed_players(g, id, reterr);
    for (size_t k = 0; k < ARRAY_LEN(path) && st == IL_OK; k++)
        st = seed_state(g, id, path[k], reterr);
    return st == IL_OK ? seed_matches(g, id, reterr) : st;
}

/* The first is in progress, the last a draft, the others are open, unless somebody has moved them.
 * A step that was done before finds that. */
static il_status
seed_tournament(struct seeding *g, int64_t i, il_error *reterr)
{
    char                     code[32], campus[32], id[CAMPUS_ID_BYTES_MAX + 1];
    struct campus_in         in = { .code        = code,
                                    .campus      = campus,
                                    .max_players = 32,
                                    .cost        = 50,
                                    .weights     = "{\"passing\": 1.5, \"finishing\": 1.5}" };
    struct campus_tournament out;

    (void)snprintf(code, sizeof code, "SEED-%03lld", (long long)i);
    (void)snprintf(campus, sizeof campus, "campus-%lld", (long long)(i % CAMPUSES + 1));
    campus_seed_id(id, "tournament", i);
    il_status st = apply(g, campus_tournament_create, id, &in, &out, reterr);
    tell(g);
    if (st != IL_OK || i == g->s->n_tournaments)
        return st;
    return unless_moved(g, seed_progress(g, i, id, campus_state_named(out.state), reterr));
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* Two hours long, one every hour: each overlaps the next. A session of a tournament that somebody
 * has cancelled is left out. */
static il_status
seed_session(struct seeding *g, int64_t i, il_error *reterr)
{
    int64_t               today = g->c->now_ms / DAY_MS * DAY_MS;
    char                  name[64], id[CAMPUS_ID_BYTES_MAX + 1], of[CAMPUS_ID_BYTES_MAX + 1];
    struct campus_in      in = { .name       = name,
                                 .tournament = i % 3 == 0 && g->s->n_tournaments > 2 ? of : NULL,
                                 .price      = i % 2 == 0 ? 20 : 0,
                                 .capacity   = 4 + (int64_t)campus_random(&g->random, 8),
                                 .start_ms   = today + 7 * DAY_MS + i * HOUR_MS };
    struct campus_session out;

    in.end_ms = in.start_ms + 2 * HOUR_MS;
    (void)snprintf(name, sizeof name, "Training %lld", (long long)i);
    campus_seed_id(of, "tournament", 2);
    campus_seed_id(id, "session", i);
    tell(g);
    return unless_moved(g, apply(g, campus_session_create, id, &in, &out, reterr));
}

il_status
campus_seed(struct campus_call *c, const struct campus_seed *s, il_error *reterr)
{
    struct seeding g  = { .c      = c,
                          .s      = s,
                          .random = s->seed * 2 + 1,
                          .total  = (uint64_t)(s->n_users + s->n_tournaments + s->n_sessions) };
    il_status      st = IL_OK;

    CHECK(s->n_users >= CAMPUS_SEED_USERS_MIN);
    c->now_ms = il__clock_wall_ms();
    for (int64_t i = 1; i <= s->n_users && st == IL_OK; i++)
        st = seed_user(&g, i, reterr);
    for (int64_t i = 1; i <= s->n_tournaments && st == IL_OK; i++)
        st = seed_tournament(&g, i, reterr);
    for (int64_t i = 1; i <= s->n_sessions && st == IL_OK; i++)
        st = seed_session(&g, i, reterr);
    return st;
}
