/*
 * reward.c: finalizing a tournament: rankings, then XP, credits, badges and skills of each player,
 * then REWARDS_DISTRIBUTED.
 *
 * One call at a time works on a tournament: it holds the lease tournament:{id}, and every
 * transaction shows its fence, so a call that has lost the lease cannot commit. Each player is one
 * transaction, and the participation in it says that the player has been paid: a call that comes
 * after a crash continues with those who have none. docs/pipelines/reward.md lists the races and
 * their tests; run those tests after any change here.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/campus/history.h"
#include "apps/campus/ledger.h"
#include "base/arena.h"
#include "base/error.h"

#include "apps/campus/campus_reward_sql.inc"

#define PIPELINE "reward"
#define LEASE_MS 10000 /* a dead call frees the tournament after this long */
#define WAIT_MS 20000  /* for another call */
#define KEY_BYTES (CAMPUS_ID_BYTES_MAX + sizeof "tournament:")

/* A player as the roster shows it, before anything of it is locked. */
struct player {
    const char *user, *license, *skills;
    int64_t     place, wins, matches, goals_for, goals_against;
    bool        is_paid;
    double      mean; /* of the baselines, if there is a license */
};

/* A finalization. */
struct final {
    struct campus_tournament t;
    il_guard_fence           fence;
    bool                     is_done; /* it was finalized before */
    json_t                  *rewards, *weights;
    char                    *weights_text;
    struct player           *players;
    size_t                   n;
    double                   sum; /* of the means of all players with a license */
    int64_t                  n_licensed;
    const struct player     *player; /* whose turn it is */
    int64_t                  n_paid;
};

static void
final_release(struct final *f)
{
    json_decref(f->rewards);
    json_decref(f->weights);
    free(f->weights_text); /* NOLINT: jansson allocated it */
}

#define OF(op) APP_VALUES(il_guard_text((op)->c->tenant), il_guard_text((op)->in->tournament))

/* ---- closing the tournament ------------------------------------------------------------------ */

il_status
campus_require_matches(struct campus_op *op, il_guard_tx *tx, struct campus_rows *ret,
                       il_error *reterr)
{
    static const struct app_statement look = APP_STATEMENT(matches_unfinished);

    il_status st = campus_read(op->c, tx, &look, OF(op), ret, reterr);
    if (st == IL_OK && campus_int(ret, 0, 0) > 0)
        st = campus_refuse(op->c, CAMPUS_E_MATCHES_UNFINISHED, reterr,
                           "cannot complete tournament %s: %" PRId64 " matches are not finished",
                           op->in->tournament, campus_int(ret, 0, 0));
    return st;
}

/* Rank the players, unless that is done or somebody has been paid by the ranks that exist. */
static il_status
rank_players(struct campus_op *op, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement clear = APP_STATEMENT(rankings_clear);
    static const struct app_statement make  = APP_STATEMENT(rankings_make);
    struct campus_rows                r;

    il_status st = campus_require_matches(op, tx, &r, reterr);
    if (st != IL_OK || campus_int(&r, 0, 1) == campus_int(&r, 0, 2) || campus_int(&r, 0, 3) > 0)
        return st;
    st = campus_run(tx, &clear, OF(op), NULL, reterr);
    return st == IL_OK ? campus_run(tx, &make, OF(op), NULL, reterr) : st;
}

/* The tournament is completed and ranked, or was finalized before. */
static il_status
close_tournament(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op   *op = cookie;
    struct campus_call *c  = op->c;
    struct final       *f  = op->own;

    il_status st = campus_tournament_lock(c, tx, op->in->tournament, &f->t, reterr);
    if (st != IL_OK)
        return st;
    enum campus_state state = campus_state_named(f->t.state);
    f->is_done              = state == CAMPUS_REWARDS_DISTRIBUTED || state == CAMPUS_ARCHIVED;
    if (f->is_done)
        return IL_OK;
    if (state != CAMPUS_IN_PROGRESS && state != CAMPUS_COMPLETED)
        return campus_refuse(c, CAMPUS_E_TOURNAMENT_STATE, reterr,
                             "cannot finalize tournament %s: it is %s", f->t.id, f->t.state);
    st = rank_players(op, tx, reterr);
    if (st == IL_OK && state == CAMPUS_IN_PROGRESS)
        st = campus_move(c, tx, f->t.id, CAMPUS_IN_PROGRESS, CAMPUS_COMPLETED,
                         campus_key(c, "completed", f->t.id, NULL), reterr);
    return st == IL_OK ? campus_tournament_read(c, tx, f->t.id, &f->t, reterr) : st;
}

static il_status
open_rewards(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement unpaid = APP_STATEMENT(unpaid);
    struct campus_op                 *op     = cookie;
    struct campus_call               *c      = op->c;
    struct final                     *f      = op->own;
    struct campus_rows                r;

    il_status st =
        campus_lock(c, tx, CAMPUS_SEMESTER(c, f->t.id), CAMPUS_E_TOURNAMENT_NOT_FOUND, reterr);
    if (st == IL_OK)
        st = campus_read(c, tx, &unpaid, OF(op), &r, reterr);
    if (st == IL_OK && campus_int(&r, 0, 0) > 0)
        return il__error_set(reterr, IL_CORRUPT, "tournament %s: %" PRId64 " players are not paid",
                             f->t.id, campus_int(&r, 0, 0));
    if (st == IL_OK)
        st = campus_move(c, tx, f->t.id, CAMPUS_COMPLETED, CAMPUS_REWARDS_DISTRIBUTED,
                         campus_key(c, "finalized", f->t.id, NULL), reterr);
    return st == IL_OK ? campus_tournament_read(c, tx, f->t.id, &f->t, reterr) : st;
}

/* ---- the roster ------------------------------------------------------------------------------ */

static il_status
read_weights(struct campus_op *op, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement text = APP_STATEMENT(weights);
    struct final                     *f    = op->own;
    struct campus_rows                r;
    bool                              ok = true;

    il_status st = campus_read(op->c, tx, &text, OF(op), &r, reterr);
    if (st != IL_OK)
        return st;
    json_decref(f->weights);
    free(f->weights_text); /* NOLINT */
    f->weights = json_object();
    for (size_t i = 0; i < r.n; i++)
        ok = json_object_set_new(f->weights, campus_text(&r, i, 0),
                                 json_real(campus_number(&r, i, 1))) == 0 &&
             ok;
    f->weights_text = json_dumps(f->weights, JSON_COMPACT | JSON_SORT_KEYS);
    return ok && f->weights_text != NULL ? IL_OK : campus_no_memory(reterr);
}

static il_status
mean_of(const char *text, double *ret, il_error *reterr)
{
    json_t   *skills = NULL;
    il_status st     = campus_parse(text, "football_skills", &skills, reterr);

    if (st == IL_OK)
        *ret = campus_skills_mean(skills);
    json_decref(skills);
    return st;
}

/* All players and the profiles of their opponents: one query, whatever their number. */
static il_status
read_roster(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement text = APP_STATEMENT(roster);
    struct campus_op                 *op   = cookie;
    struct final                     *f    = op->own;
    struct campus_rows                r;

    il_status st = campus_read(op->c, tx, &text, OF(op), &r, reterr);
    if (st == IL_OK)
        st = read_weights(op, tx, reterr);
    if (st != IL_OK)
        return st;
    f->players = il__arena_alloc(&op->c->mem, (r.n + 1) * sizeof *f->players);
    f->n       = r.n;
    f->sum = 0, f->n_licensed = 0;
    if (f->players == NULL)
        return campus_no_memory(reterr);
    for (size_t i = 0; i < r.n && st == IL_OK; i++) {
        struct player *p = &f->players[i];
        *p               = (struct player){ .user          = campus_text(&r, i, 0),
                                            .place         = campus_int(&r, i, 1),
                                            .wins          = campus_int(&r, i, 2),
                                            .matches       = campus_int(&r, i, 3),
                                            .goals_for     = campus_int(&r, i, 4),
                                            .goals_against = campus_int(&r, i, 5),
                                            .license       = campus_text(&r, i, 6),
                                            .skills        = campus_text(&r, i, 7),
                                            .is_paid       = campus_text(&r, i, 8) != NULL };
        if (p->license == NULL)
            continue;
        st = mean_of(p->skills, &p->mean, reterr);
        f->sum += p->mean;
        f->n_licensed++;
    }
    return st;
}

/* ---- one player ------------------------------------------------------------------------------ */

/* What the transaction of a player computes. */
struct payout {
    struct campus_past   past;
    struct campus_reward reward;
    json_t              *skills; /* NULL: no license */
    size_t               n_updated;
    double               delta;
};

static void
payout_release(struct payout *pay)
{
    json_decref(pay->skills);
}

/* Lock the license and compute its skills after this tournament. The profile of before is checked
 * again under the lock: what an assessment has changed since counts. */
static il_status
compute_skills(struct campus_op *op, il_guard_tx *tx, struct payout *pay, il_error *reterr)
{
    struct final                      *f     = op->own;
    const struct player               *p     = f->player;
    AUTO_HISTORY struct campus_history h     = { .n = 0 };
    struct campus_license              l     = { 0 };
    size_t                             index = 0;

    il_status st = campus_license_lock(op->c, tx, p->license, &l, reterr);
#ifdef IL_MUTANT_campus_profile_stale
    l.skills = p->skills;
#endif
#ifdef IL_MUTANT_campus_opponents_one_by_one
    struct campus_license other;
    for (size_t i = 0; i < f->n && st == IL_OK; i++)
        st = campus_license_read(op->c, tx, f->players[i].license, &other, reterr);
#endif
    if (st == IL_OK)
        st = campus_parse(l.skills, "football_skills", &pay->skills, reterr);
    if (st == IL_OK)
        st = campus_history_read(op->c, tx, p->user, &h, reterr);
    if (st != IL_OK)
        return st;
    pay->past.license            = p->license;
    pay->past.played.step.factor = campus_opponent_factor(f->sum - p->mean, f->n_licensed - 1,
                                                          campus_skills_mean(pay->skills));
    size_t i                     = campus_history_insert(&h, &pay->past);
    size_t n                     = campus_history_of(&h, p->license, i, &index);
    pay->delta                   = campus_skills_delta(pay->skills, h.played, index);
    return campus_skills_rebuild(pay->skills, h.played, n, &pay->n_updated)
               ? IL_OK
               : campus_no_memory(reterr);
}

static il_status
store_skills(struct campus_op *op, il_guard_tx *tx, const struct payout *pay, il_error *reterr)
{
    const struct final *f = op->own;
    il_status st          = campus_skills_store(op->c, tx, f->player->license, pay->skills, reterr);

    return st == IL_OK
               ? il_guard_tag(tx, "skills_updated", il_guard_int((int64_t)pay->n_updated), reterr)
               : st;
}

static il_status
add_participation(struct campus_op *op, il_guard_tx *tx, const struct payout *pay, int *ret_new,
                  il_error *reterr)
{
    static const char *const  unique[] = { "tenant", "user_id", "semester_id" };
    const struct final       *f        = op->own;
    const struct campus_step *s        = &pay->past.played.step;
    const il_guard_column     row[]    = {
               { "tenant", il_guard_text(op->c->tenant) },
               { "id", il_guard_text(pay->past.id) },
               { "user_id", il_guard_text(f->player->user) },
               { "semester_id", il_guard_text(f->t.id) },
               { "license_id", il_guard_text(f->player->license) },
               { "placement", il_guard_int(s->place) },
               { "skill_rating_delta",
          pay->skills != NULL ? il_guard_double(pay->delta) : il_guard_null() },
               { "xp_awarded", il_guard_int(pay->reward.xp) },
               { "credits_awarded", il_guard_int(pay->reward.credits) },
               { "achieved_at", il_guard_int(pay->past.achieved_ms) },
               { "players", il_guard_int(s->players) },
               { "skill_weights", il_guard_json(f->weights_text) },
               { "match_modifier", il_guard_double(s->modifier) },
               { "opponent_factor", il_guard_double(s->factor) },
    };

    return il_guard_insert_or_get(tx, "tournament_participations", row, ARRAY_LEN(row), unique,
                                  ARRAY_LEN(unique), ret_new, NULL, reterr);
}

static il_status
add_badge(struct campus_op *op, il_guard_tx *tx, enum campus_badge badge, il_error *reterr)
{
    static const char *const unique[] = { "tenant", "user_id", "semester_id", "badge_type" };
    const struct final      *f        = op->own;
    const char              *name     = campus_badge_name(badge);
    const char              *id       = campus_key(op->c, name, f->t.id, f->player->user);
    int                      is_new   = 0;

    if (id == NULL)
        return campus_no_memory(reterr);
#ifdef IL_MUTANT_campus_badge_unguarded
    char other[37]; /* the index is not unique, either: schema_*.sql */
    IGNORE(il_uuid(other) != IL_OK);
    id = other;
#endif
    const il_guard_column row[] = { { "tenant", il_guard_text(op->c->tenant) },
                                    { "id", il_guard_text(id) },
                                    { "user_id", il_guard_text(f->player->user) },
                                    { "semester_id", il_guard_text(f->t.id) },
                                    { "badge_type", il_guard_text(name) },
                                    { "created_at", il_guard_int(f->t.completed_ms) } };
    il_status st = il_guard_insert_or_get(tx, "tournament_badges", row, ARRAY_LEN(row), unique,
                                          ARRAY_LEN(unique), &is_new, NULL, reterr);
    if (st == IL_OK && !is_new)
        st = campus_count_race(op->c, tx, CAMPUS_DOUBLE_BADGE, id, reterr);
    return st;
}

/* The wins in a row that end with the i-th tournament. */
static int64_t
wins_in_row(const struct campus_history *h, size_t i)
{
    int64_t n = 0;

    for (size_t k = i + 1; k > 0 && h->items[k - 1].played.step.place == 1; k--)
        n++;
    return n;
}

/* The user's row is locked: a payment for another tournament waits, and then sees this
 * participation. */
static il_status
add_badges(struct campus_op *op, il_guard_tx *tx, const char *id, il_error *reterr)
{
    static const struct app_statement  text   = APP_STATEMENT(career);
    const struct final                *f      = op->own;
    AUTO_HISTORY struct campus_history h      = { .n = 0 };
    struct campus_career               career = { .place = f->player->place };
    struct campus_rows                 r;

    il_status st = campus_history_read(op->c, tx, f->player->user, &h, reterr);
    if (st == IL_OK)
        st = campus_read(op->c, tx, &text, CAMPUS_OF(op->c, f->player->user), &r, reterr);
    for (size_t i = 0; st == IL_OK && i < r.n; i++) {
        bool is_legend =
            strcmp(campus_text(&r, i, 0), campus_badge_name(CAMPUS_BADGE_TOURNAMENT_LEGEND)) == 0;
        career.is_legend  = career.is_legend || is_legend;
        career.is_veteran = career.is_veteran || !is_legend;
    }
    career.n_tournaments = (int64_t)h.n;
    for (size_t i = 0; i < h.n; i++) {
        if (strcmp(h.items[i].id, id) == 0)
            career.n_wins_in_row = wins_in_row(&h, i);
    }
    unsigned set = campus_badges(&career);
    for (unsigned b = 0; b < CAMPUS_BADGE_COUNT && st == IL_OK; b++) {
        if ((set & 1U << b) != 0)
            st = add_badge(op, tx, b, reterr);
    }
    return st;
}

/* The rows of the ledgers first, then the balances; this locks the user's row. */
static il_status
pay_rewards(struct campus_op *op, il_guard_tx *tx, const struct payout *pay, il_error *reterr)
{
    const struct final   *f    = op->own;
    struct campus_call   *c    = op->c;
    struct campus_payment p[2] = {
        { .ledger = CAMPUS_XP,
          .amount = pay->reward.xp,
          .key    = campus_key(c, "reward_xp", f->t.id, f->player->user) },
        { .ledger = CAMPUS_CREDITS,
          .amount = pay->reward.credits,
          .key    = campus_key(c, "tournament_reward", f->t.id, f->player->user) },
    };
    il_status st = IL_OK;

    for (size_t i = 0; i < ARRAY_LEN(p) && st == IL_OK; i++) {
        bool is_new     = false;
        p[i].user       = f->player->user;
        p[i].type       = "TOURNAMENT_REWARD";
        p[i].tournament = f->t.id;
        st              = campus_pay(c, tx, &p[i], &is_new, reterr);
        if (st == IL_OK && !is_new)
            st = campus_count_race(c, tx, CAMPUS_DOUBLE_GRANT, p[i].key, reterr);
    }
    return st;
}

static void
prepare(struct campus_op *op, struct payout *pay)
{
    const struct final  *f = op->own;
    const struct player *p = f->player;
    double m = campus_match_modifier(p->matches, p->wins, p->goals_for, p->goals_against);

    *pay = (struct payout){
        .reward = campus_reward(f->rewards, p->place),
        .past   = { .id          = campus_key(op->c, f->t.id, p->user, NULL),
                    .achieved_ms = f->t.completed_ms,
                    .played      = { .step    = { .place    = p->place,
                                                  .players  = (int64_t)f->n,
                                                  .weight   = CAMPUS_WEIGHT,
                                                  .modifier = m,
                                                  .factor   = 1 },
                                     .weights = f->weights } },
    };
}

/* License, Participation, User: in the order of their ranks, all or nothing. */
static il_status
pay_player(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op                  *op      = cookie;
    struct campus_call                *c       = op->c;
    struct final                      *f       = op->own;
    const char                        *license = f->player->license;
    AUTO(payout_release) struct payout pay     = { .skills = NULL };
    int                                is_new  = 0;

    prepare(op, &pay);
    if (pay.past.id == NULL)
        return campus_no_memory(reterr);
    il_status st = il_guard_tag(tx, "user_id", il_guard_text(f->player->user), reterr);
    if (st == IL_OK && license != NULL)
        st = il_guard_tag(tx, "license_id", il_guard_text(license), reterr);
    if (st == IL_OK && license != NULL)
        st = compute_skills(op, tx, &pay, reterr);
    if (st == IL_OK)
        st = add_participation(op, tx, &pay, &is_new, reterr);
#ifdef IL_MUTANT_campus_participation_ignored
    is_new = 1;
#endif
    if (st == IL_OK && !is_new) /* paid before: that transaction did all of this */
        return campus_count_race(c, tx, CAMPUS_DOUBLE_PARTICIPATION, pay.past.id, reterr);
    if (st == IL_OK && license != NULL)
        st = store_skills(op, tx, &pay, reterr);
    if (st == IL_OK)
        st = pay_rewards(op, tx, &pay, reterr);
    return st == IL_OK ? add_badges(op, tx, pay.past.id, reterr) : st;
}

/* ---- finalize -------------------------------------------------------------------------------- */

static il_status
pay_all(struct campus_op *op, il_error *reterr)
{
    struct final *f  = op->own;
    il_status     st = IL_OK;

    if (f->t.reward_config != NULL)
        st = campus_parse(f->t.reward_config, "reward_config", &f->rewards, reterr);
    if (st == IL_OK)
        st = campus_transact_read_only(op, PIPELINE, &f->fence, read_roster, reterr);
    for (size_t i = 0; st == IL_OK && i < f->n; i++) {
        f->player = &f->players[i];
        if (f->player->is_paid)
            continue;
        st = campus_transact(op, PIPELINE, "pay_player", &f->fence, pay_player, reterr);
        f->n_paid += st == IL_OK;
    }
    if (st == IL_OK)
        st = campus_transact(op, PIPELINE, "open_rewards", &f->fence, open_rewards, reterr);
    return st;
}

static il_status
read_results(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement text = APP_STATEMENT(results);
    struct campus_op                 *op   = cookie;
    const struct final               *f    = op->own;
    struct campus_finalized          *out  = op->out;
    struct campus_rows                r;

    il_status st = campus_read(op->c, tx, &text, OF(op), &r, reterr);
    if (st != IL_OK)
        return st;
    *out       = (struct campus_finalized){ .tournament = f->t.id,
                                            .state      = f->t.state,
                                            .is         = f->is_done ? CAMPUS_IS_REPEATED : 0,
                                            .n_players  = (int64_t)r.n,
                                            .n_paid     = f->n_paid };
    out->items = il__arena_alloc(&op->c->mem, (r.n + 1) * sizeof *out->items);
    for (size_t i = 0; out->items != NULL && i < r.n; i++)
        out->items[out->n++] = (struct campus_result){ .user    = campus_text(&r, i, 0),
                                                       .place   = campus_int(&r, i, 1),
                                                       .xp      = campus_int(&r, i, 2),
                                                       .credits = campus_int(&r, i, 3) };
    return out->items != NULL ? IL_OK : campus_no_memory(reterr);
}

static il_status
finalize_under_lease(struct campus_call *c, const struct campus_in *in, void *out,
                     const il_guard_fence *fence, il_error *reterr)
{
    AUTO(final_release) struct final f  = { .fence = *fence };
    struct campus_op                 op = { c, in, out, &f };

    il_status st = campus_transact(&op, PIPELINE, "close", &f.fence, close_tournament, reterr);
    if (st == IL_OK && !f.is_done)
        st = pay_all(&op, reterr);
    return st == IL_OK ? campus_transact_read_only(&op, PIPELINE, &f.fence, read_results, reterr)
                       : st;
}

il_status
campus_finalize(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    il_run_opts o   = IL_RUN_OPTS_INIT;
    il_run     *run = NULL;
    char        key[KEY_BYTES];

    CHECK(c->store != NULL);
    if (strlen(in->tournament) > CAMPUS_ID_BYTES_MAX)
        return campus_refuse(c, CAMPUS_E_TOURNAMENT_NOT_FOUND, reterr, "tournament %.64s not found",
                             in->tournament);
    (void)snprintf(key, sizeof key, "tournament:%s", in->tournament);
    o.policy     = IL_POLICY_QUEUE;
    o.tenant     = c->tenant;
    o.ttl_ms     = LEASE_MS;
    o.wait_ms    = MIN(campus_left_ms(c, WAIT_MS), WAIT_MS);
    o.trigger    = "finalize";
    o.place      = IL_GUARD_PLACE;
    il_status st = il_run_start(c->store, key, &o, &run, NULL, reterr);
    if (st == IL_HELD || st == IL_DUPLICATE || st == IL_LIMIT || st == IL_TIMEOUT)
        return campus_refuse(c, CAMPUS_E_TOURNAMENT_BUSY, reterr,
                             "another call is finalizing tournament %s", in->tournament);
    if (st != IL_OK)
        return st;
    const il_guard_fence fence = {
        .h = c->store, .tenant = c->tenant, .key = key, .fence = il_lease_fence(il_run_lease(run))
    };
    st = finalize_under_lease(c, in, out, &fence, reterr);
    /* What was done is done; a lease that cannot be ended expires. */
    IGNORE(il_run_finish(run, st == IL_OK ? IL_RUN_COMPLETED : IL_RUN_FAILED,
                         st != IL_OK && reterr != NULL ? reterr->message : NULL, NULL) != IL_OK);
    il_run_free(run);
    return st;
}
