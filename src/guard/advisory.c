/*
 * advisory.c: PostgreSQL advisory locks in the database of a handle; store/postgres/advisory.c
 * takes and holds them.
 */
#include "base/error.h"
#include "guard/guard_internal.h"
#include "runtime/handle.h"
#include "store/postgres/conn.h"

static il_status
take(il_guard *g, const char *key, int64_t id, il_advisory **ret, il_error *reterr)
{
    struct il__store_advisory *inner = NULL;

    if (g->url == NULL || !il__guard_is_postgres(g))
        return il__error_set(reterr, IL_INVAL,
                             "advisory locks need a database that was opened with postgres://...");
    il_status st = il__pg_advisory_take_at(g->url, g->connect_timeout_ms, key, id, &inner, reterr);
    return st == IL_OK ? il__advisory_new(inner, ret, reterr) : st;
}

il_status
il_guard_advisory_take(il_guard *g, const char *key, il_advisory **ret, il_error *reterr)
{
    if (g == NULL || ret == NULL)
        return il__error_set(reterr, IL_INVAL, "the handle and ret must not be NULL");
    il_status st = il_check_key(key, reterr);
    return st == IL_OK ? take(g, key, 0, ret, reterr) : st;
}

il_status
il_guard_advisory_take_id(il_guard *g, int64_t id, il_advisory **ret, il_error *reterr)
{
    if (g == NULL || ret == NULL)
        return il__error_set(reterr, IL_INVAL, "the handle and ret must not be NULL");
    return take(g, NULL, id, ret, reterr);
}
