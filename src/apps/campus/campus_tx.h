/*
 * campus_tx.h: what the operations share: transactions, rows, events and refusals.
 */
#ifndef IL_APPS_CAMPUS_CAMPUS_TX_H
#define IL_APPS_CAMPUS_CAMPUS_TX_H

#include "apps/campus/campus.h"

/* ---- transactions ---------------------------------------------------------------------------- */

/* An operation on its way through a transaction: the cookie of its function. */
struct campus_op {
    struct campus_call     *c;
    const struct campus_in *in;
    void                   *out;
    void                   *own; /* of the operation */
};

/* Run fn in a transaction, as `pipeline` and `caller` in its events. fence may be NULL. */
il_status campus_transact(struct campus_op *op, const char *pipeline, const char *caller,
                          const il_guard_fence *fence, il_guard_fn *fn, il_error *reterr) MUST_USE;
/* The same for one that only reads. */
il_status campus_transact_read_only(struct campus_op *op, const char *pipeline,
                                    const il_guard_fence *fence, il_guard_fn *fn, il_error *reterr)
    MUST_USE;

/* What is left until the deadline of the call, at least 1; without one, `otherwise`. */
int64_t campus_left_ms(const struct campus_call *c, int64_t otherwise);

/* Refuse: sets c->code and *reterr, and returns the status of the code. */
il_status campus_refuse(struct campus_call *c, enum campus_code code, il_error *reterr,
                        const char *fmt, ...) PRINTF_LIKE(4, 5) MUST_USE;
il_status campus_no_memory(il_error *reterr) MUST_USE;

/* ---- rows ------------------------------------------------------------------------------------ */

/* Rows of a statement, copied into c->mem. */
struct campus_rows {
    void          **mem;
    size_t          n, n_columns;
    il_guard_value *cells;
    bool            failed;
};
il_status campus_read(struct campus_call *c, il_guard_tx *tx, const struct app_statement *s,
                      const il_guard_value *values, size_t n_values, struct campus_rows *ret,
                      il_error *reterr) MUST_USE;
/* A cell: 0 and NULL for SQL NULL. */
int64_t     campus_int(const struct campus_rows *r, size_t row, size_t column);
double      campus_number(const struct campus_rows *r, size_t row, size_t column);
const char *campus_text(const struct campus_rows *r, size_t row, size_t column);
/* The texts of the first column; NULL: out of memory. */
const char **campus_ids(struct campus_call *c, const struct campus_rows *r);

/* Execute a statement; *ret_n (may be NULL): the rows that it changed. */
il_status campus_run(il_guard_tx *tx, const struct app_statement *s, const il_guard_value *values,
                     size_t n_values, int64_t *ret_n, il_error *reterr) MUST_USE;

/* The values of a statement on the row with this id. */
#define CAMPUS_OF(c, id) APP_VALUES(il_guard_text((c)->tenant), il_guard_text(id))
/* The row with this id, as a target of il_guard_lock() and il_guard_add(). */
#define CAMPUS_ROW(entity, table, c, id)                                     \
    (&(const il_guard_target){                                               \
        entity, table,                                                       \
        (const il_guard_column[]){ { "tenant", il_guard_text((c)->tenant) }, \
                                   { "id", il_guard_text(id) } },            \
        2, IL_GUARD_PLACE })
#define CAMPUS_SEMESTER(c, id) CAMPUS_ROW("Semester", "semesters", c, id)
#define CAMPUS_ENROLLMENT(c, id) CAMPUS_ROW("SemesterEnrollment", "semester_enrollments", c, id)
#define CAMPUS_LICENSE(c, id) CAMPUS_ROW("UserLicense", "user_licenses", c, id)
#define CAMPUS_USER(c, id) CAMPUS_ROW("User", "users", c, id)
#define CAMPUS_SESSION(c, id) CAMPUS_ROW("Session", "sessions", c, id)
#define CAMPUS_BOOKING(c, id) CAMPUS_ROW("Booking", "bookings", c, id)

/* Lock a row; IL_NOT_FOUND becomes a refusal with this code. */
il_status campus_lock(struct campus_call *c, il_guard_tx *tx, const il_guard_target *row,
                      enum campus_code missing, il_error *reterr) MUST_USE;
/* The same, and then read what depends on it, in one round trip. */
il_status campus_lock_read(struct campus_call *c, il_guard_tx *tx, const il_guard_target *row,
                           enum campus_code missing, const struct app_statement *s,
                           const il_guard_value *values, size_t n_values, struct campus_rows *ret,
                           il_error *reterr) MUST_USE;
/* Lock all rows of a table with these ids, which are sorted: in chunks, in key order. */
il_status campus_lock_all(struct campus_call *c, il_guard_tx *tx, const char *entity,
                          const char *table, const char *const *ids, size_t n, const char *place,
                          il_error *reterr) MUST_USE;

/* ---- events ---------------------------------------------------------------------------------- */

/* Insert a row of system_events. */
il_status campus_event(struct campus_call *c, il_guard_tx *tx, const char *id, const char *level,
                       const char *type, il_error *reterr, const char *fmt, ...) PRINTF_LIKE(7, 8)
    MUST_USE;
/* Does the event exist? */
il_status campus_event_exists(struct campus_call *c, il_guard_tx *tx, const char *id, bool *ret,
                              il_error *reterr) MUST_USE;
/* Count a race that a constraint decided, and record it. */
il_status campus_count_race(struct campus_call *c, il_guard_tx *tx, enum campus_race race,
                            const char *what, il_error *reterr) MUST_USE;

/* "prefix_a_b" in c->mem, NULL: out of memory. */
const char *campus_key(struct campus_call *c, const char *prefix, const char *a, const char *b);

/* ---- entities (entity.c) --------------------------------------------------------------------- */

/* Refused if it does not exist. */
il_status campus_user_read(struct campus_call *c, il_guard_tx *tx, const char *id,
                           struct campus_user *ret, il_error *reterr) MUST_USE;
il_status campus_tournament_read(struct campus_call *c, il_guard_tx *tx, const char *id,
                                 struct campus_tournament *ret, il_error *reterr) MUST_USE;
il_status campus_license_read(struct campus_call *c, il_guard_tx *tx, const char *id,
                              struct campus_license *ret, il_error *reterr) MUST_USE;
/* The same under its lock. */
il_status campus_tournament_lock(struct campus_call *c, il_guard_tx *tx, const char *id,
                                 struct campus_tournament *ret, il_error *reterr) MUST_USE;
il_status campus_license_lock(struct campus_call *c, il_guard_tx *tx, const char *id,
                              struct campus_license *ret, il_error *reterr) MUST_USE;
/* Row i of a statement that returns @license@ or @tournament@ (entity.sql). */
struct campus_license    campus_license_of(const struct campus_rows *r, size_t i);
struct campus_tournament campus_tournament_of(const struct campus_rows *r, size_t i);
/* Parse a JSON object; NULL text gives an empty one. `field` names it in messages. */
il_status campus_parse(const char *text, const char *field, json_t **ret, il_error *reterr)
    MUST_USE;

/* ---- shared by pipelines --------------------------------------------------------------------- */

/* booking.c: free the place of a live booking, whose session this transaction has locked: cancel
 * it, refund its price, and promote the head of the waitlist. Its user's row must be locked, too,
 * if it has a price. */
struct campus_live {
    const char *id, *user, *session, *state;
    int64_t     position, price;
};
il_status campus_booking_end(struct campus_call *c, il_guard_tx *tx, const struct campus_live *b,
                             il_error *reterr) MUST_USE;
/* booking.c: only mark it as cancelled by this call. */
il_status campus_booking_close(struct campus_call *c, il_guard_tx *tx, const char *id,
                               il_error *reterr) MUST_USE;
/* The columns of bookings of a session or a user, as `campus_live` of row i. */
struct campus_live campus_live_of(const struct campus_rows *r, size_t i);

/* skill.c: write football_skills of a license that this transaction has locked. */
il_status campus_skills_store(struct campus_call *c, il_guard_tx *tx, const char *license,
                              const json_t *skills, il_error *reterr) MUST_USE;
/* tournament.c: take an edge; the tournament's row is locked. `event`: id of the system event. */
il_status campus_move(struct campus_call *c, il_guard_tx *tx, const char *tournament,
                      enum campus_state from, enum campus_state to, const char *event,
                      il_error *reterr) MUST_USE;
/* reward.c: refuse while matches are unfinished: outside IN_PROGRESS, none can be finished. The
 * tournament's row is locked. *ret: the row of matches_unfinished. */
il_status campus_require_matches(struct campus_op *op, il_guard_tx *tx, struct campus_rows *ret,
                                 il_error *reterr) MUST_USE;

#endif
