/*
 * order.c: lock order in the SQLite engine. The learned edges are also cached in memory;
 * il_state.order_n shows when another process has learned new ones.
 */
#include "core/order.h"

#include "base/arena.h"
#include "core/key.h"
#include "core/op.h"
#include "store/sqlite/sqlite_internal.h"

/* Add the edges that a statement returns. */
static bool
add_rows(struct sq_conn *c, sqlite3_stmt *row, struct il__order *ret)
{
    int rc;

    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        struct il__order_seen e = { .tenant      = il__sq_text(row, 0),
                                    .first       = il__sq_text(row, 1),
                                    .then        = il__sq_text(row, 2),
                                    .first_place = il__sq_text(row, 3),
                                    .then_place  = il__sq_text(row, 4),
                                    .against     = sqlite3_column_int(row, 5) != 0 };
        if (ret->n < IL__ORDER_EDGES_MAX && !il__order_add(ret, &e)) {
            (void)sqlite3_reset(row);
            return il__sq_no_memory(c);
        }
    }
    return rc == SQLITE_DONE;
}

static bool
load_edges(struct sq_store *s)
{
    if (s->order_n == s->state.order_n)
        return true;
    il__order_release(&s->order);
    if (!add_rows(&s->conn, il__sq_use(&s->conn, SQ_order_load), &s->order))
        return false;
    s->order_n = s->state.order_n;
    return true;
}

static bool
learn(struct sq_store *s, const struct il__order_seen *e)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_order_add);

    if (!il__order_add(&s->order, e))
        return il__sq_no_memory(&s->conn);
    s->order_n = ++s->state.order_n;
    return il__sq_bind_text(c, stmt, 1, e->tenant) &&
           il__sq_bind_bytes(c, stmt, 2, e->first, il__key_class_bytes(e->first)) &&
           il__sq_bind_bytes(c, stmt, 3, e->then, il__key_class_bytes(e->then)) &&
           il__sq_bind_text(c, stmt, 4, e->first_place) &&
           il__sq_bind_text(c, stmt, 5, e->then_place) && il__sq_bind_int(c, stmt, 6, e->against) &&
           il__sq_stmt_run(c, stmt);
}

/* A violation of the known order is reported once, and the acquire continues. A new edge is
 * learned. */
static bool
judge(struct sq_store *s, il_op *op, const struct il__order_hold *hold)
{
    struct il__buf AUTO_BUF why   = { .n_bytes_max = 4096 };
    const char             *place = op->in.lock.place != NULL ? op->in.lock.place : "";

    unsigned verdict = il__order_judge(&s->order, op->tenant, hold, op->key, place, &why);
    bool     against = (verdict & IL__ORDER_AGAINST) != 0;
    if (against && op->out.detail == NULL) {
        op->out.flags |= IL_OUT_ORDER_WARNING;
        op->out.detail = il__op_strdup(op, il__buf_str(&why));
    }
    return (verdict & IL__ORDER_LEARN) == 0 || learn(s, &(struct il__order_seen){
                                                            .tenant      = op->tenant,
                                                            .first       = hold->key,
                                                            .then        = op->key,
                                                            .first_place = hold->place,
                                                            .then_place  = place,
                                                            .against     = against,
                                                        });
}

/* What the unit of work holds, in the scratch arena. */
static bool
load_holds(struct sq_store *s, const il_op *op, struct il__order_hold **ret, size_t *ret_n)
{
    struct sq_conn        *c     = &s->conn;
    sqlite3_stmt          *row   = il__sq_use(c, SQ_lease_of_unit);
    struct il__order_hold *holds = NULL;
    size_t                 n     = 0;
    int                    rc;

    if (!il__sq_bind_text(c, row, 1, op->tenant) ||
        !il__sq_bind_bytes(c, row, 2, op->holder, il__holder_root_bytes(op->holder)) ||
        !il__sq_bind_int(c, row, 3, s->state.now_ms))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        struct il__order_hold *h     = il__arena_append(&s->scratch, &holds, &n, sizeof *h);
        const char            *key   = il__arena_strdup(&s->scratch, il__sq_text(row, 0));
        const char            *place = il__arena_strdup(&s->scratch, il__sq_text(row, 1));
        if (h == NULL || key == NULL || place == NULL) {
            (void)sqlite3_reset(row);
            return il__sq_no_memory(&s->conn);
        }
        *h = (struct il__order_hold){ .key = key, .place = place };
    }
    *ret   = holds;
    *ret_n = n;
    return rc == SQLITE_DONE;
}

/* Does a declared rank allow a new request? If not, sets the op's status and reason. */
bool
il__sq_rank(struct sq_store *s, il_op *op)
{
    struct il__order_hold *holds;
    size_t                 n;

    if (s->ranks.n == 0)
        return true;
    if (!load_holds(s, op, &holds, &n))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct il__buf AUTO_BUF why = { .n_bytes_max = 4096 };
        if (!il__order_rank_ok(&s->ranks, &holds[i], op->key, op->in.lock.place, &why)) {
            il__op_end(op, IL_ORDER, il__buf_str(&why));
            return true;
        }
    }
    return true;
}

/* Before a new request is granted, or after it was queued: learn from what the unit of work holds,
 * and report a violation of the known order. */
bool
il__sq_learn(struct sq_store *s, il_op *op)
{
    struct il__order_hold *holds;
    size_t                 n;

    if (!load_holds(s, op, &holds, &n) || (n > 0 && !load_edges(s)))
        return false;
    for (size_t i = 0; i < MIN(n, IL__ORDER_HOLDS_MAX); i++) {
        if (!judge(s, op, &holds[i]))
            return false;
    }
    return true;
}

/* From the rows, not from our copy of them, which belongs to the writer. */
bool
il__sq_order_list(struct sq_conn *c, const struct il__ranks *ranks, il_op *op)
{
    sqlite3_stmt    *row   = il__sq_use(c, SQ_order_of_tenant);
    struct il__order order = { 0 };

    bool ok = il__sq_bind_text(c, row, 1, op->tenant) && add_rows(c, row, &order);
    if (ok)
        il__order_list(&order, ranks, op);
    il__order_release(&order);
    return ok;
}
