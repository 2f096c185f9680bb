/*
 * constraint.c: tells whether a constraint is in force. PostgreSQL's catalogue knows all of them by
 * name. SQLite has names of indexes only; those of other constraints are in the text of CREATE
 * TABLE.
 */
#include "base/error.h"
#include "guard/guard_internal.h"

struct found {
    const char *name;
    bool        there, unenforced;
};

/* A row is the constraint itself (a 1), or a text that may declare it. */
static int
take(void *cookie, const il_guard_row *row)
{
    struct found *f = cookie;

    if (row->values[0].type == IL_GUARD_INT)
        f->there = true;
    else if (row->values[0].type == IL_GUARD_TEXT) {
        bool foreign  = false;
        f->there      = il__guard_declares(row->values[0].data, f->name, &foreign);
        f->unenforced = f->there && foreign && row->values[1].integer == 0;
    }
    return !f->there;
}

il_status
il_guard_require_constraint(il_guard_tx *tx, const char *table, const char *name, il_error *reterr)
{
    struct guard_table *t = NULL;
    struct found        f = { .name = name };

    if (tx == NULL || name == NULL || name[0] == '\0' || strlen(name) > IL_GUARD_NAME_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL, "tx and a constraint name must be given");
    il_status st = il__guard_table(tx, table, &t, reterr);
    if (st != IL_OK)
        return st;
    il_guard_value         values[] = { il_guard_text(t->schema), il_guard_text(t->name),
                                        il_guard_text(name) };
    struct guard_statement s        = { .sql      = tx->c->ops->texts[GUARD_TEXT_CONSTRAINT],
                                        .values   = values,
                                        .n_values = ARRAY_LEN(values),
                                        .each     = take,
                                        .cookie   = &f };
    st                              = il__guard_run(tx, &s, reterr);
    if (st == IL_OK && f.unenforced)
        return il__error_set(reterr, IL_NOT_FOUND,
                             "constraint %s of table %s is not in force: foreign_keys is off", name,
                             table);
    if (st == IL_OK && !f.there)
        st = il__error_set(reterr, IL_NOT_FOUND, "table %s has no constraint %s", table, name);
    return st;
}
