/*
 * owners.c: checks who owns the schema and its objects.
 *
 * A role that may create schemas could create ours first and fill it with its own functions, views
 * or triggers, which would then run with the rights of the user who installs the store, perhaps a
 * superuser. So nothing in a schema is read or called before the catalogue has confirmed that all
 * of it is ours.
 */
#include "base/error.h"
#include "store/postgres/postgres_internal.h"

#include "postgres_strangers.inc"

il_status
il__pg_owners_check(struct pg_conn *c, const char *schema, bool strict, int64_t until_ns,
                    il_error *reterr)
{
    il_status       st = IL_OK;
    struct pg_query q  = { .sql      = sql_strangers,
                           .n_params = 2,
                           .types    = { PG_TEXT, PG_BOOL },
                           .values   = { schema, strict ? "t" : "f" } };
    PGresult       *r  = il__pg_query(c, &q, until_ns);

    if (r == NULL)
        return il__pg_error(c, reterr);
#ifndef IL_MUTANT_strangers_trusted
    if (il__pq->PQntuples(r) > 0)
        st = il__error_set(reterr, IL_STORE,
                           "%s: %s %s in schema %s is owned by role %s, which is neither this user "
                           "nor a superuser",
                           c->shown, il__pq->PQgetvalue(r, 0, 0), il__pq->PQgetvalue(r, 0, 1),
                           schema, il__pq->PQgetvalue(r, 0, 2));
#endif
    il__pq->PQclear(r);
    return st;
}
