/*
 * enrollment.c: enrolling in tournaments and leaving them.
 *
 * Every transaction here locks the tournament's row first, so that of one tournament only one is
 * under way: capacity, counter, state and enrollments agree. docs/pipelines/enrollment.md lists the
 * races and their tests; run those tests after any change here.
 */
#include <inttypes.h>

#include "apps/campus/campus_tx.h"
#include "apps/campus/ledger.h"
#include "base/arena.h"
#include "base/error.h"

#include "apps/campus/campus_enrollment_sql.inc"

#define PIPELINE "enrollment"
#define REFUND_SHARE 2 /* leaving refunds the cost divided by this, rounded down */

static il_status
show_enrollment(struct campus_op *op, il_guard_tx *tx, const char *id, il_error *reterr)
{
    static const struct app_statement get = APP_STATEMENT(enrollment_get);
    struct campus_rows                r;

    il_status st = campus_read(op->c, tx, &get, CAMPUS_OF(op->c, id), &r, reterr);
    if (st != IL_OK)
        return st;
    if (r.n == 0)
        return il__error_set(reterr, IL_CORRUPT, "enrollment %s is missing", id);
    *(struct campus_enrollment *)op->out =
        (struct campus_enrollment){ .id         = campus_text(&r, 0, 0),
                                    .user       = campus_text(&r, 0, 1),
                                    .tournament = campus_text(&r, 0, 2),
                                    .state      = campus_text(&r, 0, 3),
                                    .cost       = campus_int(&r, 0, 4),
                                    .refund     = campus_int(&r, 0, 5),
                                    .created_ms = campus_int(&r, 0, 6) };
    return IL_OK;
}

/* ---- enroll ---------------------------------------------------------------------------------- */

/* Columns of enroll_place and enroll_why. */
enum {
    IS_STATE,
    IS_CAMPUS,
    IS_MAX,
    IS_COST,
    IS_COUNT,
    IS_USER,
    IS_USER_ACTIVE,
    IS_OWN,
    IS_ACTIVE
};

static bool
is_open(const struct campus_rows *r)
{
    return campus_state_named(campus_text(r, 0, IS_STATE)) == CAMPUS_ENROLLMENT_OPEN &&
           campus_text(r, 0, IS_CAMPUS) != NULL;
}

static bool
has_place(const struct campus_rows *r)
{
    return campus_int(r, 0, IS_COUNT) < campus_int(r, 0, IS_MAX);
}

static il_status
refuse_enroll(struct campus_op *op, const struct campus_rows *r, il_error *reterr)
{
    struct campus_call     *c  = op->c;
    const struct campus_in *in = op->in;

    if (campus_text(r, 0, IS_USER) == NULL)
        return campus_refuse(c, CAMPUS_E_USER_NOT_FOUND, reterr, "user %s not found", in->user);
    if (campus_int(r, 0, IS_USER_ACTIVE) == 0)
        return campus_refuse(c, CAMPUS_E_USER_INACTIVE, reterr, "user %s is not active", in->user);
    if (campus_text(r, 0, IS_ACTIVE) != NULL)
        return campus_refuse(c, CAMPUS_E_ALREADY_ENROLLED, reterr,
                             "user %s is already enrolled in tournament %s", in->user,
                             in->tournament);
    if (!is_open(r))
        return campus_refuse(c, CAMPUS_E_TOURNAMENT_NOT_OPEN, reterr,
                             "tournament %s is not open for enrollment: its state is %s",
                             in->tournament, campus_text(r, 0, IS_STATE));
    return campus_refuse(c, CAMPUS_E_TOURNAMENT_FULL, reterr,
                         "tournament %s is full: %" PRId64 " of %" PRId64 " places are taken",
                         in->tournament, campus_int(r, 0, IS_COUNT), campus_int(r, 0, IS_MAX));
}

/* Nobody was enrolled: say why, or find what this call did before. */
static il_status
explain(struct campus_op *op, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement why = APP_STATEMENT(enroll_why);
    struct campus_call               *c   = op->c;
    struct campus_rows                r;

    il_status st =
        campus_read(c, tx, &why,
                    APP_VALUES(il_guard_text(c->tenant), il_guard_text(op->in->tournament),
                               il_guard_text(op->in->user), il_guard_text(c->id)),
                    &r, reterr);
    if (st != IL_OK)
        return st;
    return campus_text(&r, 0, IS_OWN) != NULL ? show_enrollment(op, tx, c->id, reterr)
                                              : refuse_enroll(op, &r, reterr);
}

/* Lock the tournament and look at its places. */
static il_status
lock_and_look(struct campus_op *op, il_guard_tx *tx, struct campus_rows *ret, il_error *reterr)
{
    static const struct app_statement place = APP_STATEMENT(enroll_place);
    struct campus_call               *c     = op->c;
    const char                       *t     = op->in->tournament;

#ifdef IL_MUTANT_campus_enroll_stale
    il_status st = campus_read(c, tx, &place, CAMPUS_OF(c, t), ret, reterr);
    return st == IL_OK
               ? campus_lock(c, tx, CAMPUS_SEMESTER(c, t), CAMPUS_E_TOURNAMENT_NOT_FOUND, reterr)
               : st;
#endif
    return campus_lock_read(c, tx, CAMPUS_SEMESTER(c, t), CAMPUS_E_TOURNAMENT_NOT_FOUND, &place,
                            CAMPUS_OF(c, t), ret, reterr);
}

/* *ret_n 0: see explain(). */
static il_status
add_enrollment(struct campus_op *op, il_guard_tx *tx, int64_t cost, int64_t *ret_n,
               il_error *reterr)
{
    static const struct app_statement add = APP_STATEMENT(enrollment_add);
    struct campus_call               *c   = op->c;

    return campus_run(tx, &add,
                      APP_VALUES(il_guard_text(c->tenant), il_guard_text(c->id),
                                 il_guard_text(op->in->user), il_guard_text(op->in->tournament),
                                 il_guard_int(cost), il_guard_int(c->now_ms)),
                      ret_n, reterr);
}

/* The user is enrolled: pay and count. */
static il_status
complete(struct campus_op *op, il_guard_tx *tx, int64_t cost, il_error *reterr)
{
    struct campus_call     *c      = op->c;
    const struct campus_in *in     = op->in;
    struct campus_payment   charge = { .ledger     = CAMPUS_CREDITS,
                                       .user       = in->user,
                                       .amount     = -cost,
                                       .type       = "TOURNAMENT_ENROLLMENT",
                                       .key        = c->id,
                                       .tournament = in->tournament };
    bool                    is_new;
    il_status               st = IL_OK;

    if (cost > 0)
        st = campus_pay(c, tx, &charge, &is_new, reterr);
    if (st == IL_OK)
        st = il_guard_add(tx, CAMPUS_SEMESTER(c, in->tournament), "current_enrollment_count", 1,
                          NULL, NULL, reterr);
    if (st == IL_OK)
        *(struct campus_enrollment *)op->out =
            (struct campus_enrollment){ .id         = c->id,
                                        .user       = in->user,
                                        .tournament = in->tournament,
                                        .state      = "APPROVED",
                                        .cost       = cost,
                                        .created_ms = c->now_ms };
    return st;
}

static il_status
enroll(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op  *op = cookie;
    struct campus_rows r;
    int64_t            n = 0;

    il_status st = il_guard_tag(tx, "user_id", il_guard_text(op->in->user), reterr);
    if (st == IL_OK)
        st = lock_and_look(op, tx, &r, reterr);
    if (st != IL_OK)
        return st;
    int64_t cost = campus_int(&r, 0, IS_COST);
    if (is_open(&r) && has_place(&r))
        st = add_enrollment(op, tx, cost, &n, reterr);
    if (st != IL_OK)
        return st;
    return n > 0 ? complete(op, tx, cost, reterr) : explain(op, tx, reterr);
}

il_status
campus_enroll(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    return campus_transact(&(struct campus_op){ c, in, out, NULL }, PIPELINE, "enroll", NULL,
                           enroll, reterr);
}

/* ---- unenroll -------------------------------------------------------------------------------- */

/* Cancel the user's bookings in sessions of the tournament. The user's row is locked. */
static il_status
end_bookings(struct campus_op *op, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement sessions = APP_STATEMENT(user_sessions);
    static const struct app_statement bookings = APP_STATEMENT(user_bookings);
    struct campus_call               *c        = op->c;
    const il_guard_value of[] = { il_guard_text(c->tenant), il_guard_text(op->in->tournament),
                                  il_guard_text(op->in->user) };
    struct campus_rows   r;

    il_status st = campus_read(c, tx, &sessions, of, ARRAY_LEN(of), &r, reterr);
    if (st != IL_OK || r.n == 0)
        return st;
    const char **ids = campus_ids(c, &r);
    if (ids == NULL)
        return campus_no_memory(reterr);
    st = campus_lock_all(c, tx, "Session", "sessions", ids, r.n, IL_GUARD_PLACE, reterr);
    if (st == IL_OK) /* one may have been promoted before its session was locked */
        st = campus_read(c, tx, &bookings, of, ARRAY_LEN(of), &r, reterr);
    for (size_t i = 0; st == IL_OK && i < r.n; i++) {
        struct campus_live b = campus_live_of(&r, i);
        st                   = campus_booking_end(c, tx, &b, reterr);
    }
    return st;
}

static il_status
withdraw(struct campus_op *op, il_guard_tx *tx, const char *id, int64_t refund, il_error *reterr)
{
    static const struct app_statement text = APP_STATEMENT(enrollment_withdraw);
    struct campus_call               *c    = op->c;
    struct campus_payment             back = { .ledger = CAMPUS_CREDITS,
                                               .user   = op->in->user,
                                               .amount = refund,
                                               .type   = "ENROLLMENT_REFUND",
                                               .key = campus_key(c, "enrollment_refund", id, NULL),
                                               .tournament = op->in->tournament };
    bool                              is_new;

    il_status st = campus_run(tx, &text,
                              APP_VALUES(il_guard_text(c->tenant), il_guard_text(id),
                                         il_guard_int(refund), il_guard_text(c->id)),
                              NULL, reterr);
    if (st == IL_OK)
        st = campus_lock(c, tx, CAMPUS_USER(c, op->in->user), CAMPUS_E_USER_NOT_FOUND, reterr);
    if (st == IL_OK && refund > 0)
        st = campus_pay(c, tx, &back, &is_new, reterr);
    if (st == IL_OK && refund > 0)
        st = campus_event(c, tx, back.key, "INFO", "REFUND", reterr,
                          "enrollment %s: %" PRId64 " credits", id, refund);
    return st;
}

/* Lock the tournament and find the enrollment. */
static il_status
lock_and_find(struct campus_op *op, il_guard_tx *tx, struct campus_rows *ret, il_error *reterr)
{
    static const struct app_statement find = APP_STATEMENT(enrollment_find);
    struct campus_call               *c    = op->c;
    const char                       *t    = op->in->tournament;
    const il_guard_value              of[] = { il_guard_text(c->tenant), il_guard_text(t),
                                               il_guard_text(op->in->user), il_guard_text(c->id) };

#ifdef IL_MUTANT_campus_leave_stale
    il_status st = campus_read(c, tx, &find, of, ARRAY_LEN(of), ret, reterr);
    return st == IL_OK
               ? campus_lock(c, tx, CAMPUS_SEMESTER(c, t), CAMPUS_E_TOURNAMENT_NOT_FOUND, reterr)
               : st;
#endif
    return campus_lock_read(c, tx, CAMPUS_SEMESTER(c, t), CAMPUS_E_TOURNAMENT_NOT_FOUND, &find, of,
                            ARRAY_LEN(of), ret, reterr);
}

static il_status
unenroll(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op        *op = cookie;
    struct campus_call      *c  = op->c;
    const struct campus_in  *in = op->in;
    struct campus_tournament t;
    struct campus_rows       r;

    il_status st = lock_and_find(op, tx, &r, reterr);
    if (st != IL_OK)
        return st;
    if (r.n == 0)
        return campus_refuse(c, CAMPUS_E_NOT_ENROLLED, reterr,
                             "user %s is not enrolled in tournament %s", in->user, in->tournament);
    const char *id = campus_text(&r, 0, 0);
    if (campus_int(&r, 0, 2) == 0) /* withdrawn by this call, which is repeated */
        return show_enrollment(op, tx, id, reterr);
    st = campus_tournament_read(c, tx, in->tournament, &t, reterr);
    if (st == IL_OK && !campus_state_may_leave(campus_state_named(t.state)))
        st = campus_refuse(c, CAMPUS_E_TOURNAMENT_STATE, reterr,
                           "cannot withdraw from tournament %s: it is %s", in->tournament, t.state);
    if (st == IL_OK)
        st = campus_lock(c, tx, CAMPUS_ENROLLMENT(c, id), CAMPUS_E_NOT_ENROLLED, reterr);
    if (st == IL_OK)
        st = withdraw(op, tx, id, campus_int(&r, 0, 1) / REFUND_SHARE, reterr);
    if (st == IL_OK)
        st = end_bookings(op, tx, reterr);
    if (st == IL_OK)
        st = il_guard_add(tx, CAMPUS_SEMESTER(c, in->tournament), "current_enrollment_count", -1,
                          NULL, NULL, reterr);
    return st == IL_OK ? show_enrollment(op, tx, id, reterr) : st;
}

il_status
campus_unenroll(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    return campus_transact(&(struct campus_op){ c, in, out, NULL }, PIPELINE, "unenroll", NULL,
                           unenroll, reterr);
}
