/*
 * row_lock.c: locking rows, one or many.
 *
 * A row is identified by its primary key, even if the caller named it by another column. If the key
 * that the caller gives is the primary key, it is known before the statement; else the statement
 * that locks returns it. Where the order of locks depends on it, it is read first, without a lock:
 * then the row is locked by the same key, and if that has become another row meanwhile, the order
 * is checked once more.
 */
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "guard/guard_internal.h"

#include "guard_rows_sql.inc"

/* ---- rows ------------------------------------------------------------------------------------ */

static bool
take_id(struct guard_rows *r, const il_guard_row *row)
{
    if (r->n_rows >= r->ids_max)
        return true; /* only counted */
    il_guard_value *values = il__arena_alloc(&r->tx->mem, r->n_key * sizeof *values);
    if (values == NULL)
        return false;
    for (size_t i = 0; i < r->n_key; i++) {
        if (!il__guard_value_copy(&r->tx->mem, &row->values[i], &values[i]))
            return false;
    }
    r->ids[r->n_rows] = (il_guard_id){ values, r->n_key };
    return true;
}

static bool
take_first(struct guard_rows *r, const il_guard_row *row)
{
    r->values = il__arena_alloc(&r->tx->mem, MAX(row->n, 1) * sizeof *r->values);
    if (r->values == NULL)
        return false;
    for (size_t i = 0; i < row->n; i++) {
        if (!il__guard_value_copy(&r->tx->mem, &row->values[i], &r->values[i]))
            return false;
    }
    return true;
}

int
il__guard_take_rows(void *cookie, const il_guard_row *row)
{
    struct guard_rows *r = cookie;

    CHECK(row->n >= r->n_key);
    if ((r->ids != NULL && !take_id(r, row)) || (r->n_rows == 0 && !take_first(r, row)))
        r->failed = true;
    r->n_rows++;
    return !r->failed;
}

/* Run a statement whose rows begin with the primary key. */
static il_status
run(il_guard_tx *tx, const struct guard_sql *q, struct guard_rows *rows, il_error *reterr)
{
    struct guard_statement s = { .sql      = il__buf_str(&q->text),
                                 .values   = q->values,
                                 .n_values = q->n_values,
                                 .each     = il__guard_take_rows,
                                 .cookie   = rows };

    if (q->text.failed)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a statement");
    il_status st = il__guard_run(tx, &s, reterr);
    if (st == IL_OK && rows->failed)
        st = il__guard_fail(tx, il__error_set(reterr, IL_NOMEM, "out of memory for a row"), NULL);
    return st;
}

/* ---- which row ------------------------------------------------------------------------------- */

static il_status
check_target(il_guard_tx *tx, const il_guard_target *row, bool many, il_error *reterr)
{
    if (tx == NULL || row == NULL || row->entity == NULL || row->table == NULL ||
        (row->key == NULL && row->n_key > 0))
        return il__error_set(reterr, IL_INVAL, "tx, class, table and key must be given");
    if ((row->n_key == 0 && !many) || row->n_key > IL_GUARD_KEY_COLUMNS_MAX)
        return il__error_set(reterr, IL_INVAL, "table %s: a key must have 1 to %d columns",
                             row->table, IL_GUARD_KEY_COLUMNS_MAX);
    for (size_t i = 0; i < row->n_key; i++) {
        if (row->key[i].name == NULL)
            return il__error_set(reterr, IL_INVAL, "table %s: column %zu of the key has no name",
                                 row->table, i + 1);
    }
    if (tx->read_only)
        return il__error_set(reterr, IL_STATE, "read-only transaction: cannot lock a row of %s",
                             row->table);
    return il__guard_usable(tx, reterr);
}

/* Is the key the primary key? Then its values as they were given, in the order of its columns. */
static bool
given_id(const struct guard_table *t, const il_guard_target *row,
         il_guard_value values[IL_GUARD_KEY_COLUMNS_MAX])
{
    if (row->n_key != t->n_key)
        return false;
    for (size_t i = 0; i < t->n_key; i++) {
        size_t j = 0;
        while (j < row->n_key && strcmp(row->key[j].name, t->key[i]) != 0)
            j++;
        if (j == row->n_key || row->key[j].value.type == IL_GUARD_DOUBLE ||
            !il__guard_value_is_valid(&row->key[j].value))
            return false;
        values[i] = row->key[j].value;
    }
    return true;
}

/* Do values that were given say which row it is? Integers do. Of a text the database may keep
 * another form (a uuid in capitals, a char(n)); but one that it has returned means that row. */
static bool
is_known(il_guard_tx *tx, const struct guard_table *t, const il_guard_id *given)
{
    for (size_t i = 0; i < t->n_key; i++) {
        if (!t->key_is_int[i] || given->values[i].type != IL_GUARD_INT)
            return il__guard_row_held(tx, t, given) != NULL;
    }
    return true;
}

static il_status
several(il_guard_tx *tx, const il_guard_target *row, il_error *reterr)
{
    return il__guard_fail(
        tx, il__error_set(reterr, IL_INVAL, "table %s: several rows match the key", row->table),
        NULL);
}

/* Read the primary key without a lock. IL_NOT_FOUND. */
static il_status
peek(il_guard_tx *tx, struct guard_table *t, const il_guard_target *row, il_guard_id *ret,
     il_error *reterr)
{
    AUTO_SQL struct guard_sql q;
    AUTO_BUF struct il__buf   key = { 0 }, where = { 0 };
    il_guard_id               ids[2];
    struct guard_rows         rows = { .tx = tx, .ids = ids, .n_key = t->n_key, .ids_max = 2 };

    il__guard_sql_init(&q);
    il__buf_init(&key, GUARD_SQL_BYTES_MAX);
    il__buf_init(&where, GUARD_SQL_BYTES_MAX);
    il__guard_sql_key(t, &key);
    il_status st = il__guard_sql_where(tx, t, row->key, row->n_key, "", &q, &where, reterr);
    if (st != IL_OK)
        return st;
    il__guard_sql_need(&q, &key);
    il__guard_sql_need(&q, &where);
    il__guard_sql_fill(sql_row_find,
                       (const struct guard_fill[]){ { "key", il__buf_str(&key) },
                                                    { "table", t->quoted },
                                                    { "where", il__buf_str(&where) } },
                       3, &q.text);
    st = run(tx, &q, &rows, reterr);
    if (st == IL_OK && rows.n_rows == 0)
        return il__error_set(reterr, IL_NOT_FOUND, "table %s: no row with this key", row->table);
    if (st == IL_OK && rows.n_rows > 1)
        return several(tx, row, reterr);
    if (st == IL_OK)
        *ret = ids[0];
    return st;
}

il_status
il__guard_prepare(il_guard_tx *tx, const il_guard_target *row, struct guard_table **ret_table,
                  struct guard_held **ret_held, il_error *reterr)
{
    il_guard_value      values[IL_GUARD_KEY_COLUMNS_MAX];
    il_guard_id         id    = { values, 0 };
    struct guard_table *t     = NULL;
    bool                known = false;

    *ret_held    = NULL;
    il_status st = check_target(tx, row, false, reterr);
    if (st == IL_OK)
        st = il__guard_table(tx, row->table, &t, reterr);
    if (st == IL_OK && t->n_key == 0)
        st = il__error_set(reterr, IL_INVAL, "table %s has no primary key", row->table);
    if (st != IL_OK)
        return st;
    id.n  = t->n_key;
    known = given_id(t, row, values) && is_known(tx, t, &id);
    if (!known && il__guard_order_needs_id(tx, row)) {
        st = peek(tx, t, row, &id, reterr);
        if (st != IL_OK)
            return st;
        known = true;
    }
    *ret_table = t;
    if (known)
        *ret_held = il__guard_row_held(tx, t, &id);
    if (*ret_held != NULL)
        return IL_OK;
    st = il__guard_order(tx, row, t, known ? &id : NULL, reterr);
    return st == IL_OK ? IL_OK : il__guard_fail(tx, st, reterr);
}

/* ---- one row --------------------------------------------------------------------------------- */

static il_status
lock_sql(il_guard_tx *tx, struct guard_table *t, const il_guard_target *row, struct guard_sql *q,
         il_error *reterr)
{
    AUTO_BUF struct il__buf key = { 0 }, where = { 0 };

    il__buf_init(&key, GUARD_SQL_BYTES_MAX);
    il__buf_init(&where, GUARD_SQL_BYTES_MAX);
    il__guard_sql_key(t, &key);
    il_status   st   = il__guard_sql_where(tx, t, row->key, row->n_key, "", q, &where, reterr);
    const char *text = tx->c->ops->texts[GUARD_TEXT_LOCK];
#ifdef IL_MUTANT_guard_no_row_lock
    text = sql_row_find;
#endif
    il__guard_sql_need(q, &key);
    il__guard_sql_need(q, &where);
    if (st == IL_OK)
        il__guard_sql_fill(text,
                           (const struct guard_fill[]){ { "key", il__buf_str(&key) },
                                                        { "table", t->quoted },
                                                        { "where", il__buf_str(&where) } },
                           3, &q->text);
    return st;
}

il_status
il_guard_lock(il_guard_tx *tx, const il_guard_target *row, il_guard_id *ret_id, il_error *reterr)
{
    struct guard_table *t    = NULL;
    struct guard_held  *held = NULL;
    il_guard_id         ids[2];
    struct guard_rows   rows = { .tx = tx, .ids = ids, .ids_max = 2 };

    il_status st = il__guard_prepare(tx, row, &t, &held, reterr);
    if (st != IL_OK)
        return st;
    if (held != NULL) {
        if (ret_id != NULL)
            *ret_id = held->id;
        return IL_OK;
    }
    AUTO_SQL struct guard_sql q;
    il__guard_sql_init(&q);
    rows.n_key = t->n_key;
    st         = lock_sql(tx, t, row, &q, reterr);
    if (st != IL_OK)
        return st;
    int64_t began_ns = il__clock_boot_ns();
    st               = run(tx, &q, &rows, reterr);
    /* It may have been deleted and inserted again while this waited: a new snapshot tells. */
    if (st == IL_OK && rows.n_rows == 0 && tx->c->ops->is_postgres)
        st = run(tx, &q, &rows, reterr);
    if (st != IL_OK)
        return st;
    if (rows.n_rows == 0)
        return il__error_set(reterr, IL_NOT_FOUND, "table %s: no row with this key", row->table);
    if (rows.n_rows > 1)
        return several(tx, row, reterr);
    if (il__guard_row_held(tx, t, &ids[0]) == NULL) /* it may have become another row since */
        st = il__guard_order(tx, row, t, &ids[0], reterr);
    if (st == IL_OK)
        st =
            il__guard_row_hold(tx, row, t, &ids[0], il__clock_boot_ns() - began_ns, ret_id, reterr);
    return st == IL_OK ? IL_OK : il__guard_fail(tx, st, reterr);
}

/* ---- one row, and a query -------------------------------------------------------------------- */

/* A row that is being locked, and the query that follows. */
struct locking {
    struct guard_rows rows;
    int64_t           at_ns; /* when the lock was granted */
    il_guard_row_fn  *each;  /* of the query */
    void             *cookie;
};

static int
take_locked(void *cookie, const il_guard_row *row)
{
    struct locking *l = cookie;

    l->at_ns = il__clock_boot_ns();
    return il__guard_take_rows(&l->rows, row);
}

static int
give_read(void *cookie, const il_guard_row *row)
{
    const struct locking *l = cookie;

    return l->rows.n_rows == 1 && l->each != NULL ? l->each(l->cookie, row) : 0;
}

/* In one round trip. *ret_there: such a row was there; else nothing has happened. */
static il_status
lock_and_read(il_guard_tx *tx, const il_guard_target *row, struct guard_table *t,
              const struct guard_statement *read, bool *ret_there, il_error *reterr)
{
    AUTO_SQL struct guard_sql q;
    il_guard_id               ids[2];
    struct locking l = { .rows   = { .tx = tx, .ids = ids, .n_key = t->n_key, .ids_max = 2 },
                         .each   = read->each,
                         .cookie = read->cookie };

    il__guard_sql_init(&q);
    il_status st = lock_sql(tx, t, row, &q, reterr);
    if (st == IL_OK && q.text.failed)
        st = il__error_set(reterr, IL_NOMEM, "out of memory for a statement");
    if (st != IL_OK)
        return st;
    struct guard_statement lock = { .sql      = il__buf_str(&q.text),
                                    .values   = q.values,
                                    .n_values = q.n_values,
                                    .each     = take_locked,
                                    .cookie   = &l };
    struct guard_statement then = *read;
    then.each                   = give_read;
    then.cookie                 = &l;
    int64_t began_ns            = il__clock_boot_ns();
    st                          = il__guard_run_both(tx, &lock, &then, reterr);
    if (st == IL_OK && l.rows.failed)
        st = il__guard_fail(tx, il__error_set(reterr, IL_NOMEM, "out of memory for a row"), NULL);
    if (st == IL_OK && l.rows.n_rows > 1)
        st = several(tx, row, reterr);
    *ret_there = st == IL_OK && l.rows.n_rows == 1;
    if (!*ret_there)
        return st;
    if (il__guard_row_held(tx, t, &ids[0]) == NULL) /* it may have become another row since */
        st = il__guard_order(tx, row, t, &ids[0], reterr);
    if (st == IL_OK)
        st = il__guard_row_hold(tx, row, t, &ids[0], l.at_ns - began_ns, NULL, reterr);
    tx->n_queries++; /* the one that was read under the lock */
    return st == IL_OK ? IL_OK : il__guard_fail(tx, st, reterr);
}

il_status
il_guard_lock_read(il_guard_tx *tx, const il_guard_target *row, const il_guard_query *query,
                   il_error *reterr)
{
    struct guard_table    *t    = NULL;
    struct guard_held     *held = NULL;
    struct guard_statement read;
    bool                   there = false;

    il_status st = il__guard_prepare(tx, row, &t, &held, reterr);
    if (st == IL_OK)
        st = il__guard_query(tx, query, &read, reterr);
    if (st != IL_OK)
        return st;
    if (held == NULL && tx->c->ops->run_both != NULL && !il__guard_sets_path(query->sql)) {
        st = lock_and_read(tx, row, t, &read, &there, reterr);
        if (st != IL_OK || there)
            return st;
    }
    st = il_guard_lock(tx, row, NULL, reterr); /* it may have come meanwhile */
    return st == IL_OK ? il_guard_exec(tx, query, NULL, reterr) : st;
}

/* ---- many rows ------------------------------------------------------------------------------- */

/* "a, b::text COLLATE "C"": in the order of il__guard_id_compare(). */
static void
add_order(const struct guard_table *t, bool is_postgres, struct il__buf *out)
{
    for (size_t i = 0; i < t->n_key; i++)
        il__buf_addf(out, "%s%s%s", i > 0 ? ", " : "", t->key_quoted[i],
                     is_postgres && !t->key_is_number[i] ? "::text COLLATE \"C\"" : "");
}

static il_status
many_sql(il_guard_tx *tx, struct guard_table *t, const il_guard_target *row, const char *column,
         const il_guard_value *values, size_t n_values, const char *text, struct guard_sql *q,
         il_error *reterr)
{
    AUTO_BUF struct il__buf key = { 0 }, where = { 0 }, order = { 0 };
    const char             *quoted = NULL;

    il__buf_init(&key, GUARD_SQL_BYTES_MAX);
    il__buf_init(&where, GUARD_SQL_BYTES_MAX);
    il__buf_init(&order, GUARD_SQL_BYTES_MAX);
    il__guard_sql_key(t, &key);
    add_order(t, tx->c->ops->is_postgres, &order);
    il_status st = il__guard_column(tx, t, column, &quoted, reterr);
    if (st != IL_OK)
        return st;
    il__buf_addf(&where, "%s IN (", quoted);
    for (size_t i = 0; i < n_values; i++) {
        il__buf_adds(&where, i > 0 ? ", " : "");
        if (!il__guard_sql_value(q, &where, values[i]))
            return il__error_set(reterr, IL_INVAL, "more than %d values, or value %zu is not valid",
                                 IL_GUARD_VALUES_MAX, i + 1);
    }
    il__buf_addc(&where, ')');
    if (row->n_key > 0)
        il__buf_adds(&where, " AND ");
    st = il__guard_sql_where(tx, t, row->key, row->n_key, "", q, &where, reterr);
    il__guard_sql_need(q, &key);
    il__guard_sql_need(q, &where);
    il__guard_sql_need(q, &order);
    if (st == IL_OK)
        il__guard_sql_fill(text,
                           (const struct guard_fill[]){ { "key", il__buf_str(&key) },
                                                        { "table", t->quoted },
                                                        { "where", il__buf_str(&where) },
                                                        { "order", il__buf_str(&order) } },
                           4, &q->text);
    return st;
}

static int
compare_ids(const void *a, const void *b)
{
    return il__guard_id_compare(a, b);
}

/* May all of these rows be locked? */
static il_status
check_ids(il_guard_tx *tx, const il_guard_target *row, const struct guard_table *t,
          const il_guard_id *ids, size_t n, il_error *reterr)
{
    il_status st = IL_OK;

    for (size_t i = 0; st == IL_OK && i < n; i++) {
        if (il__guard_row_held(tx, t, &ids[i]) == NULL)
            st = il__guard_order(tx, row, t, &ids[i], reterr);
    }
    return st;
}

/* Find or lock the rows; their ids, sorted. */
static il_status
many(il_guard_tx *tx, struct guard_table *t, const il_guard_target *row, const char *column,
     const il_guard_value *values, size_t n_values, const char *text, struct guard_rows *rows,
     il_error *reterr)
{
    AUTO_SQL struct guard_sql q;

    il__guard_sql_init(&q);
    *rows     = (struct guard_rows){ .tx = tx, .n_key = t->n_key, .ids_max = IL_GUARD_ROWS_MAX };
    rows->ids = il__arena_alloc(&tx->mem, IL_GUARD_ROWS_MAX * sizeof *rows->ids);
    if (rows->ids == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for rows");
    il_status st = many_sql(tx, t, row, column, values, n_values, text, &q, reterr);
    if (st == IL_OK)
        st = run(tx, &q, rows, reterr);
    if (st == IL_OK && rows->n_rows > IL_GUARD_ROWS_MAX)
        st = il__guard_fail(tx,
                            il__error_set(reterr, IL_LIMIT,
                                          "too many locked rows in one transaction (maximum %d)",
                                          IL_GUARD_ROWS_MAX),
                            NULL);
    if (st == IL_OK)
        qsort(rows->ids, rows->n_rows, sizeof *rows->ids, compare_ids);
    return st;
}

static il_status
hold_all(il_guard_tx *tx, const il_guard_target *row, const struct guard_table *t,
         const struct guard_rows *rows, int64_t wait_ns, il_error *reterr)
{
    il_status st = check_ids(tx, row, t, rows->ids, rows->n_rows, reterr);

    for (size_t i = 0; st == IL_OK && i < rows->n_rows; i++) {
        st      = il__guard_row_hold(tx, row, t, &rows->ids[i], wait_ns, NULL, reterr);
        wait_ns = 0; /* the first row reports the wait of all */
    }
    return st;
}

il_status
il_guard_lock_many(il_guard_tx *tx, const il_guard_target *row, const char *column,
                   const il_guard_value *values, size_t n_values, size_t *ret_n, il_error *reterr)
{
    struct guard_table *t = NULL;
    struct guard_rows   rows;

    il_status st = check_target(tx, row, true, reterr);
    if (st == IL_OK && (column == NULL || (values == NULL && n_values > 0)))
        st = il__error_set(reterr, IL_INVAL, "column and values must be given");
    if (st == IL_OK)
        st = il__guard_table(tx, row->table, &t, reterr);
    if (st == IL_OK && t->n_key == 0)
        st = il__error_set(reterr, IL_INVAL, "table %s has no primary key", row->table);
    if (st != IL_OK)
        return st;
    if (n_values == 0) {
        if (ret_n != NULL)
            *ret_n = 0;
        return IL_OK;
    }
    if (il__guard_order_needs_id(tx, row)) {
        st = many(tx, t, row, column, values, n_values, sql_row_find_many, &rows, reterr);
        if (st == IL_OK)
            st = check_ids(tx, row, t, rows.ids, rows.n_rows, reterr);
    } else {
        st = il__guard_order(tx, row, t, NULL, reterr);
    }
    if (st != IL_OK)
        return il__guard_fail(tx, st, reterr);
    int64_t began_ns = il__clock_boot_ns();
    st = many(tx, t, row, column, values, n_values, tx->c->ops->texts[GUARD_TEXT_LOCK_MANY], &rows,
              reterr);
    if (st == IL_OK)
        st = hold_all(tx, row, t, &rows, il__clock_boot_ns() - began_ns, reterr);
    if (st != IL_OK)
        return il__guard_fail(tx, st, reterr);
    if (ret_n != NULL)
        *ret_n = rows.n_rows;
    return IL_OK;
}
