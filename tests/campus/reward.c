/*
 * reward.c: finalizing tournaments: rankings, rewards, badges; twice, at once, and killed after
 * every commit.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "campus/field.h"
#include "harness/proc.h"

#define N 8
#define SKILLS "{\"passing\": 60, \"vision\": 55}"

static void
match(struct t_field *f, const char *tournament, const char *home, const char *away, int64_t goals,
      int64_t against)
{
    T_DO(f, campus_match_create, NULL, NULL, .tournament = tournament, .home = home, .away = away,
         .home_goals = goals, .away_goals = against, .has = CAMPUS_HAS_RESULT);
}

/* A tournament of users 1 .. n that is in progress. */
static void
play(struct t_field *f, const char *tournament, unsigned n, int64_t cost)
{
    t_tournament(f, tournament, n, cost, CAMPUS_ENROLLMENT_OPEN);
    t_enroll(f, tournament, 1, n);
    t_move(f, tournament, CAMPUS_ENROLLMENT_CLOSED);
    t_move(f, tournament, CAMPUS_CHECK_IN_OPEN);
    t_move(f, tournament, CAMPUS_IN_PROGRESS);
}

static int64_t
badges(struct t_field *f, const char *user, const char *type)
{
    char sql[256];

    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM tournament_badges WHERE user_id = '%s' AND badge_type = "
                   "'%s'",
                   user, type);
    return t_count(f, sql);
}

/* Each of n players has one participation, one XP row and one credit row of every tournament. */
static void
expect_paid_once(struct t_field *f, const char *tournament, unsigned n)
{
    static const char *const tables[] = { "tournament_participations", "xp_transactions",
                                          "credit_transactions" };
    char                     sql[256];

    for (unsigned i = 0; i < ARRAY_LEN(tables); i++) {
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(DISTINCT user_id) * 1000 + count(*) FROM %s WHERE semester_id "
                       "= '%s' %s",
                       tables[i], tournament, i > 0 ? "AND type = 'TOURNAMENT_REWARD'" : "");
        T_EQ(t_count(f, sql), n * 1000 + n);
    }
}

/* ---- alone ----------------------------------------------------------------------------------- */

C_TEST(rankings_then_rewards)
{
    struct campus_finalized d;

    t_users(f, 5, 0, SKILLS);
    play(f, "t", 5, 0);
    match(f, "t", "u1", "u2", 1, 0); /* u1 3 points; u2 0 */
    match(f, "t", "u3", "u4", 2, 2); /* 1 point each, as u5 and u2 below */
    match(f, "t", "u5", "u2", 1, 1);
    T_DO(f, campus_finalize, NULL, &d, .tournament = "t");
    T_STREQ(d.state, "REWARDS_DISTRIBUTED");
    T_EQ(d.n_players, 5);
    T_EQ(d.n_paid, 5);
    T_STREQ(d.items[0].user, "u1");
    T_STREQ(d.items[1].user, "u3"); /* goals, then the id */
    T_STREQ(d.items[2].user, "u4");
    T_STREQ(d.items[3].user, "u5"); /* fewer goals */
    T_STREQ(d.items[4].user, "u2"); /* goal difference */
    T_EQ(d.items[0].xp, 500);
    T_EQ(d.items[2].credits, 25);
    T_EQ(d.items[4].xp, 50);
    T_EQ(t_credits(f, "u1"), 100);
    T_EQ(t_count(f, "SELECT xp_balance FROM users WHERE id = 'u3'"), 300);
    T_EQ(badges(f, "u1", "CHAMPION"), 1);
    T_EQ(badges(f, "u3", "RUNNER_UP"), 1);
    T_EQ(badges(f, "u4", "THIRD_PLACE"), 1);
    T_EQ(badges(f, "u4", "PODIUM_FINISH"), 1);
    T_EQ(badges(f, "u5", "PODIUM_FINISH"), 0);
    T_EQ(badges(f, "u5", "FIRST_TOURNAMENT"), 1);
    T_DO(f, campus_finalize, NULL, &d, .tournament = "t"); /* the same answer */
    T_EQ(d.is, CAMPUS_IS_REPEATED);
    T_EQ(d.n_paid, 0);
    T_STREQ(d.items[4].user, "u2");
    expect_paid_once(f, "t", 5);
    t_move(f, "t", CAMPUS_ARCHIVED);
    T_DO(f, campus_finalize, NULL, &d, .tournament = "t");
    T_EQ(d.n_players, 5);
    t_verify(f);
}

C_TEST(what_cannot_be_finalized)
{
    struct campus_match m;

    t_users(f, 2, 0, NULL);
    t_tournament(f, "open", 2, 0, CAMPUS_ENROLLMENT_OPEN);
    T_EQ(T_CALL(f, campus_finalize, NULL, NULL, .tournament = "open"), CAMPUS_E_TOURNAMENT_STATE);
    T_EQ(T_CALL(f, campus_finalize, NULL, NULL, .tournament = "x"), CAMPUS_E_TOURNAMENT_NOT_FOUND);
    play(f, "t", 2, 0);
    T_DO(f, campus_match_create, "m", &m, .tournament = "t", .home = "u1", .away = "u2");
    T_EQ(T_CALL(f, campus_finalize, NULL, NULL, .tournament = "t"), CAMPUS_E_MATCHES_UNFINISHED);
    T_HAS(f->err.message, "1 matches");
    /* COMPLETED would be a dead end: no match can be finished there, and nobody be paid. */
    T_EQ(T_CALL(f, campus_transition, NULL, NULL, .tournament = "t", .state = "COMPLETED"),
         CAMPUS_E_MATCHES_UNFINISHED);
    T_DO(f, campus_match_finish, NULL, &m, .match = "m", .home_goals = 2, .away_goals = 1);
    T_DO(f, campus_match_finish, NULL, &m, .match = "m", .home_goals = 2, .away_goals = 1);
    T_EQ(T_CALL(f, campus_match_finish, NULL, &m, .match = "m", .home_goals = 3),
         CAMPUS_E_MATCH_FINISHED);
    T_DO(f, campus_finalize, NULL, NULL, .tournament = "t");
    T_DO(f, campus_match_create, "m", &m, .tournament = "t", .home = "u1", .away = "u2");
    T_STREQ(m.id, "m"); /* repeated: found, though nothing can be added any more */
    T_EQ(T_CALL(f, campus_match_create, NULL, &m, .tournament = "t", .home = "u1", .away = "u2"),
         CAMPUS_E_TOURNAMENT_STATE);
    t_verify(f);
}

C_TEST(a_config_overrides_the_policy)
{
    t_users(f, 2, 0, NULL);
    T_DO(f, campus_tournament_create, "t", NULL, .code = "t", .campus = "n", .max_players = 2,
         .reward_config = "{\"1\": {\"xp\": 7, \"credits\": 3}, \"2\": {\"xp\": 0, \"credits\": "
                          "0}}");
    t_move(f, "t", CAMPUS_ENROLLMENT_OPEN);
    t_enroll(f, "t", 1, 2);
    for (unsigned i = CAMPUS_ENROLLMENT_CLOSED; i <= CAMPUS_COMPLETED; i++)
        t_move(f, "t", i);
    T_DO(f, campus_finalize, NULL, NULL, .tournament = "t"); /* from COMPLETED */
    T_EQ(t_count(f, "SELECT xp_balance FROM users WHERE id = 'u1'"), 7);
    T_EQ(t_credits(f, "u1"), 3);
    T_EQ(t_count(f, "SELECT xp_balance FROM users WHERE id = 'u2'"), 0);
    expect_paid_once(f, "t", 2);
    t_verify(f);
}

/* u1 wins ten tournaments in a row. */
C_TEST(a_career_of_badges)
{
    t_users(f, 2, 0, SKILLS);
    for (unsigned i = 1; i <= 10; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t%02u", i);
        play(f, id, 2, 0);
        match(f, id, "u1", "u2", 1, 0);
        T_DO(f, campus_finalize, NULL, NULL, .tournament = id);
        T_EQ(badges(f, "u1", "TRIPLE_CROWN"), i / 3);
        T_EQ(badges(f, "u1", "TOURNAMENT_VETERAN"), i >= 5);
        T_EQ(badges(f, "u2", "TOURNAMENT_LEGEND"), i >= 10);
    }
    T_EQ(badges(f, "u2", "TRIPLE_CROWN"), 0);
    T_EQ(badges(f, "u2", "TOURNAMENT_PARTICIPANT"), 9);
    T_EQ(badges(f, "u1", "CHAMPION"), 10);
    t_verify(f);
}

/* ---- twice ----------------------------------------------------------------------------------- */

C_TEST(finalizing_at_once_pays_once)
{
    static struct t_task tasks[N];

    t_users(f, 6, 0, SKILLS);
    play(f, "t", 6, 0);
    t_n_times(f, tasks, N, campus_finalize, &(struct campus_in){ .tournament = "t" });
    T_EQ(t_with_code(tasks, N, CAMPUS_OK), N);
    expect_paid_once(f, "t", 6);
    T_EQ(t_count(f, "SELECT count(*) FROM tournament_badges WHERE badge_type = 'CHAMPION'"), 1);
    t_verify(f);
}

/* Two tournaments of the same players: one finalization each, at once. */
C_TEST(tournaments_of_the_same_players_at_once)
{
    static struct t_task tasks[4];

    t_users(f, 6, 0, SKILLS);
    for (unsigned i = 0; i < ARRAY_LEN(tasks); i++) {
        tasks[i] = (struct t_task){ .fn = campus_finalize };
        (void)snprintf(tasks[i].texts[0], sizeof tasks[i].texts[0], "t%u", i);
        play(f, tasks[i].texts[0], 6, 0);
        tasks[i].in = (struct campus_in){ .tournament = tasks[i].texts[0] };
    }
    t_at_once(f, tasks, ARRAY_LEN(tasks));
    for (unsigned i = 0; i < ARRAY_LEN(tasks); i++) {
        T_EQ(tasks[i].code, CAMPUS_OK);
        expect_paid_once(f, tasks[i].texts[0], 6);
    }
    T_EQ(t_count(f, "SELECT count(*) FROM tournament_badges WHERE badge_type = 'FIRST_TOURNAMENT'"),
         6);
    t_verify(f);
}

/* The marks that a player was paid are taken away one by one: the next layer stops the second
 * payment, and says so. */
C_TEST(each_layer_refuses_a_second_payment)
{
    char out[4096];

    t_users(f, 2, 0, SKILLS);
    play(f, "t", 2, 0);
    T_DO(f, campus_finalize, NULL, NULL, .tournament = "t");
    (void)t_ask(f, "DELETE FROM tournament_participations", out);
    (void)t_ask(f, "UPDATE semesters SET tournament_status = 'COMPLETED'", out);
    (void)t_ask(f, "DELETE FROM system_events", out);
    T_DO(f, campus_finalize, NULL, NULL, .tournament = "t");
    T_EQ(f->n_races[CAMPUS_DOUBLE_GRANT], 4); /* XP and credits of both */
    T_TRUE(f->n_races[CAMPUS_DOUBLE_BADGE] >= 4);
    T_EQ(t_count(f, "SELECT count(*) FROM system_events WHERE type = 'INTEGRITY_ROLLBACK'"),
         4 + f->n_races[CAMPUS_DOUBLE_BADGE]);
    expect_paid_once(f, "t", 2);
    T_EQ(t_credits(f, "u1"), 100);
    T_EQ(t_count(f, "SELECT xp_balance FROM users WHERE id = 'u1'"), 500);
    t_verify(f);
}

/* u2 gets a participation after the roster was read, as from a second finalization. */
struct intrusion {
    struct t_field *f;
    unsigned        n_steps;
};

static void
intrude(void *cookie)
{
    struct intrusion *i = cookie;
    char              out[4096];

    if (++i->n_steps == 2)
        (void)t_ask(i->f,
                    "INSERT INTO tournament_participations (tenant, id, user_id, semester_id, "
                    "placement, xp_awarded, credits_awarded, achieved_at, players, skill_weights, "
                    "match_modifier, opponent_factor) VALUES ('acme', 'x', 'u2', 't', 2, 0, 0, 1, "
                    "2, '{}', 0, 1)",
                    out);
}

C_TEST(a_second_participation_pays_nothing)
{
    struct intrusion        i  = { .f = f };
    struct campus_in        in = { .tournament = "t" };
    struct campus_finalized d;

    t_users(f, 2, 0, SKILLS);
    play(f, "t", 2, 0);
    struct campus_call c = { .db     = f->db,
                             .store  = f->store,
                             .tenant = F_TENANT,
                             .id     = "call",
                             .now_ms = il__clock_wall_ms(),
                             .step   = intrude,
                             .cookie = &i };
    T_EQ(campus_finalize(&c, &in, &d, &f->err), IL_OK);
    il__arena_free(&c.mem);
    T_EQ(c.n_races[CAMPUS_DOUBLE_PARTICIPATION], 1);
    T_EQ(t_count(f, "SELECT count(*) FROM xp_transactions WHERE user_id = 'u2'"), 0);
    T_EQ(t_count(f, "SELECT count(*) FROM tournament_badges WHERE user_id = 'u2'"), 0);
}

/* A finalization that has lost its lease cannot commit: its fence is stale. */
struct robbery {
    struct t_field *f;
    bool            done;
};

static void
rob(void *cookie)
{
    struct robbery *r = cookie;
    il_op           op;
    il_error        err;

    if (r->done)
        return;
    r->done = true;
    T_EQ(il_get(r->f->store, "tournament:t", &op, &err), IL_OK);
    uint64_t fence = op.out.items[0].fence;
    il_op_release(&op);
    T_EQ(il_break(r->f->store, "tournament:t", fence, "a test", IL_BREAK_NOW, &err), IL_OK);
    /* the next holder shows its fence */
    static struct t_field other;
    other     = *r->f;
    other.mem = NULL;
    T_EQ(T_CALL(&other, campus_finalize, NULL, NULL, .tournament = "t"), CAMPUS_OK);
    il__arena_free(&other.mem);
}

C_TEST(a_lost_lease_pays_nobody)
{
    struct robbery          r = { .f = f };
    struct campus_finalized d;
    struct campus_in        in = { .tournament = "t" };

    t_users(f, 4, 0, SKILLS);
    play(f, "t", 4, 0);
    il_close(f->store); /* the tenant of the lease is that of the handle here */
    il_open_opts o = IL_OPEN_OPTS_INIT;
    o.tenant       = F_TENANT;
    T_EQ(il_open(f->store_url, &o, &f->store, &f->err), IL_OK);
    struct campus_call c = { .db     = f->db,
                             .store  = f->store,
                             .tenant = F_TENANT,
                             .id     = "call",
                             .now_ms = il__clock_wall_ms(),
                             .step   = rob,
                             .cookie = &r };
    T_EQ(campus_finalize(&c, &in, &d, &f->err), IL_STALE);
    il__arena_free(&c.mem);
    expect_paid_once(f, "t", 4);
    t_verify(f);
}

/* ---- how long a license is locked ------------------------------------------------------------ */

static void
count_queries(void *cookie, const il_guard_event *event)
{
    unsigned *most = cookie;

    if (strcmp(event->entity, "UserLicense") == 0 && strcmp(event->caller, "pay_player") == 0)
        *most = MAX(*most, event->n_queries);
}

/* As many statements under the lock of a license with 32 players as with 4: nothing is asked for
 * each opponent. */
C_TEST(queries_do_not_grow_with_opponents)
{
    unsigned most[2] = { 0, 0 };

    t_users(f, 32, 0, SKILLS);
    for (unsigned i = 0; i < 2; i++) {
        char t[16];
        (void)snprintf(t, sizeof t, "t%u", i);
        t_field_close(f);
        f->observe = count_queries;
        f->cookie  = &most[i];
        t_field_open(f);
        play(f, t, i == 0 ? 4 : 32, 0);
        T_DO(f, campus_finalize, NULL, NULL, .tournament = t);
    }
    T_TRUE(most[0] > 0);
    T_EQ(most[1], most[0]);
}

/* ---- killed ---------------------------------------------------------------------------------- */

static int
finalize_and_die(void *arg)
{
    struct t_victim        *v = arg;
    struct campus_finalized d;
    struct campus_in        in = { .tournament = "t" };

    t_field_open(v->f);
    struct campus_call c = { .db     = v->f->db,
                             .store  = v->f->store,
                             .tenant = F_TENANT,
                             .id     = "call",
                             .now_ms = il__clock_wall_ms(),
                             .step   = t_count_down,
                             .cookie = v };
    return campus_finalize(&c, &in, &d, &v->f->err) != IL_OK;
}

/* The lease of a process that died: an operator breaks it, or it expires. */
static void
free_lease(struct t_field *f)
{
    il_open_opts o = IL_OPEN_OPTS_INIT;
    il          *h = NULL;
    il_op        op;
    il_error     err;

    o.tenant = F_TENANT;
    T_EQ(il_open(f->store_url, &o, &h, &err), IL_OK);
    if (il_get(h, "tournament:t", &op, &err) == IL_OK) {
        uint64_t fence = op.out.items[0].fence;
        T_EQ(il_break(h, "tournament:t", fence, "it died", IL_BREAK_NOW, &err), IL_OK);
    }
    il_op_release(&op);
    il_close(h);
}

/* 64 players: one process after the other is killed after its next commit, until one is left over
 * that finds everything done. */
C_TEST(killed_after_every_commit)
{
    static struct t_proc proc;
    unsigned             n_killed = 0;
    int                  status;

    t_users(f, 64, 0, SKILLS);
    play(f, "t", 64, 0);
    t_field_close(f);
    do {
        struct t_victim v = { .f = f, .at = 1 };
        /* A resumed call repeats the commit that closes the tournament, and then pays one more. */
        v.at = n_killed == 0 ? 1 : 2;
        t_proc_fork(&proc, finalize_and_die, &v);
        status = t_proc_exit(&proc, F_LIMIT_MS);
        t_proc_release(&proc);
        if (status == 128 + SIGKILL) {
            n_killed++;
            free_lease(f);
        }
    } while (status == 128 + SIGKILL);
    T_EQ(status, 0);
    T_EQ(n_killed, 1 + 64 + 1); /* closing, each player, opening the rewards */
    t_field_open(f);
    expect_paid_once(f, "t", 64);
    t_verify(f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        C_ROW(rankings_then_rewards),
        C_ROW(what_cannot_be_finalized),
        C_ROW(a_config_overrides_the_policy),
        C_ROW(a_career_of_badges),
        C_ROW(finalizing_at_once_pays_once),
        C_ROW(tournaments_of_the_same_players_at_once),
        C_ROW(each_layer_refuses_a_second_payment),
        C_ROW(a_second_participation_pays_nothing),
        C_ROW(a_lost_lease_pays_nobody),
        C_ROW(queries_do_not_grow_with_opponents),
        C_ROW(killed_after_every_commit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
