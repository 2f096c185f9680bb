/*
 * insert.c: inserts a row, or returns the existing one.
 *
 * The INSERT runs in a savepoint, so that a unique violation does not doom the transaction. Then
 * the other row exists, and its transaction has committed (the INSERT waited for it): it is read.
 * If it is missing, it was deleted meanwhile, or another unique constraint was violated; a second
 * INSERT tells which.
 */
#include "base/arena.h"
#include "base/error.h"
#include "guard/guard_internal.h"

#include "guard_rows_sql.inc"

struct insert {
    il_guard_tx           *tx;
    struct guard_table    *t;
    const il_guard_column *columns;
    size_t                 n_columns;
    il_guard_column        unique[IL_GUARD_KEY_COLUMNS_MAX];
    size_t                 n_unique;
};

static const il_guard_column *
column_of(const struct insert *in, const char *name)
{
    for (size_t i = 0; i < in->n_columns; i++) {
        if (strcmp(in->columns[i].name, name) == 0)
            return &in->columns[i];
    }
    return NULL;
}

static il_status
check(struct insert *in, const char *table, const char *const *unique, size_t n_unique,
      il_error *reterr)
{
    if (in->n_columns == 0 || in->n_columns > IL_GUARD_VALUES_MAX)
        return il__error_set(reterr, IL_INVAL, "table %s: a row must have 1 to %d columns", table,
                             IL_GUARD_VALUES_MAX);
    for (size_t i = 0; i < in->n_columns; i++) {
        if (in->columns[i].name == NULL || !il__guard_value_is_valid(&in->columns[i].value))
            return il__error_set(reterr, IL_INVAL, "table %s: column %zu has no name or no value",
                                 table, i + 1);
    }
    if (n_unique == 0 || n_unique > IL_GUARD_KEY_COLUMNS_MAX)
        return il__error_set(reterr, IL_INVAL, "table %s: 1 to %d unique columns are needed", table,
                             IL_GUARD_KEY_COLUMNS_MAX);
    for (size_t i = 0; i < n_unique; i++) {
        const il_guard_column *c = unique[i] != NULL ? column_of(in, unique[i]) : NULL;
        if (c == NULL)
            return il__error_set(reterr, IL_INVAL, "table %s: the row has no column %s", table,
                                 unique[i] != NULL ? unique[i] : "(null)");
        in->unique[in->n_unique++] = *c;
    }
    if (in->tx->read_only)
        return il__error_set(reterr, IL_STATE, "read-only transaction: cannot insert into %s",
                             table);
    return il__guard_usable(in->tx, reterr);
}

static il_status
insert_sql(const struct insert *in, struct guard_sql *q, il_error *reterr)
{
    AUTO_BUF struct il__buf key = { 0 }, columns = { 0 }, values = { 0 };

    il__buf_init(&key, GUARD_SQL_BYTES_MAX);
    il__buf_init(&columns, GUARD_SQL_BYTES_MAX);
    il__buf_init(&values, GUARD_SQL_BYTES_MAX);
    il__guard_sql_key(in->t, &key);
    for (size_t i = 0; i < in->n_columns; i++) {
        const char *quoted = NULL;
        il_status   st     = il__guard_column(in->tx, in->t, in->columns[i].name, &quoted, reterr);
        if (st != IL_OK)
            return st;
        il__buf_adds(&columns, i > 0 ? ", " : "");
        il__buf_adds(&columns, quoted);
        il__buf_adds(&values, i > 0 ? ", " : "");
        CHECK(il__guard_sql_value(q, &values, in->columns[i].value));
    }
    il__guard_sql_need(q, &key);
    il__guard_sql_need(q, &columns);
    il__guard_sql_need(q, &values);
    il__guard_sql_fill(sql_row_insert,
                       (const struct guard_fill[]){ { "table", in->t->quoted },
                                                    { "columns", il__buf_str(&columns) },
                                                    { "values", il__buf_str(&values) },
                                                    { "key", il__buf_str(&key) } },
                       4, &q->text);
    return q->text.failed ? il__error_set(reterr, IL_NOMEM, "out of memory for a statement")
                          : IL_OK;
}

static il_status
insert(const struct insert *in, struct guard_rows *rows, il_error *reterr)
{
    AUTO_SQL struct guard_sql q;

    il__guard_sql_init(&q);
    il_status st = insert_sql(in, &q, reterr);
    if (st != IL_OK)
        return st;
    struct guard_statement s = { .sql      = il__buf_str(&q.text),
                                 .values   = q.values,
                                 .n_values = q.n_values,
                                 .each     = il__guard_take_rows,
                                 .cookie   = rows };
#ifdef IL_MUTANT_guard_no_savepoint
    return il__guard_run(in->tx, &s, reterr);
#endif
    in->tx->n_queries++;
    st = in->tx->c->ops->run_in_savepoint(in->tx->c, &s, in->tx->depth + 1, reterr);
    if (st == IL_UNIQUE) /* an answer; the savepoint was rolled back */
        return st;
    return st == IL_OK ? IL_OK : il__guard_fail(in->tx, st, reterr);
}

static il_status
get(const struct insert *in, struct guard_rows *rows, il_error *reterr)
{
    AUTO_SQL struct guard_sql q;
    AUTO_BUF struct il__buf   key = { 0 }, where = { 0 };

    il__guard_sql_init(&q);
    il__buf_init(&key, GUARD_SQL_BYTES_MAX);
    il__buf_init(&where, GUARD_SQL_BYTES_MAX);
    il__guard_sql_key(in->t, &key);
    il_status st =
        il__guard_sql_where(in->tx, in->t, in->unique, in->n_unique, "", &q, &where, reterr);
    if (st != IL_OK)
        return st;
    il__guard_sql_need(&q, &key);
    il__guard_sql_need(&q, &where);
    il__guard_sql_fill(sql_row_find,
                       (const struct guard_fill[]){ { "key", il__buf_str(&key) },
                                                    { "table", in->t->quoted },
                                                    { "where", il__buf_str(&where) } },
                       3, &q.text);
    if (q.text.failed)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a statement");
    struct guard_statement s = { .sql      = il__buf_str(&q.text),
                                 .values   = q.values,
                                 .n_values = q.n_values,
                                 .each     = il__guard_take_rows,
                                 .cookie   = rows };
    return il__guard_run(in->tx, &s, reterr);
}

/* *ret_inserted: 1, 0, or IL_UNIQUE is returned. *err may be set even if it works. */
static il_status
insert_or_get(const struct insert *in, int *ret_inserted, struct guard_rows *rows, il_error *err)
{
    il_status st = IL_OK;

    for (int i = 0; i < 2; i++) {
        *rows         = (struct guard_rows){ .tx = in->tx, .n_key = in->t->n_key };
        st            = insert(in, rows, err);
        *ret_inserted = st == IL_OK;
        if (st != IL_UNIQUE)
            return st;
        il_error why     = { .message = "" };
        *rows            = (struct guard_rows){ .tx = in->tx, .n_key = in->t->n_key };
        il_status looked = get(in, rows, &why);
        if (looked == IL_OK && rows->n_rows == 0)
            continue;
        if (looked == IL_OK && rows->n_rows > 1)
            looked = il__guard_fail(in->tx,
                                    il__error_set(&why, IL_INVAL,
                                                  "table %s: several rows match; name all columns "
                                                  "of the unique index and of its condition",
                                                  in->t->asked),
                                    NULL);
        *err = why;
        return looked;
    }
    return st;
}

il_status
il_guard_insert_or_get(il_guard_tx *tx, const char *table, const il_guard_column *columns,
                       size_t n_columns, const char *const *unique, size_t n_unique,
                       int *ret_inserted, il_guard_id *ret_id, il_error *reterr)
{
    struct insert     in       = { .tx = tx, .columns = columns, .n_columns = n_columns };
    struct guard_rows rows     = { .tx = tx };
    int               inserted = 0;
    il_error          err      = { .message = "" };

    if (tx == NULL || table == NULL || columns == NULL || unique == NULL)
        return il__error_set(reterr, IL_INVAL, "tx, table, columns and unique must not be NULL");
    il_status st = check(&in, table, unique, n_unique, reterr);
    if (st == IL_OK)
        st = il__guard_table(tx, table, &in.t, reterr);
    if (st == IL_OK && in.t->n_key == 0)
        st = il__error_set(reterr, IL_INVAL, "table %s has no primary key", table);
    if (st != IL_OK)
        return st;
    st = insert_or_get(&in, &inserted, &rows, &err);
    if (st != IL_OK) {
        if (reterr != NULL)
            *reterr = err;
        return st;
    }
    if (rows.failed || rows.n_rows == 0)
        return il__guard_fail(tx, il__error_set(reterr, IL_NOMEM, "out of memory for a row"), NULL);
    if (ret_inserted != NULL)
        *ret_inserted = inserted;
    if (ret_id != NULL)
        *ret_id = (il_guard_id){ rows.values, in.t->n_key };
    return IL_OK;
}
