/*
 * schema.c: creates tables and upgrades them to the newest version; see schema.h.
 */
#include "core/schema.h"

#include "base/error.h"

il_status
il__schema_look(const struct il__schema_tables *t, struct il__migration *ret, il_error *reterr)
{
    int64_t version = 0, min_version = 0;

    il_status st = t->ops->look(t->db, &version, &min_version, reterr);
    if (st != IL_OK)
        return st;
    if (version < 0 || version > INT32_MAX) /* it will be the index of a step */
        return il__error_set(reterr, IL_CORRUPT, "%s: %s have an invalid version: %lld", t->where,
                             t->what, (long long)version);
    if (min_version > t->schema->version)
        return il__error_set(
            reterr, IL_NEWER,
            "%s: version %lld of %s was created by a newer Interlock; this one supports %d",
            t->where, (long long)version, t->what, t->schema->version);
    *ret =
        (struct il__migration){ .from = (int)version, .to = MAX((int)version, t->schema->version) };
    return IL_OK;
}

static il_status
look_and_judge(const struct il__schema_tables *t, unsigned may, struct il__migration *ret,
               il_error *reterr)
{
    il_status st = il__schema_look(t, ret, reterr);

    if (st != IL_OK || ret->from == ret->to)
        return st;
    if (ret->from == 0 && (may & IL__SCHEMA_CREATE) == 0)
        return il__error_set(reterr, IL_NOT_FOUND, "%s: %s do not exist yet", t->where, t->what);
    if (ret->from != 0 && (may & IL__SCHEMA_UPGRADE) == 0)
        return il__error_set(
            reterr, IL_STORE,
            "%s: %s have version %d, but this Interlock needs %d; run `interlock migrate`",
            t->where, t->what, ret->from, ret->to);
    return IL_OK;
}

struct upgrade {
    const struct il__schema_tables *tables;
    unsigned                        may;
};

/* Look again: another process may have been faster. Race-free: no other upgrade runs before this
 * transaction has ended. */
static il_status
upgrade(void *cookie, il_error *reterr)
{
    const struct upgrade           *u  = cookie;
    const struct il__schema_tables *t  = u->tables;
    struct il__migration            m  = { 0 };
    il_status                       st = look_and_judge(t, u->may, &m, reterr);

    if (st != IL_OK || m.from == m.to)
        return st;
    for (int version = m.from; st == IL_OK && version < m.to; version++)
        st = t->ops->step(t->db, version, reterr);
    return st == IL_OK ? t->ops->record(t->db, m.to, t->schema->min_version, reterr) : st;
}

il_status
il__schema_prepare(const struct il__schema_tables *t, unsigned may, struct il__migration *ret,
                   il_error *reterr)
{
    struct upgrade u  = { t, may };
    il_status      st = look_and_judge(t, may, ret, reterr);

    if (st != IL_OK || ret->from == ret->to)
        return st;
    return t->ops->transact(t->db, upgrade, &u, reterr);
}
