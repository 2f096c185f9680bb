/*
 * campus.h: the four pipelines of a football campus. Each operation is one function; routes and
 * commands call the same. Everything is done by guarded transactions (interlock-guard.h).
 *
 *   enrollment.c     enroll, unenroll
 *   tournament.c     the states of a tournament, and cancelling it
 *   booking.c        book, cancel, confirm, attend
 *   reward.c         finalize a tournament: rankings, XP, credits, badges
 *   skill.c          assess a skill, replay the history of a license, heal old formats
 *   entity.c         create and show users, licenses, tournaments, sessions and matches
 *   list.c           lists of badges, licenses and tournaments
 *   campus_tx.c      what they share: transactions, rows, events, refusals
 *   ledger.c         the ledgers of credits and XP
 *   rules.c          the rules, without a database
 *   skill_math.c     how a tournament changes a skill
 *   skills_json.c    the document football_skills
 *   tables.c         tables and lock ranks
 *   invariants.c     what must hold at any time
 *   pipelines.c      the four of them for `interlock doctor --checklist`
 *   app.c            the campus in the server (serve.h)
 *   routes.c         the routes
 *   routes_tables.c  the JSON of their bodies, and the table of operations
 *   cmd_campus.c     `interlock campus`
 *   seed.c           the data set of `campus seed`
 *   storm.c          runs mixed operations in several processes at once
 *   verify.c         runs the invariants, without the app `check`
 *
 * Ranks (CAMPUS_RANKS): a transaction locks rows in this order, whatever pipeline it belongs to.
 *
 * Idempotency: each call has an id. It becomes the id of the row that the call creates and the
 * idempotency key of its row in the ledger, so a repeated call finds its own effect and returns the
 * same answer.
 */
#ifndef IL_APPS_CAMPUS_CAMPUS_H
#define IL_APPS_CAMPUS_CAMPUS_H

#include "apps/campus/rules.h"
#include "apps/common/invariant.h"
#include "apps/common/pipeline.h"
#include "apps/common/tables.h"

/* The classes of rows, and their ranks. */
#define CAMPUS_RANKS(X)            \
    X(Semester, 10)                \
    X(SemesterEnrollment, 20)      \
    X(UserLicense, 30)             \
    X(TournamentParticipation, 40) \
    X(User, 50)                    \
    X(Session, 60)                 \
    X(Booking, 70)

extern const struct app_tables campus_tables;
#define CAMPUS_INVARIANTS 29
extern const struct app_invariant campus_invariants[CAMPUS_INVARIANTS];
/* Record a broken invariant as a system event: http_app.broken. */
void campus_broken(il_guard *db, const char *tenant, const struct app_invariant *invariant,
                   const char *text);

enum campus_pipeline {
    CAMPUS_PIPELINE_enrollment,
    CAMPUS_PIPELINE_booking,
    CAMPUS_PIPELINE_reward,
    CAMPUS_PIPELINE_skill,
    CAMPUS_PIPELINES
};
extern const struct app_pipeline campus_pipelines[CAMPUS_PIPELINES];

enum campus_code {
    CAMPUS_OK,
#define X(code, http, status, text) CAMPUS_E_##code,
#include "apps/campus/errors.def"
#undef X
    CAMPUS_CODE_COUNT
};
/* The wire name and the HTTP status of a code. */
const char *campus_code_name(enum campus_code code);
int         campus_code_http(enum campus_code code);
/* What it means. */
const char *campus_code_text(enum campus_code code);

/* Races that a constraint decided; each counts as an integrity rollback. */
enum campus_race {
    CAMPUS_DOUBLE_PARTICIPATION,
    CAMPUS_DOUBLE_BADGE,
    CAMPUS_DOUBLE_GRANT,
    CAMPUS_RACE_COUNT
};
extern const char *const campus_race_names[CAMPUS_RACE_COUNT + 1];

#define CAMPUS_ID_BYTES_MAX 64
#define CAMPUS_CURSOR_BYTES_MAX 192 /* a badge has the ids of tournament and user in its id */
#define CAMPUS_NAME_BYTES_MAX 200
#define CAMPUS_PLAYERS_MAX 1024  /* of a tournament */
#define CAMPUS_SESSIONS_MAX 1024 /* of a tournament */
#define CAMPUS_CAPACITY_MAX 1024 /* of a session */
#define CAMPUS_SKILLS_MAX 64     /* of a license, and weights of a tournament */
#define CAMPUS_AMOUNT_MAX INT64_C(1000000000)
#define CAMPUS_SPECIALIZATION "LFA_FOOTBALL_PLAYER" /* unless given */

/* A deadline so many milliseconds from now; 0: none. */
int64_t campus_deadline(int64_t in_ms);

/* One call of an operation. */
struct campus_call {
    il_guard        *db;
    il              *store; /* for the lease of a finalization; may be NULL otherwise */
    const char      *tenant;
    const char      *id;          /* of this call: a UUID, the same if it is repeated */
    int64_t          now_ms;      /* wall clock */
    int64_t          deadline_ms; /* of the whole call, by the clock of boot; 0: none */
    void            *mem;         /* arena: what the answers point to */
    enum campus_code code;        /* why it was refused; CAMPUS_OK: it was not */
    unsigned         n_races[CAMPUS_RACE_COUNT];
    /* Called after each transaction that writes; for tests. May be NULL. */
    void (*step)(void *cookie);
    void *cookie;
};

/* The inputs of all operations; each takes some of them. */
struct campus_in {
    const char *tournament, *user, *session, *booking, *license, *match;
    const char *code, *name, *email, *state, *campus, *specialization, *skill, *attendance;
    const char *home, *away;   /* users of a match */
    const char *reward_config; /* JSON */
    const char *weights;       /* JSON: {"passing": 1.5} */
    const char *skills;        /* JSON: {"passing": 60} */
    const char *cursor;
    int64_t     max_players, cost, capacity, price, start_ms, end_ms, credits;
    int64_t     home_goals, away_goals;
    int64_t     value_1; /* an assessment, in tenths */
    uint32_t    limit;
    uint32_t    has; /* CAMPUS_HAS_* */
};
#define CAMPUS_HAS_RESULT 1U /* a match with its goals */

/* ---- answers: texts live in call->mem -------------------------------------------------------- */

struct campus_user {
    const char *id, *email;
    uint32_t    is; /* CAMPUS_IS_ACTIVE */
    int64_t     credits, xp, created_ms;
};
#define CAMPUS_IS_ACTIVE 1U
struct campus_tournament {
    const char *id, *code, *name, *state, *campus, *specialization, *reward_config;
    int64_t     max_players, cost, n_enrolled, completed_ms, created_ms;
};
struct campus_enrollment {
    const char *id, *user, *tournament, *state;
    int64_t     cost, refund, created_ms;
};
struct campus_session {
    const char *id, *tournament, *name;
    int64_t     price, capacity, available, start_ms, end_ms;
};
struct campus_booking {
    const char *id, *user, *session, *state;
    int64_t     position; /* 0 = none */
    int64_t     price, created_ms;
};
struct campus_attendance {
    const char *id, *booking, *state;
    int64_t     created_ms;
};
struct campus_badge_row {
    const char *id, *tournament, *type;
    int64_t     created_ms;
};
struct campus_license {
    const char *id, *user, *specialization, *skills;
    uint32_t    is;
};
struct campus_match {
    const char *id, *tournament, *home, *away;
    int64_t     home_goals, away_goals;
    uint32_t    is; /* CAMPUS_IS_FINISHED */
};
#define CAMPUS_IS_FINISHED 1U
struct campus_result {
    const char *user;
    int64_t     place, xp, credits;
};
struct campus_finalized {
    const char           *tournament, *state;
    uint32_t              is;                /* CAMPUS_IS_REPEATED */
    int64_t               n_players, n_paid; /* n_paid: by this call */
    struct campus_result *items;
    size_t                n;
};
#define CAMPUS_IS_REPEATED 1U /* it had already been finalized */

/* ---- operations: IL_OK, or call->code and *reterr say why not ------------------------------- */

/* An operation: fills *out, a struct of the kind that its comment names. */
typedef il_status campus_fn(struct campus_call *c, const struct campus_in *in, void *out,
                            il_error *reterr);

campus_fn campus_user_create;       /* email, credits → campus_user */
campus_fn campus_user_get;          /* user → campus_user */
campus_fn campus_license_create;    /* user, specialization, skills → campus_license */
campus_fn campus_license_assess;    /* license, skill, value → campus_license */
campus_fn campus_tournament_create; /* code, name, … → campus_tournament */
campus_fn campus_tournament_get;    /* tournament → campus_tournament */
campus_fn campus_transition;        /* tournament, state → campus_tournament */
campus_fn campus_enroll;            /* tournament, user → campus_enrollment */
campus_fn campus_unenroll;          /* tournament, user → campus_enrollment */
campus_fn campus_finalize;          /* tournament → campus_finalized */
campus_fn campus_match_create;      /* tournament, home, away, result → campus_match */
campus_fn campus_match_finish;      /* match, result → campus_match */
campus_fn campus_session_create;    /* name, capacity, times, … → campus_session */
campus_fn campus_session_get;       /* session → campus_session */
campus_fn campus_book;              /* session, user → campus_booking */
campus_fn campus_booking_get;       /* booking → campus_booking */
campus_fn campus_cancel;            /* booking → campus_booking */
campus_fn campus_confirm;           /* booking → campus_booking */
campus_fn campus_attend;            /* booking, attendance → campus_attendance */

/* A page of a list: at most in->limit items (0: 100) after in->cursor (NULL: from the start). */
struct campus_page {
    void       *items;
    size_t      n, bytes; /* of an item */
    const char *next;     /* the cursor of the next page; NULL: this is the last */
};
campus_fn campus_badge_list;      /* user → page of campus_badge_row, oldest first */
campus_fn campus_license_list;    /* user → page of campus_license, by id */
campus_fn campus_tournament_list; /* → page of campus_tournament, by id */

/* ---- the format of skills (skill.c) ---------------------------------------------------------- */

struct campus_debt {
    int64_t n_licenses; /* with something to heal */
    int64_t n_entries;
};
/* Promote numbers to objects and lift levels under 40, in all licenses of the tenant, page by page:
 * 4,000 of them in a transaction, and in memory. Without `apply` it is only counted. */
il_status campus_normalise(struct campus_call *c, bool apply, struct campus_debt *ret,
                           il_error *reterr) MUST_USE;
/* The share of placed participations without skill_rating_delta, in thousandths. */
il_status campus_null_deltas(il_guard *db, int64_t *ret_permille, il_error *reterr) MUST_USE;

#endif
