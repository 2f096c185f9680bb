/*
 * order.c: lock order in the SQLite engine. The learned edges are also cached in memory;
 * il_state.order_n shows when another process has learned new ones.
 */
#include "core/order.h"

#include "base/arena.h"
#include "core/key.h"
#include "core/op.h"
#include "store/sqlite/sqlite_internal.h"

static bool
load_edges(struct sq_store *s)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_order_load);
    int             rc;

    if (s->order_n == s->state.order_n)
        return true;
    il__order_release(&s->order);
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        const char *first = il__sq_text(row, 1);
        const char *then  = il__sq_text(row, 2);
        if (s->order.n >= IL__ORDER_EDGES_MAX)
            continue;
        if (!il__order_add(&s->order, il__sq_text(row, 0), first, strlen(first), then, strlen(then),
                           il__sq_text(row, 3), il__sq_text(row, 4))) {
            (void)sqlite3_reset(row);
            return il__sq_no_memory(&s->conn);
        }
    }
    s->order_n = s->state.order_n;
    return rc == SQLITE_DONE;
}

static bool
learn(struct sq_store *s, const il_op *op, const struct il__order_hold *hold, const char *place)
{
    struct sq_conn *c           = &s->conn;
    sqlite3_stmt   *stmt        = il__sq_use(c, SQ_order_add);
    size_t          first_bytes = il__key_class_bytes(hold->key);
    size_t          then_bytes  = il__key_class_bytes(op->key);

    if (!il__order_add(&s->order, op->tenant, hold->key, first_bytes, op->key, then_bytes,
                       hold->place, place))
        return il__sq_no_memory(&s->conn);
    s->order_n = ++s->state.order_n;
    return il__sq_bind_text(c, stmt, 1, op->tenant) &&
           il__sq_bind_bytes(c, stmt, 2, hold->key, first_bytes) &&
           il__sq_bind_bytes(c, stmt, 3, op->key, then_bytes) &&
           il__sq_bind_text(c, stmt, 4, hold->place) && il__sq_bind_text(c, stmt, 5, place) &&
           il__sq_run(c, stmt);
}

/* A violation of the learned order is reported once, and the acquire continues. A new edge is
 * learned. */
static bool
judge(struct sq_store *s, il_op *op, const struct il__order_hold *hold)
{
    struct il__buf AUTO_BUF why   = { .n_bytes_max = 4096 };
    const char             *place = op->in.lock.place != NULL ? op->in.lock.place : "";

    switch (il__order_judge(&s->order, op->tenant, hold, op->key, place, &why)) {
    case IL__ORDER_NEW:
        return learn(s, op, hold, place);
    case IL__ORDER_AGAINST:
        if (op->out.detail == NULL) {
            op->out.flags |= IL_OUT_ORDER_WARNING;
            op->out.detail = il__op_strdup(op, il__buf_str(&why));
        }
        return true;
    case IL__ORDER_FINE:
    default:
        return true;
    }
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
        if ((n & (n - 1)) == 0) {
            struct il__order_hold *grown =
                il__arena_alloc(&s->scratch, (n == 0 ? 1 : 2 * n) * sizeof *grown);
            if (grown != NULL && n > 0)
                memcpy(grown, holds, n * sizeof *grown);
            holds = grown;
        }
        const char *key   = il__arena_strdup(&s->scratch, il__sq_text(row, 0));
        const char *place = il__arena_strdup(&s->scratch, il__sq_text(row, 1));
        if (holds == NULL || key == NULL || place == NULL) {
            (void)sqlite3_reset(row);
            return il__sq_no_memory(&s->conn);
        }
        holds[n++] = (struct il__order_hold){ .key = key, .place = place };
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
