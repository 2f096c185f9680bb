/*
 * tournament.c: the states of a tournament, and cancelling it.
 *
 * Every transaction here locks the tournament's row first. Cancelling is one transaction: refunds,
 * bookings, enrollments and the state. But a transaction holds a limited number of rows: if there
 * are more bookings than that, some are cancelled and refunded before, in transactions of their
 * own. Each of these leaves the tournament as if those users had cancelled, so that a call which
 * dies between them has broken nothing, and the next one continues. docs/pipelines/enrollment.md
 * lists the races and their tests; run those tests after any change here.
 */
#include <inttypes.h>

#include "apps/campus/campus_tx.h"
#include "apps/campus/ledger.h"
#include "base/error.h"

#include "apps/campus/campus_tournament_sql.inc"

#define PIPELINE "enrollment"
/* So many bookings are cancelled with their tournament, and so many at once before: with all
 * sessions and players, and some that are made meanwhile, a transaction can hold the rows. */
#define BOOKINGS_MAX 1500
_Static_assert(1 + BOOKINGS_MAX + CAMPUS_PLAYERS_MAX + CAMPUS_SESSIONS_MAX + 500 <=
                   IL_GUARD_ROWS_MAX,
               "a transaction holds them all");

/* An attempt at a transition. */
struct attempt {
    bool again;    /* somebody has booked meanwhile */
    bool is_large; /* too many bookings for one transaction */
};

/* ---- cancelling ------------------------------------------------------------------------------ */

/* Give the price of a row back: an enrollment or a booking. */
static il_status
refund_all(struct campus_op *op, il_guard_tx *tx, const struct campus_rows *r, size_t price_column,
           const char *type, const char *prefix, il_error *reterr)
{
    il_status st = IL_OK;

    for (size_t i = 0; i < r->n && st == IL_OK; i++) {
        const char           *key    = campus_key(op->c, prefix, campus_text(r, i, 0), NULL);
        struct campus_payment p      = { .ledger     = CAMPUS_CREDITS,
                                         .user       = campus_text(r, i, 1),
                                         .amount     = campus_int(r, i, price_column),
                                         .type       = type,
                                         .key        = key,
                                         .tournament = op->in->tournament };
        bool                  is_new = false;
        if (p.amount > 0)
            st = campus_pay(op->c, tx, &p, &is_new, reterr);
        if (st == IL_OK && is_new)
            st = campus_event(op->c, tx, p.key, "INFO", "REFUND", reterr,
                              "%s: %" PRId64 " credits to user %s", p.key, p.amount, p.user);
    }
    return st;
}

static bool
has_id(const struct campus_rows *users, const char *id)
{
    for (size_t i = 0; i < users->n; i++) {
        if (strcmp(campus_text(users, i, 0), id) == 0)
            return true;
    }
    return false;
}

/* Begin again: the next attempt reads the current rows. */
static il_status
begin_again(struct campus_op *op, il_error *reterr)
{
    struct attempt *a = op->own;

    a->again = true;
    return il__error_set(reterr, IL_SERIALIZATION,
                         "cannot cancel tournament %s: sessions are being booked; try again",
                         op->in->tournament);
}

/* Lock users, then sessions, and read the bookings that are theirs. Somebody may have booked before
 * the sessions were locked; users come before sessions, so that takes another attempt. */
static il_status
lock_affected(struct campus_op *op, il_guard_tx *tx, const struct campus_rows *users,
              const struct campus_rows *sessions, const struct app_statement *bookings,
              const il_guard_value *of, size_t n_of, struct campus_rows *ret, il_error *reterr)
{
    struct campus_call *c        = op->c;
    const char        **user_ids = campus_ids(c, users), **session_ids = campus_ids(c, sessions);

    if (user_ids == NULL || session_ids == NULL)
        return campus_no_memory(reterr);
    il_status st =
        campus_lock_all(c, tx, "User", "users", user_ids, users->n, IL_GUARD_PLACE, reterr);
    if (st == IL_OK)
        st = campus_lock_all(c, tx, "Session", "sessions", session_ids, sessions->n, IL_GUARD_PLACE,
                             reterr);
    if (st == IL_OK)
        st = campus_read(c, tx, bookings, of, n_of, ret, reterr);
    for (size_t i = 0; st == IL_OK && i < ret->n; i++) {
        if (!has_id(users, campus_text(ret, i, 1)) || !has_id(sessions, campus_text(ret, i, 2)))
            st = begin_again(op, reterr);
    }
    return st;
}

static il_status
check_size(struct campus_op *op, il_guard_tx *tx, const il_guard_value *of, il_error *reterr)
{
    static const struct app_statement size = APP_STATEMENT(cancel_size);
    struct attempt                   *a    = op->own;
    struct campus_rows                r;

    il_status st = campus_read(op->c, tx, &size, of, 2, &r, reterr);
    if (st != IL_OK || campus_int(&r, 0, 0) <= BOOKINGS_MAX)
        return st;
    a->is_large = true;
    return il__error_set(reterr, IL_LIMIT,
                         "tournament %s has %" PRId64 " bookings, too many for one transaction",
                         op->in->tournament, campus_int(&r, 0, 0));
}

/* Refund every enrollment in full and every booking; all in the transaction of the transition. */
static il_status
cancel_all(struct campus_op *op, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement enrolled  = APP_STATEMENT(active_enrollments);
    static const struct app_statement affected  = APP_STATEMENT(affected_users);
    static const struct app_statement all       = APP_STATEMENT(tournament_sessions);
    static const struct app_statement bookings  = APP_STATEMENT(tournament_bookings);
    static const struct app_statement changes[] = {
        APP_STATEMENT(enrollments_cancel),
        APP_STATEMENT(bookings_cancel),
        APP_STATEMENT(enrollments_none),
        APP_STATEMENT(sessions_free),
    };
    struct campus_call  *c    = op->c;
    const il_guard_value of[] = { il_guard_text(c->tenant), il_guard_text(op->in->tournament),
                                  il_guard_text(c->id) };
    struct campus_rows   players, users, sessions, booked = { .n = 0 };

    il_status st = check_size(op, tx, of, reterr);
    if (st == IL_OK)
        st = campus_read(c, tx, &enrolled, of, 2, &players, reterr);
    if (st == IL_OK)
        st = campus_read(c, tx, &affected, of, 2, &users, reterr);
    if (st == IL_OK)
        st = campus_read(c, tx, &all, of, 2, &sessions, reterr);
    if (st == IL_OK)
        st = lock_affected(op, tx, &users, &sessions, &bookings, of, 2, &booked, reterr);
    if (st == IL_OK)
        st = refund_all(op, tx, &players, 2, "TOURNAMENT_CANCELLED", "enrollment_refund", reterr);
    if (st == IL_OK)
        st = refund_all(op, tx, &booked, 5, "BOOKING_REFUND", "booking_refund", reterr);
    for (size_t i = 0; i < ARRAY_LEN(changes) && st == IL_OK; i++)
        st = campus_run(tx, &changes[i], of, i < 2 ? 3 : 2, NULL, reterr);
    return st;
}

/* Cancel and refund the last bookings. Their sessions are locked, and no waitlist has entries
 * behind them. */
static il_status
cancel_last(struct campus_op *op, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement last_users    = APP_STATEMENT(last_users);
    static const struct app_statement last_sessions = APP_STATEMENT(last_sessions);
    static const struct app_statement last_bookings = APP_STATEMENT(last_bookings);
    struct campus_call               *c             = op->c;
    const il_guard_value of[] = { il_guard_text(c->tenant), il_guard_text(op->in->tournament),
                                  il_guard_int(BOOKINGS_MAX) };
    struct campus_rows   users, sessions, booked = { .n = 0 };

    il_status st = campus_read(c, tx, &last_users, of, 3, &users, reterr);
    if (st == IL_OK)
        st = campus_read(c, tx, &last_sessions, of, 3, &sessions, reterr);
    if (st == IL_OK)
        st = lock_affected(op, tx, &users, &sessions, &last_bookings, of, 3, &booked, reterr);
    if (st == IL_OK)
        st = refund_all(op, tx, &booked, 5, "BOOKING_REFUND", "booking_refund", reterr);
    for (size_t i = 0; i < booked.n && st == IL_OK; i++) {
        struct campus_live b = campus_live_of(&booked, i);
        st                   = campus_booking_close(c, tx, b.id, reterr);
        if (st == IL_OK && strcmp(b.state, "CONFIRMED") == 0)
            st = il_guard_add(tx, CAMPUS_SESSION(c, b.session), "available_spots", 1, NULL, NULL,
                              reterr);
    }
    return st;
}

/* ---- transitions ----------------------------------------------------------------------------- */

static il_status
check_edge(struct campus_op *op, const struct campus_tournament *t, enum campus_state from,
           enum campus_state to, il_error *reterr)
{
    if (to == CAMPUS_STATE_COUNT)
        return il__error_set(reterr, IL_INVAL, "field 'state': unknown state '%s'", op->in->state);
    if (to == CAMPUS_REWARDS_DISTRIBUTED)
        return campus_refuse(op->c, CAMPUS_E_TOURNAMENT_STATE, reterr,
                             "tournament %s cannot be set to REWARDS_DISTRIBUTED; finalize it",
                             t->id);
    if (from == CAMPUS_STATE_COUNT || !campus_state_may(from, to))
        return campus_refuse(op->c, CAMPUS_E_TOURNAMENT_STATE, reterr,
                             "tournament %s cannot go from %s to %s", t->id, t->state,
                             campus_state_name(to));
    if (to == CAMPUS_ENROLLMENT_OPEN && t->campus == NULL)
        return campus_refuse(op->c, CAMPUS_E_TOURNAMENT_NO_CAMPUS, reterr,
                             "cannot open enrollment: tournament %s has no campus", t->id);
    return IL_OK;
}

il_status
campus_move(struct campus_call *c, il_guard_tx *tx, const char *tournament, enum campus_state from,
            enum campus_state to, const char *event, il_error *reterr)
{
    static const struct app_statement completed = APP_STATEMENT(tournament_completed);

    il_status st = il_guard_transition(tx, CAMPUS_SEMESTER(c, tournament), "tournament_status",
                                       il_guard_text(campus_state_name(from)),
                                       il_guard_text(campus_state_name(to)), NULL, reterr);
    if (st == IL_OK && to == CAMPUS_COMPLETED)
        st = campus_run(tx, &completed,
                        APP_VALUES(il_guard_text(c->tenant), il_guard_text(tournament),
                                   il_guard_int(c->now_ms)),
                        NULL, reterr);
    if (st == IL_OK)
        st = campus_event(c, tx, event, "INFO", "TOURNAMENT_STATE", reterr,
                          "tournament %s: %s to %s", tournament, campus_state_name(from),
                          campus_state_name(to));
    return st;
}

/* Lock the tournament and read its state; *ret_repeated: this call has done its work before. */
static il_status
begin(struct campus_op *op, il_guard_tx *tx, enum campus_state *ret_from, bool *ret_repeated,
      il_error *reterr)
{
    struct campus_call       *c = op->c;
    struct campus_tournament *t = op->out;

    il_status st = campus_tournament_lock(c, tx, op->in->tournament, t, reterr);
    if (st == IL_OK)
        st = campus_event_exists(c, tx, c->id, ret_repeated, reterr);
    if (st == IL_OK)
        *ret_from = campus_state_named(t->state);
    return st;
}

static il_status
transition(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op         *op = cookie;
    struct campus_call       *c  = op->c;
    struct campus_tournament *t  = op->out;
    enum campus_state         from, to = campus_state_named(op->in->state);
    struct campus_rows        matches;
    bool                      repeated = false;

    il_status st = begin(op, tx, &from, &repeated, reterr);
    if (st != IL_OK || repeated)
        return st;
    st = check_edge(op, t, from, to, reterr);
    if (st == IL_OK && to == CAMPUS_COMPLETED)
        st = campus_require_matches(op, tx, &matches, reterr);
    if (st == IL_OK && to == CAMPUS_CANCELLED)
        st = cancel_all(op, tx, reterr);
    if (st == IL_OK)
        st = campus_move(c, tx, op->in->tournament, from, to, c->id, reterr);
    return st == IL_OK ? campus_tournament_read(c, tx, op->in->tournament, t, reterr) : st;
}

/* What comes before a cancellation that is too large for one transaction. */
static il_status
cancel_ahead(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op *op = cookie;
    enum campus_state from;
    bool              repeated = false;

    il_status st = begin(op, tx, &from, &repeated, reterr);
    if (st != IL_OK || repeated)
        return st;
    st = check_edge(op, op->out, from, CAMPUS_CANCELLED, reterr);
    return st == IL_OK ? cancel_last(op, tx, reterr) : st;
}

/* Run it, again if somebody books meanwhile. */
static il_status
insist(struct campus_op *op, const char *caller, il_guard_fn *fn, il_error *reterr)
{
    struct attempt *a  = op->own;
    il_status       st = IL_OK;
    int             i  = 0;

    do {
        *a = (struct attempt){ .again = false };
        st = campus_transact(op, PIPELINE, caller, NULL, fn, reterr);
    } while (st == IL_SERIALIZATION && a->again && ++i < IL_GUARD_TRIES_MAX);
    return st;
}

il_status
campus_transition(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    struct attempt   a  = { .again = false };
    struct campus_op op = { c, in, out, &a };

    il_status st = insist(&op, "transition", transition, reterr);
    while (st != IL_OK && a.is_large) {
        st = insist(&op, "cancel_ahead", cancel_ahead, reterr);
        if (st == IL_OK)
            st = insist(&op, "transition", transition, reterr);
    }
    return st;
}
