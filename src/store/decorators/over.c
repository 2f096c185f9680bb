/*
 * over.c: handing on to the inner store. One caller of apply at a time: decorators keep no state per caller.
 */
#include "store/decorators/over.h"

static il_status
over_apply(struct il__store *s, il_op *const *ops, size_t n, il_error *reterr)
{
    return il__store_apply(il__over_from(s)->inner, ops, n, reterr);
}

static il_status
over_read(struct il__store *s, il_op *const *ops, size_t n, il_error *reterr)
{
    return il__store_read(il__over_from(s)->inner, ops, n, reterr);
}

static bool
over_overdue(struct il__store *s)
{
    return il__store_overdue(il__over_from(s)->inner);
}

static int64_t
over_attend(struct il__store *s)
{
    return il__store_attend(il__over_from(s)->inner);
}

static il_status
over_wait(struct il__store *s, const il_op *op, int64_t timeout_ms, const atomic_bool *interrupted)
{
    struct il__store *inner = il__over_from(s)->inner;

    return inner->ops->wait(inner, op, timeout_ms, interrupted);
}

static void
over_announce(struct il__store *s, const char *text)
{
    il__store_announce(il__over_from(s)->inner, text);
}

/* What happens in it is the caller's own: neither told nor failed. */
static il_status
over_tx_begin(struct il__store *s, struct sqlite3 *db, struct il__store_tx **ret, il_error *reterr)
{
    return il__store_tx_begin(il__over_from(s)->inner, db, ret, reterr);
}

static il_status
over_report(struct il__store *s, const char *table, il__report_fn *each, void *cookie, il_error *reterr)
{
    return il__store_report(il__over_from(s)->inner, table, each, cookie, reterr);
}

static il_status
over_advisory_take(struct il__store *s, const char *key, int64_t id,
                   struct il__store_advisory **ret, il_error *reterr)
{
    return il__store_advisory_take(il__over_from(s)->inner, key, id, ret, reterr);
}

static il_status
over_guard_table(struct il__store *s, const struct il__table_guard *change,
                 il__table_guard_fn *each, void *cookie, il_error *reterr)
{
    return il__store_guard_table(il__over_from(s)->inner, change, each, cookie, reterr);
}

static il_status
over_request(struct il__store *s, struct il__request *r, il_error *reterr)
{
    return il__store_request(il__over_from(s)->inner, r, reterr);
}

void
il__over_init(struct over_store *o, const char *name, struct il__store *inner,
              void (*free_self)(struct il__store *s))
{
    o->inner = inner;
    o->ops   = (struct il__store_ops){
          .name          = name,
          .caps          = inner->ops->caps,
          .free          = free_self,
          .apply         = over_apply,
          .read          = over_read,
          .overdue       = over_overdue,
          .attend        = over_attend,
          .announce      = inner->ops->announce != NULL ? over_announce : NULL,
          .wait          = inner->ops->wait != NULL ? over_wait : NULL,
          .tx_begin      = over_tx_begin,
          .report        = over_report,
          .advisory_take = over_advisory_take,
          .guard_table   = over_guard_table,
          .request       = over_request,
    };
    o->base = (struct il__store){ .ops = &o->ops, .board = inner->board, .tenant = inner->tenant };
}
