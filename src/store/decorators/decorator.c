/*
 * decorator.c: callbacks that forward to the inner store. Only one caller may use apply at a time,
 * because decorators keep no state per caller.
 */
#include "store/decorators/decorator.h"

static il_status
inner_apply(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    return il__store_apply(il__decorator_from(s)->inner, ops, n, ret_done, reterr);
}

static il_status
inner_read(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    return il__store_read(il__decorator_from(s)->inner, ops, n, ret_done, reterr);
}

static bool
inner_overdue(struct il__store *s)
{
    return il__store_overdue(il__decorator_from(s)->inner);
}

static int64_t
inner_attend(struct il__store *s)
{
    return il__store_attend(il__decorator_from(s)->inner);
}

static il_status
inner_wait(struct il__store *s, const il_op *op, int64_t timeout_ms, const atomic_bool *interrupted)
{
    struct il__store *inner = il__decorator_from(s)->inner;

    return inner->ops->wait(inner, op, timeout_ms, interrupted);
}

static void
inner_announce(struct il__store *s, const char *text)
{
    il__store_announce(il__decorator_from(s)->inner, text);
}

/* The transaction is the caller's own: it is neither traced nor failed. */
static il_status
inner_tx_begin(struct il__store *s, struct sqlite3 *db, struct il__store_tx **ret, il_error *reterr)
{
    return il__store_tx_begin(il__decorator_from(s)->inner, db, ret, reterr);
}

static il_status
inner_report(struct il__store *s, const char *table, il__report_fn *each, void *cookie,
             il_error *reterr)
{
    return il__store_report(il__decorator_from(s)->inner, table, each, cookie, reterr);
}

static il_status
inner_advisory_take(struct il__store *s, const char *key, int64_t id,
                    struct il__store_advisory **ret, il_error *reterr)
{
    return il__store_advisory_take(il__decorator_from(s)->inner, key, id, ret, reterr);
}

static il_status
inner_guard_table(struct il__store *s, const struct il__table_guard *change,
                  il__table_guard_fn *each, void *cookie, il_error *reterr)
{
    return il__store_guard_table(il__decorator_from(s)->inner, change, each, cookie, reterr);
}

static il_status
inner_request(struct il__store *s, struct il__request *r, il_error *reterr)
{
    return il__store_request(il__decorator_from(s)->inner, r, reterr);
}

void
il__decorator_init(struct decorator_store *o, const char *name, struct il__store *inner,
                   void (*free_self)(struct il__store *s))
{
    o->inner = inner;
    o->ops   = (struct il__store_ops){
          .name          = name,
          .caps          = inner->ops->caps,
          .free          = free_self,
          .apply         = inner_apply,
          .read          = inner_read,
          .overdue       = inner_overdue,
          .attend        = inner_attend,
          .announce      = inner->ops->announce != NULL ? inner_announce : NULL,
          .wait          = inner->ops->wait != NULL ? inner_wait : NULL,
          .tx_begin      = inner_tx_begin,
          .report        = inner_report,
          .advisory_take = inner_advisory_take,
          .guard_table   = inner_guard_table,
          .request       = inner_request,
    };
    o->base = (struct il__store){ .ops = &o->ops, .board = inner->board, .tenant = inner->tenant };
}
