/*
 * fault_store.c: a wrapper around a store whose n-th call fails, before or after its effect. Trying
 * n = 1, 2, 3, … until a run sees no failure covers every place where a store can fail.
 */
#include <stdatomic.h>

#include "base/error.h"
#include "core/op.h"
#include "harness/fault_store.h"
#include "store/decorators/decorator.h"

struct fault_store {
    struct decorator_store over;
    enum t_fault_kind      kind;
    unsigned               n;
    atomic_uint            n_calls;
    atomic_bool            fired;
};

static void fault_free(struct il__store *s);

static struct fault_store *
fault_from(struct il__store *s)
{
    CHECK(s->ops->free == fault_free);
    return container_of(il__decorator_from(s), struct fault_store, over);
}

static il_status
call(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr,
     il_status (*inner_call)(struct il__store *, il_op *const *, size_t, size_t *, il_error *))
{
    struct fault_store *f     = fault_from(s);
    bool                fails = atomic_fetch_add(&f->n_calls, 1) + 1 == f->n;

    if (fails)
        atomic_store(&f->fired, true);
    if (fails && f->kind == T_FAULT_BEFORE)
        return il__error_set(reterr, IL_STORE, "injected fault before call %u", f->n);
    il_status st = inner_call(f->over.inner, ops, n, ret_done, reterr);
    if (!fails || st != IL_OK)
        return st;
    for (size_t i = 0; i < n; i++)
        il__op_reset(ops[i]); /* the caller must not learn anything */
    return il__error_set(reterr, IL_STORE, "injected fault after call %u", f->n);
}

static il_status
fault_apply(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    return call(s, ops, n, ret_done, reterr, il__store_apply);
}

static il_status
fault_read(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    return call(s, ops, n, ret_done, reterr, il__store_read);
}

static void
fault_free(struct il__store *s)
{
    struct fault_store *f = container_of(il__decorator_from(s), struct fault_store, over);

    il__store_free(f->over.inner);
    il__free(f);
}

bool
t_fault_fired(struct il__store *s)
{
    return atomic_load(&fault_from(s)->fired);
}

il_status
t_fault_wrap(struct il__store *inner, unsigned n, enum t_fault_kind kind, struct il__store **ret,
             il_error *reterr)
{
    struct fault_store *f = il__calloc(1, sizeof *f);

    if (f == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a fault");
    il__decorator_init(&f->over, "fault", inner, fault_free);
    f->over.ops.apply = fault_apply;
    f->over.ops.read  = fault_read;
    f->kind           = kind;
    f->n              = n;
    *ret              = &f->over.base;
    return IL_OK;
}
