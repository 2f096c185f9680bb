/*
 * advisory.c: PostgreSQL advisory locks held alongside a lease: the public calls on top of the
 * engine's functions (store/postgres/advisory.c).
 */
#include "base/error.h"
#include "runtime/handle.h"

struct il_advisory {
    struct il__store_advisory *inner;
};

il_status
il__advisory_new(struct il__store_advisory *inner, il_advisory **ret, il_error *reterr)
{
    il_advisory *a = il__calloc(1, sizeof *a);

    if (a == NULL) {
        inner->release(inner);
        return il__error_set(reterr, IL_NOMEM, "out of memory for an advisory lock");
    }
    a->inner = inner;
    *ret     = a;
    return IL_OK;
}

static il_status
take(il *h, const char *key, int64_t id, il_advisory **ret, il_error *reterr)
{
    struct il__store_advisory *inner = NULL;

    il_status st = il__store_advisory_take(h->store, key, id, &inner, reterr);
    return st == IL_OK ? il__advisory_new(inner, ret, reterr) : st;
}

il_status
il_advisory_take(il *h, const char *key, il_advisory **ret, il_error *reterr)
{
    if (h == NULL || ret == NULL)
        return il__error_set(reterr, IL_INVAL, "the handle and ret must not be NULL");
    il_status st = il_check_key(key, reterr);
    return st == IL_OK ? take(h, key, 0, ret, reterr) : st;
}

il_status
il_advisory_take_id(il *h, int64_t id, il_advisory **ret, il_error *reterr)
{
    if (h == NULL || ret == NULL)
        return il__error_set(reterr, IL_INVAL, "the handle and ret must not be NULL");
    return take(h, NULL, id, ret, reterr);
}

il_status
il_advisory_check(il_advisory *a, il_error *reterr)
{
    if (a == NULL)
        return il__error_set(reterr, IL_INVAL, "no advisory lock given");
    return a->inner->check(a->inner, reterr);
}

int
il_advisory_fd(const il_advisory *a)
{
    return a != NULL ? a->inner->fd : -1;
}

void
il_advisory_release(il_advisory *a)
{
    if (a == NULL)
        return;
    a->inner->release(a->inner);
    il__free(a);
}
