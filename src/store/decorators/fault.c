/*
 * fault.c: a store over another one whose n-th call fails, before or after its effect. With n = 1, 2, 3, …
 * until a run is left untouched, every place where a store can fail has been tried.
 */
#include <stdatomic.h>

#include "base/error.h"
#include "core/op.h"
#include "store/store.h"

struct fault_store {
    struct il__store     base;
    struct il__store    *inner;
    struct il__store_ops ops;
    enum il__fault_kind  kind;
    unsigned             n;
    atomic_uint          n_calls;
    atomic_bool          fired;
};

static void fault_free(struct il__store *s);

static struct fault_store *
fault_from(struct il__store *s)
{
    CHECK(s->ops->free == fault_free);
    return container_of(s, struct fault_store, base);
}

static il_status
call(struct il__store *s, il_op *const *ops, size_t n, il_error *reterr,
     il_status (*inner_call)(struct il__store *, il_op *const *, size_t, il_error *))
{
    struct fault_store *f     = fault_from(s);
    bool                fails = atomic_fetch_add(&f->n_calls, 1) + 1 == f->n;

    if (fails)
        atomic_store(&f->fired, true);
    if (fails && f->kind == IL__FAULT_BEFORE)
        return il__error_set(reterr, IL_STORE, "injected fault before call %u", f->n);
    il_status st = inner_call(f->inner, ops, n, reterr);
    if (!fails || st != IL_OK)
        return st;
    for (size_t i = 0; i < n; i++)
        il__op_reset(ops[i]); /* the caller must not learn anything */
    return il__error_set(reterr, IL_STORE, "injected fault after call %u", f->n);
}

static il_status
fault_apply(struct il__store *s, il_op *const *ops, size_t n, il_error *reterr)
{
    return call(s, ops, n, reterr, il__store_apply);
}

static il_status
fault_read(struct il__store *s, il_op *const *ops, size_t n, il_error *reterr)
{
    return call(s, ops, n, reterr, il__store_read);
}

static bool
fault_overdue(struct il__store *s)
{
    return il__store_overdue(fault_from(s)->inner);
}

static int64_t
fault_attend(struct il__store *s)
{
    return il__store_attend(fault_from(s)->inner);
}

/* Not counted among the calls: its faults are those of the caller's own connection. */
static il_status
fault_tx_begin(struct il__store *s, struct sqlite3 *db, struct il__store_tx **ret, il_error *reterr)
{
    return il__store_tx_begin(fault_from(s)->inner, db, ret, reterr);
}

static il_status
fault_report(struct il__store *s, const char *table, il__report_fn *each, void *cookie, il_error *reterr)
{
    return il__store_report(fault_from(s)->inner, table, each, cookie, reterr);
}

static il_status
fault_advisory_take(struct il__store *s, const char *key, int64_t id,
                    struct il__store_advisory **ret, il_error *reterr)
{
    return il__store_advisory_take(fault_from(s)->inner, key, id, ret, reterr);
}

static il_status
fault_guard_table(struct il__store *s, const struct il__table_guard *change,
                  il__table_guard_fn *each, void *cookie, il_error *reterr)
{
    return il__store_guard_table(fault_from(s)->inner, change, each, cookie, reterr);
}

static void
fault_free(struct il__store *s)
{
    struct fault_store *f = container_of(s, struct fault_store, base);

    il__store_free(f->inner);
    il__free(f);
}

bool
il__store_fault_fired(struct il__store *s)
{
    return atomic_load(&fault_from(s)->fired);
}

il_status
il__store_fault_wrap(struct il__store *inner, unsigned n, enum il__fault_kind kind,
                     struct il__store **ret, il_error *reterr)
{
    struct fault_store *f = il__calloc(1, sizeof *f);

    if (f == NULL)
        return il__error_set(reterr, IL_NOMEM, "no memory for a fault");
    f->inner = inner;
    f->kind  = kind;
    f->n     = n;
    f->ops   = (struct il__store_ops){
          .name          = "fault",
          .caps          = inner->ops->caps,
          .free          = fault_free,
          .apply         = fault_apply,
          .read          = fault_read,
          .overdue       = fault_overdue,
          .attend        = fault_attend,
          .tx_begin      = fault_tx_begin,
          .report        = fault_report,
          .advisory_take = fault_advisory_take,
          .guard_table   = fault_guard_table,
    };
    f->base = (struct il__store){ .ops = &f->ops, .board = inner->board };
    *ret    = &f->base;
    return IL_OK;
}
