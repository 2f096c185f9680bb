/*
 * booking.c: booking sessions, cancelling, confirming, attendance.
 *
 * Locks: User, Session, Booking. The user's row keeps two bookings of one user apart, so that two
 * overlapping sessions cannot both pass the check; the session's row keeps the counter and the
 * waitlist together. docs/pipelines/booking.md lists the races and their tests; run those tests
 * after any change here.
 */
#include <inttypes.h>

#include "apps/campus/campus_tx.h"
#include "apps/campus/ledger.h"
#include "base/error.h"

#include "apps/campus/campus_booking_sql.inc"

#define PIPELINE "booking"
#define HOURS(ms) ((ms) / 3600000)

/* ---- rows ------------------------------------------------------------------------------------ */

struct campus_live
campus_live_of(const struct campus_rows *r, size_t i)
{
    return (struct campus_live){ .id       = campus_text(r, i, 0),
                                 .user     = campus_text(r, i, 1),
                                 .session  = campus_text(r, i, 2),
                                 .state    = campus_text(r, i, 3),
                                 .position = campus_int(r, i, 4),
                                 .price    = campus_int(r, i, 5) };
}

/* A booking as it is stored. */
struct stored {
    struct campus_live live;
    const char        *cancelled_by;
    int64_t            created_ms, start_ms;
};

static il_status
read_booking(struct campus_op *op, il_guard_tx *tx, const char *id, struct stored *ret,
             il_error *reterr)
{
    static const struct app_statement get = APP_STATEMENT(booking_get);
    struct campus_rows                r;

    il_status st = campus_read(op->c, tx, &get, CAMPUS_OF(op->c, id), &r, reterr);
    if (st == IL_OK && r.n == 0)
        st = campus_refuse(op->c, CAMPUS_E_BOOKING_NOT_FOUND, reterr, "booking %s not found", id);
    if (st == IL_OK)
        *ret = (struct stored){ .live         = campus_live_of(&r, 0),
                                .created_ms   = campus_int(&r, 0, 6),
                                .cancelled_by = campus_text(&r, 0, 7),
                                .start_ms     = campus_int(&r, 0, 8) };
    return st;
}

static il_status
show_booking(struct campus_op *op, il_guard_tx *tx, const char *id, il_error *reterr)
{
    struct stored b;
    il_status     st = read_booking(op, tx, id, &b, reterr);

    if (st == IL_OK)
        *(struct campus_booking *)op->out = (struct campus_booking){ .id         = b.live.id,
                                                                     .user       = b.live.user,
                                                                     .session    = b.live.session,
                                                                     .state      = b.live.state,
                                                                     .position   = b.live.position,
                                                                     .price      = b.live.price,
                                                                     .created_ms = b.created_ms };
    return st;
}

static il_status
get_booking(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op *op = cookie;

    return show_booking(op, tx, op->in->booking, reterr);
}

il_status
campus_booking_get(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    return campus_transact_read_only(&(struct campus_op){ c, in, out, NULL }, PIPELINE, NULL,
                                     get_booking, reterr);
}

/* ---- book ------------------------------------------------------------------------------------ */

/* Columns of book_check. */
enum {
    IS_PRICE,
    IS_SPOTS,
    IS_START,
    IS_STATE,
    IS_ACTIVE,
    IS_OWN,
    IS_LIVE,
    IS_OVERLAP,
    IS_LAST
};

static il_status
check_book(struct campus_op *op, const struct campus_rows *r, il_error *reterr)
{
    struct campus_call     *c     = op->c;
    const struct campus_in *in    = op->in;
    const char             *state = campus_text(r, 0, IS_STATE);

    if (campus_int(r, 0, IS_ACTIVE) == 0)
        return campus_refuse(c, CAMPUS_E_USER_INACTIVE, reterr, "user %s is not active", in->user);
    if (campus_text(r, 0, IS_LIVE) != NULL)
        return campus_refuse(c, CAMPUS_E_ALREADY_BOOKED, reterr,
                             "user %s has already booked session %s", in->user, in->session);
    if (state != NULL && campus_state_is_closed(campus_state_named(state)))
        return campus_refuse(c, CAMPUS_E_TOURNAMENT_STATE, reterr,
                             "cannot book session %s: its tournament is %s", in->session, state);
    if (campus_int(r, 0, IS_START) - c->now_ms < CAMPUS_BOOK_BEFORE_MS)
        return campus_refuse(c, CAMPUS_E_SESSION_TOO_SOON, reterr,
                             "session %s starts in less than %" PRId64 " hours", in->session,
                             HOURS(CAMPUS_BOOK_BEFORE_MS));
    if (campus_text(r, 0, IS_OVERLAP) != NULL)
        return campus_refuse(c, CAMPUS_E_SESSION_OVERLAPS, reterr,
                             "session %s overlaps session %s, which user %s has booked",
                             in->session, campus_text(r, 0, IS_OVERLAP), in->user);
    return IL_OK;
}

/* position 0: confirmed. */
static il_status
add_booking(struct campus_op *op, il_guard_tx *tx, int64_t price, int64_t position,
            il_error *reterr)
{
    static const char *const unique[] = { "tenant", "session_id", "user_id", "is_live" };
    struct campus_call      *c        = op->c;
    const il_guard_column    row[]    = {
              { "tenant", il_guard_text(c->tenant) },
              { "id", il_guard_text(c->id) },
              { "user_id", il_guard_text(op->in->user) },
              { "session_id", il_guard_text(op->in->session) },
              { "status", il_guard_text(position > 0 ? "WAITLISTED" : "CONFIRMED") },
              { "is_live", il_guard_int(1) },
              { "waitlist_position", position > 0 ? il_guard_int(position) : il_guard_null() },
              { "price", il_guard_int(price) },
              { "created_at", il_guard_int(c->now_ms) },
    };
    int is_new = 0;

    il_status st = il_guard_insert_or_get(tx, "bookings", row, ARRAY_LEN(row), unique,
                                          ARRAY_LEN(unique), &is_new, NULL, reterr);
    if (st == IL_OK && !is_new)
        st = campus_refuse(c, CAMPUS_E_ALREADY_BOOKED, reterr,
                           "user %s has already booked session %s", op->in->user, op->in->session);
    return st;
}

/* Charged here even if it is waitlisted, so that a promotion touches no other user. */
static il_status
place_booking(struct campus_op *op, il_guard_tx *tx, const struct campus_rows *r, il_error *reterr)
{
    static const int64_t zero  = 0;
    struct campus_call  *c     = op->c;
    int64_t              price = campus_int(r, 0, IS_PRICE);
    int64_t position           = campus_int(r, 0, IS_SPOTS) > 0 ? 0 : campus_int(r, 0, IS_LAST) + 1;
    bool    is_new;

    struct campus_payment charge = { .ledger = CAMPUS_CREDITS,
                                     .user   = op->in->user,
                                     .amount = -price,
                                     .type   = "BOOKING",
                                     .key    = c->id };
    il_status             st     = add_booking(op, tx, price, position, reterr);
    if (st == IL_OK && price > 0)
        st = campus_pay(c, tx, &charge, &is_new, reterr);
    if (st == IL_OK && position == 0)
        st = il_guard_add(tx, CAMPUS_SESSION(c, op->in->session), "available_spots", -1, &zero,
                          NULL, reterr);
    if (st == IL_OK)
        *(struct campus_booking *)op->out =
            (struct campus_booking){ .id         = c->id,
                                     .user       = op->in->user,
                                     .session    = op->in->session,
                                     .state      = position > 0 ? "WAITLISTED" : "CONFIRMED",
                                     .position   = position,
                                     .price      = price,
                                     .created_ms = c->now_ms };
    return st;
}

/* Lock user and session, and read what depends on them. */
static il_status
lock_and_check(struct campus_op *op, il_guard_tx *tx, struct campus_rows *ret, il_error *reterr)
{
    static const struct app_statement check = APP_STATEMENT(book_check);
    struct campus_call               *c     = op->c;
    const struct campus_in           *in    = op->in;
    const il_guard_value              of[] = { il_guard_text(c->tenant), il_guard_text(in->session),
                                               il_guard_text(in->user), il_guard_text(c->id) };
    il_status                         st   = IL_OK;

#ifdef IL_MUTANT_campus_book_stale
    st = campus_read(c, tx, &check, of, ARRAY_LEN(of), ret, reterr);
    if (st == IL_OK)
        st = campus_lock(c, tx, CAMPUS_USER(c, in->user), CAMPUS_E_USER_NOT_FOUND, reterr);
    return st == IL_OK ? campus_lock(c, tx, CAMPUS_SESSION(c, in->session),
                                     CAMPUS_E_SESSION_NOT_FOUND, reterr)
                       : st;
#endif
    st = campus_lock(c, tx, CAMPUS_USER(c, in->user), CAMPUS_E_USER_NOT_FOUND, reterr);
    return st == IL_OK
               ? campus_lock_read(c, tx, CAMPUS_SESSION(c, in->session), CAMPUS_E_SESSION_NOT_FOUND,
                                  &check, of, ARRAY_LEN(of), ret, reterr)
               : st;
}

static il_status
book(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op       *op = cookie;
    struct campus_call     *c  = op->c;
    const struct campus_in *in = op->in;
    struct campus_rows      r;

    il_status st = il_guard_tag(tx, "user_id", il_guard_text(in->user), reterr);
    if (st == IL_OK)
        st = lock_and_check(op, tx, &r, reterr);
    if (st != IL_OK)
        return st;
    if (campus_text(&r, 0, IS_OWN) != NULL) /* this call, repeated */
        return show_booking(op, tx, c->id, reterr);
    st = check_book(op, &r, reterr);
    return st == IL_OK ? place_booking(op, tx, &r, reterr) : st;
}

il_status
campus_book(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    return campus_transact(&(struct campus_op){ c, in, out, NULL }, PIPELINE, "book", NULL, book,
                           reterr);
}

/* ---- cancel ---------------------------------------------------------------------------------- */

/* Close the gap that a booking leaves in the waitlist. */
static il_status
close_gap(struct campus_call *c, il_guard_tx *tx, const char *session, int64_t position,
          il_error *reterr)
{
    static const struct app_statement text = APP_STATEMENT_EACH(waitlist_close);

#ifdef IL_MUTANT_campus_gap_left
    return IL_OK;
#endif
    return campus_run(
        tx, &text,
        APP_VALUES(il_guard_text(c->tenant), il_guard_text(session), il_guard_int(position)), NULL,
        reterr);
}

/* A confirmed booking has ended: its place goes to the head of the waitlist, or is free. */
static il_status
pass_on(struct campus_call *c, il_guard_tx *tx, const char *session, il_error *reterr)
{
    static const struct app_statement promote    = APP_STATEMENT(waitlist_promote);
    int64_t                           n_promoted = 0;

    il_status st = campus_run(tx, &promote, CAMPUS_OF(c, session), &n_promoted, reterr);
    if (st != IL_OK)
        return st;
    return n_promoted > 0 ? close_gap(c, tx, session, 1, reterr)
                          : il_guard_add(tx, CAMPUS_SESSION(c, session), "available_spots", 1, NULL,
                                         NULL, reterr);
}

il_status
campus_booking_close(struct campus_call *c, il_guard_tx *tx, const char *id, il_error *reterr)
{
    static const struct app_statement cancel = APP_STATEMENT(booking_cancel);

    return campus_run(tx, &cancel,
                      APP_VALUES(il_guard_text(c->tenant), il_guard_text(id), il_guard_text(c->id)),
                      NULL, reterr);
}

il_status
campus_booking_end(struct campus_call *c, il_guard_tx *tx, const struct campus_live *b,
                   il_error *reterr)
{
    const char           *key  = campus_key(c, "booking_refund", b->id, NULL);
    struct campus_payment back = { CAMPUS_CREDITS, b->user, b->price, "BOOKING_REFUND", key, NULL };
    bool                  is_new = false;

    il_status st = campus_booking_close(c, tx, b->id, reterr);
    if (st == IL_OK)
        st = strcmp(b->state, "WAITLISTED") == 0 ? close_gap(c, tx, b->session, b->position, reterr)
                                                 : pass_on(c, tx, b->session, reterr);
    if (st == IL_OK && b->price > 0)
        st = campus_pay(c, tx, &back, &is_new, reterr);
    if (st == IL_OK && is_new)
        st = campus_event(c, tx, back.key, "INFO", "REFUND", reterr,
                          "booking %s: %" PRId64 " credits", b->id, b->price);
    return st;
}

/* Lock what a booking belongs to, in the order of ranks, and look again: it was read without a
 * lock. Its user and session never change. */
static il_status
lock_booking(struct campus_op *op, il_guard_tx *tx, bool with_user, struct stored *b,
             il_error *reterr)
{
    struct campus_call *c  = op->c;
    il_status           st = read_booking(op, tx, op->in->booking, b, reterr);

    if (st == IL_OK && with_user)
        st = campus_lock(c, tx, CAMPUS_USER(c, b->live.user), CAMPUS_E_USER_NOT_FOUND, reterr);
    if (st == IL_OK)
        st = campus_lock(c, tx, CAMPUS_SESSION(c, b->live.session), CAMPUS_E_SESSION_NOT_FOUND,
                         reterr);
    if (st == IL_OK)
        st = campus_lock(c, tx, CAMPUS_BOOKING(c, b->live.id), CAMPUS_E_BOOKING_NOT_FOUND, reterr);
#ifndef IL_MUTANT_campus_booking_not_read_again
    if (st == IL_OK)
        st = read_booking(op, tx, op->in->booking, b, reterr);
#endif
    return st;
}

static il_status
refuse_cancelled(struct campus_op *op, il_error *reterr)
{
    return campus_refuse(op->c, CAMPUS_E_BOOKING_CANCELLED, reterr,
                         "booking %s is already cancelled", op->in->booking);
}

static bool
is_cancelled(const struct stored *b)
{
    return strcmp(b->live.state, "CANCELLED") == 0;
}

static il_status
cancel(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct campus_op   *op = cookie;
    struct campus_call *c  = op->c;
    struct stored       b;

    il_status st = lock_booking(op, tx, true, &b, reterr);
    if (st != IL_OK)
        return st;
    if (is_cancelled(&b) && b.cancelled_by != NULL && strcmp(b.cancelled_by, c->id) == 0)
        return show_booking(op, tx, b.live.id, reterr); /* this call, repeated */
    if (is_cancelled(&b))
        return refuse_cancelled(op, reterr);
    if (b.start_ms - c->now_ms < CAMPUS_CANCEL_BEFORE_MS)
        return campus_refuse(c, CAMPUS_E_SESSION_TOO_SOON, reterr,
                             "session %s starts in less than %" PRId64 " hours", b.live.session,
                             HOURS(CAMPUS_CANCEL_BEFORE_MS));
    st = campus_booking_end(c, tx, &b.live, reterr);
    return st == IL_OK ? show_booking(op, tx, b.live.id, reterr) : st;
}

il_status
campus_cancel(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    return campus_transact(&(struct campus_op){ c, in, out, NULL }, PIPELINE, "cancel", NULL,
                           cancel, reterr);
}

/* ---- confirm --------------------------------------------------------------------------------- */

static il_status
confirm(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement text = APP_STATEMENT(booking_confirm);
    static const int64_t              zero = 0;
    struct campus_op                 *op   = cookie;
    struct campus_call               *c    = op->c;
    struct stored                     b;

    il_status st = lock_booking(op, tx, false, &b, reterr);
    if (st != IL_OK)
        return st;
    if (is_cancelled(&b))
        return refuse_cancelled(op, reterr);
    if (strcmp(b.live.state, "WAITLISTED") == 0) {
        st = il_guard_add(tx, CAMPUS_SESSION(c, b.live.session), "available_spots", -1, &zero, NULL,
                          reterr);
        if (st == IL_STATE)
            return campus_refuse(c, CAMPUS_E_SESSION_FULL, reterr, "session %s is full",
                                 b.live.session);
        if (st == IL_OK)
            st = campus_run(tx, &text, CAMPUS_OF(c, b.live.id), NULL, reterr);
        if (st == IL_OK)
            st = close_gap(c, tx, b.live.session, b.live.position, reterr);
    }
    return st == IL_OK ? show_booking(op, tx, b.live.id, reterr) : st;
}

il_status
campus_confirm(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    return campus_transact(&(struct campus_op){ c, in, out, NULL }, PIPELINE, "confirm", NULL,
                           confirm, reterr);
}

/* ---- attendance ------------------------------------------------------------------------------ */

/* The first record is kept; a different status is refused. */
static il_status
show_attendance(struct campus_op *op, const struct campus_rows *r, const char *state,
                il_error *reterr)
{
    struct campus_attendance *a = op->out;

    *a = (struct campus_attendance){ .id         = campus_text(r, 0, 0),
                                     .booking    = campus_text(r, 0, 1),
                                     .state      = campus_text(r, 0, 2),
                                     .created_ms = campus_int(r, 0, 3) };
    if (strcmp(a->state, state) == 0)
        return IL_OK;
    return campus_refuse(op->c, CAMPUS_E_ATTENDANCE_RECORDED, reterr,
                         "booking %s: attendance is already recorded as %s", a->booking, a->state);
}

static il_status
attend(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const char *const          unique[] = { "tenant", "booking_id" };
    static const struct app_statement get      = APP_STATEMENT(attendance_get);
    struct campus_op                 *op       = cookie;
    struct campus_call               *c        = op->c;
    const char           *state = op->in->attendance != NULL ? op->in->attendance : "PRESENT";
    const il_guard_column row[] = {
        { "tenant", il_guard_text(c->tenant) },           { "id", il_guard_text(c->id) },
        { "booking_id", il_guard_text(op->in->booking) }, { "status", il_guard_text(state) },
        { "created_at", il_guard_int(c->now_ms) },
    };
    struct stored      b;
    struct campus_rows r = { .n = 0 };

    il_status st = lock_booking(op, tx, false, &b, reterr);
    if (st == IL_OK)
        st = campus_read(c, tx, &get, CAMPUS_OF(c, b.live.id), &r, reterr);
    bool repeated = st == IL_OK && r.n > 0 && strcmp(campus_text(&r, 0, 0), c->id) == 0;
    if (st == IL_OK && !repeated && strcmp(b.live.state, "CONFIRMED") != 0)
        st = campus_refuse(c, CAMPUS_E_BOOKING_NOT_CONFIRMED, reterr,
                           "cannot record attendance: booking %s is %s, not CONFIRMED", b.live.id,
                           b.live.state);
    if (st == IL_OK && r.n == 0)
        st = il_guard_insert_or_get(tx, "attendance", row, ARRAY_LEN(row), unique,
                                    ARRAY_LEN(unique), NULL, NULL, reterr);
    if (st == IL_OK && r.n == 0)
        st = campus_read(c, tx, &get, CAMPUS_OF(c, b.live.id), &r, reterr);
    return st == IL_OK ? show_attendance(op, &r, state, reterr) : st;
}

il_status
campus_attend(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    if (in->attendance != NULL && strcmp(in->attendance, "PRESENT") != 0 &&
        strcmp(in->attendance, "ABSENT") != 0 && strcmp(in->attendance, "LATE") != 0)
        return il__error_set(reterr, IL_INVAL,
                             "field 'status': expected PRESENT, ABSENT or LATE, not '%.32s'",
                             in->attendance);
    return campus_transact(&(struct campus_op){ c, in, out, NULL }, PIPELINE, "attend", NULL,
                           attend, reterr);
}
