/*
 * change.c: changes numbers, states, documents and aggregates of a row, each in one statement under
 * the lock of the row. The database computes new numbers; the program never writes back one it
 * derived from an earlier read.
 */
#include <inttypes.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "guard/guard_internal.h"

#include "guard_rows_sql.inc"

/* A statement on one row: names, placeholders, values. */
struct change {
    il_guard_tx           *tx;
    const il_guard_target *row;
    struct guard_table    *t;
    struct guard_held     *held;
    struct guard_sql       q;
    struct il__buf         key, where, value;
    const char            *column;
};

static void
change_release(struct change *c)
{
    il__guard_sql_release(&c->q);
    il__buf_release(&c->key);
    il__buf_release(&c->where);
    il__buf_release(&c->value);
}
#define AUTO_CHANGE AUTO(change_release)

static void
change_init(struct change *c, il_guard_tx *tx, const il_guard_target *row)
{
    *c = (struct change){ .tx = tx, .row = row };
    il__guard_sql_init(&c->q);
    il__buf_init(&c->key, GUARD_SQL_BYTES_MAX);
    il__buf_init(&c->where, GUARD_SQL_BYTES_MAX);
    il__buf_init(&c->value, GUARD_SQL_BYTES_MAX);
}

/* Look at the row, its order and its names; begin the WHERE with its key. */
static il_status
change_begin(struct change *c, const char *column, il_error *reterr)
{
    il_status st = il__guard_prepare(c->tx, c->row, &c->t, &c->held, reterr);

    if (st == IL_OK)
        st = il__guard_column(c->tx, c->t, column, &c->column, reterr);
    if (st != IL_OK)
        return st;
    il__guard_sql_key(c->t, &c->key);
    return il__guard_sql_where(c->tx, c->t, c->row->key, c->row->n_key, "", &c->q, &c->where,
                               reterr);
}

static il_status
change_value(struct change *c, struct il__buf *out, il_guard_value value, il_error *reterr)
{
    if (il__guard_sql_value(&c->q, out, value))
        return IL_OK;
    return il__error_set(reterr, IL_INVAL, "table %s: the value is not initialized", c->row->table);
}

static il_status
change_run(struct change *c, const char *text, const struct guard_fill *more, size_t n_more,
           struct guard_rows *rows, il_error *reterr)
{
    struct guard_fill fills[8] = { { "key", il__buf_str(&c->key) },
                                   { "table", c->t->quoted },
                                   { "where", il__buf_str(&c->where) },
                                   { "column", c->column } };

    CHECK(n_more <= ARRAY_LEN(fills) - 4);
    for (size_t i = 0; i < n_more; i++)
        fills[4 + i] = more[i];
    il__guard_sql_need(&c->q, &c->key);
    il__guard_sql_need(&c->q, &c->where);
    il__guard_sql_need(&c->q, &c->value);
    il__guard_sql_fill(text, fills, 4 + n_more, &c->q.text);
    struct guard_statement s = { .sql      = il__buf_str(&c->q.text),
                                 .values   = c->q.values,
                                 .n_values = c->q.n_values,
                                 .each     = il__guard_take_rows,
                                 .cookie   = rows };
    if (c->q.text.failed)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a statement");
    il_status st = il__guard_run(c->tx, &s, reterr);
    if (st == IL_OK && rows->failed)
        st =
            il__guard_fail(c->tx, il__error_set(reterr, IL_NOMEM, "out of memory for a row"), NULL);
    if (st == IL_OK && rows->n_rows > 1)
        st = il__guard_fail(
            c->tx,
            il__error_set(reterr, IL_INVAL, "table %s: several rows match the key", c->row->table),
            NULL);
    return st;
}

/* The same for a statement in which c->value stands for @name. */
static il_status
change_run_value(struct change *c, const char *text, const char *name, struct guard_rows *rows,
                 il_error *reterr)
{
    const struct guard_fill value = { name, il__buf_str(&c->value) };

    rows->n_key = c->t->n_key;
    return change_run(c, text, &value, 1, rows, reterr);
}

/* The statement has locked the row: it is held from now on. */
static il_status
change_hold(struct change *c, const struct guard_rows *rows, int64_t wait_ns, il_error *reterr)
{
    il_guard_id id = { rows->values, c->t->n_key };
    il_status   st = IL_OK;

    if (il__guard_row_held(c->tx, c->t, &id) == NULL)
        st = il__guard_order(c->tx, c->row, c->t, &id, reterr);
    if (st == IL_OK)
        st = il__guard_row_hold(c->tx, c->row, c->t, &id, wait_ns, NULL, reterr);
    return st == IL_OK ? IL_OK : il__guard_fail(c->tx, st, reterr);
}

/*
 * No row was changed. In PostgreSQL the row may have been changed, or deleted and inserted again,
 * after the statement began; what is read next could then contradict the answer. So the row is
 * locked, and the statement repeated. IL_NOT_FOUND.
 */
static il_status
change_settle(il_guard_tx *tx, const il_guard_target *row, il_error *reterr)
{
    return tx->c->ops->is_postgres ? il_guard_lock(tx, row, NULL, reterr) : IL_OK;
}

/* No row was changed: is there one, and what does it say? */
static il_status
find_value(il_guard_tx *tx, const il_guard_target *row, const char *column, il_guard_value *ret,
           il_error *reterr)
{
    struct change AUTO_CHANGE c;
    struct guard_rows         rows = { .tx = tx };

    change_init(&c, tx, row);
    il_status st = change_begin(&c, column, reterr);
    if (st == IL_OK)
        st = change_run(&c, sql_row_value, NULL, 0, &rows, reterr);
    if (st == IL_OK && rows.n_rows == 0)
        return il__error_set(reterr, IL_NOT_FOUND, "table %s: no row with this key", row->table);
    if (st == IL_OK)
        *ret = rows.values[0];
    return st;
}

static il_status
not_an_integer(il_guard_tx *tx, const il_guard_target *row, const char *column, il_error *reterr)
{
    return il__guard_fail(
        tx,
        il__error_set(reterr, IL_INVAL, "column %s of %s is not an integer", column, row->table),
        NULL);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static il_status
too_small(il_guard_tx *tx, const il_guard_target *row, const char *column, int64_t delta,
          int64_t min, int64_t *ret_value, il_error *reterr)
{
    il_guard_value found = il_guard_null();
    il_status      st    = find_value(tx, row, column, &found, reterr);

    if (st != IL_OK)
        return st;
    if (found.type != IL_GUARD_INT)
        return not_an_integer(tx, row, column, reterr);
    if (ret_value != NULL)
        *ret_value = found.integer;
    return il__error_set(reterr, IL_STATE,
                         "%s of %s is %" PRId64 "; adding %" PRId64
                         " would make it less than %" PRId64,
                         column, row->table, found.integer, delta, min);
}

/* A placeholder with a type: PostgreSQL must not guess one for $1 in "a + $1 >= $2". */
static il_status
add_number(struct change *c, struct il__buf *out, int64_t number, il_error *reterr)
{
    il__buf_adds(out, "CAST(");
    il_status st = change_value(c, out, il_guard_int(number), reterr);
    il__buf_adds(out, " AS bigint)");
    return st;
}

#ifdef IL_MUTANT_guard_read_modify_write
/* Seeded bug: read the number, add here, write it. */
static const char *
read_modify_write(struct change *c, const char *column, int64_t delta, bool has_min)
{
    il_guard_value found = il_guard_int(0);

    IGNORE(find_value(c->tx, c->row, column, &found, NULL));
    if (has_min) { /* the WHERE needs the delta */
        il__buf_clear(&c->value);
        IGNORE(add_number(c, &c->value, found.integer + delta, NULL));
    } else {
        c->q.values[c->q.n_values - 1] = il_guard_int(found.integer + delta);
    }
    return sql_row_set_value;
}
#endif

/* *ret_changed: a row fitted, and *ret_value (may be NULL) is its new value. */
static il_status
add_once(il_guard_tx *tx, const il_guard_target *row, const char *column, int64_t delta,
         const int64_t *min, bool *ret_changed, int64_t *ret_value, il_error *reterr)
{
    const char               *text = sql_row_add;
    struct change AUTO_CHANGE c;
    struct guard_rows         rows = { .tx = tx };

    change_init(&c, tx, row);
    il_status st = change_begin(&c, column, reterr);
    if (st == IL_OK)
        st = add_number(&c, &c.value, delta, reterr);
    if (st == IL_OK && min != NULL) {
        il__buf_addf(&c.where, " AND %s + %s >= ", c.column, il__buf_str(&c.value));
        st = add_number(&c, &c.where, *min, reterr);
    }
    if (st != IL_OK)
        return st;
#ifdef IL_MUTANT_guard_read_modify_write
    text = read_modify_write(&c, column, delta, min != NULL);
#endif
    int64_t began_ns = il__clock_boot_ns();
    st               = change_run_value(&c, text, "delta", &rows, reterr);
    *ret_changed     = st == IL_OK && rows.n_rows > 0;
    if (!*ret_changed)
        return st;
    st = change_hold(&c, &rows, il__clock_boot_ns() - began_ns, reterr);
    if (st != IL_OK)
        return st;
    const il_guard_value *value = &rows.values[c.t->n_key];
    if (value->type != IL_GUARD_INT)
        return not_an_integer(tx, row, column, reterr);
    if (ret_value != NULL)
        *ret_value = value->integer;
    return IL_OK;
}

il_status
il_guard_add(il_guard_tx *tx, const il_guard_target *row, const char *column, int64_t delta,
             const int64_t *min, int64_t *ret_value, il_error *reterr)
{
    bool      changed = false;
    il_status st      = add_once(tx, row, column, delta, min, &changed, ret_value, reterr);

    if (st == IL_OK && !changed)
        st = change_settle(tx, row, reterr);
    if (st == IL_OK && !changed)
        st = add_once(tx, row, column, delta, min, &changed, ret_value, reterr);
    if (st != IL_OK || changed)
        return st;
    if (min != NULL)
        return too_small(tx, row, column, delta, *min, ret_value, reterr);
    return il__error_set(reterr, IL_NOT_FOUND, "table %s: no row with this key", row->table);
}

/* ---- states ---------------------------------------------------------------------------------- */

static il_status
wrong_state(il_guard_tx *tx, const il_guard_target *row, const char *column,
            il_guard_value *ret_found, il_error *reterr)
{
    AUTO_BUF struct il__buf text = { 0 };
    il_guard_value          found;
    il_status               st = find_value(tx, row, column, &found, reterr);

    if (st != IL_OK)
        return st;
    il__buf_init(&text, IL_GUARD_NAME_BYTES_MAX);
    il__guard_value_print(&found, &text);
    if (ret_found != NULL)
        *ret_found = found;
    return il__error_set(reterr, IL_STATE, "%s of %s is %s, not the expected value", column,
                         row->table, il__buf_str(&text));
}

static il_status
transition_once(il_guard_tx *tx, const il_guard_target *row, const char *column,
                il_guard_value from, il_guard_value to, bool *ret_changed, il_error *reterr)
{
    struct change AUTO_CHANGE c;
    struct guard_rows         rows   = { .tx = tx };
    const il_guard_column     before = { column, from };

    change_init(&c, tx, row);
    il_status st = change_begin(&c, column, reterr);
    if (st == IL_OK)
        il__buf_adds(&c.where, " AND ");
    if (st == IL_OK)
        st = il__guard_sql_where(tx, c.t, &before, 1, "", &c.q, &c.where, reterr);
    if (st == IL_OK)
        st = change_value(&c, &c.value, to, reterr);
    if (st != IL_OK)
        return st;
    int64_t began_ns = il__clock_boot_ns();
    st               = change_run_value(&c, sql_row_set, "value", &rows, reterr);
    *ret_changed     = st == IL_OK && rows.n_rows > 0;
    return *ret_changed ? change_hold(&c, &rows, il__clock_boot_ns() - began_ns, reterr) : st;
}

il_status
il_guard_transition(il_guard_tx *tx, const il_guard_target *row, const char *column,
                    il_guard_value from, il_guard_value to, il_guard_value *ret_found,
                    il_error *reterr)
{
    bool      changed = false;
    il_status st      = transition_once(tx, row, column, from, to, &changed, reterr);

    if (st == IL_OK && !changed)
        st = change_settle(tx, row, reterr);
    if (st == IL_OK && !changed)
        st = transition_once(tx, row, column, from, to, &changed, reterr);
    if (st != IL_OK || changed)
        return st;
    return wrong_state(tx, row, column, ret_found, reterr);
}

/* ---- what is computed from what was read ----------------------------------------------------- */

/* Is the row held? Its primary key is asked for if the key is another one. */
static il_status
needs_hold(struct change *c, const char *what, il_error *reterr)
{
    struct guard_rows         rows = { .tx = c->tx, .n_key = c->t->n_key };
    struct guard_sql AUTO_SQL q;

    il__guard_sql_init(&q);
    if (c->held != NULL)
        return IL_OK;
    il__guard_sql_need(&q, &c->key);
    il__guard_sql_need(&q, &c->where);
    il__guard_sql_fill(sql_row_find,
                       (const struct guard_fill[]){ { "key", il__buf_str(&c->key) },
                                                    { "table", c->t->quoted },
                                                    { "where", il__buf_str(&c->where) } },
                       3, &q.text);
    struct guard_statement s = { .sql      = il__buf_str(&q.text),
                                 .values   = c->q.values,
                                 .n_values = c->q.n_values,
                                 .each     = il__guard_take_rows,
                                 .cookie   = &rows };
    if (q.text.failed)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a statement");
    il_status st = il__guard_run(c->tx, &s, reterr);
    if (st != IL_OK)
        return st;
    if (rows.n_rows == 0)
        return il__error_set(reterr, IL_NOT_FOUND, "table %s: no row with this key", c->row->table);
    if (!rows.failed) {
        il_guard_id id = { rows.values, c->t->n_key };
        c->held        = il__guard_row_held(c->tx, c->t, &id);
    }
    if (c->held == NULL)
        return il__guard_fail(
            c->tx,
            il__error_set(reterr, IL_STATE,
                          "cannot change %s of %s: lock the row first with il_guard_lock()", what,
                          c->row->table),
            NULL);
    return IL_OK;
}

il_status
il_guard_set_json(il_guard_tx *tx, const il_guard_target *row, const char *column, const char *json,
                  il_error *reterr)
{
    struct change AUTO_CHANGE c;
    struct guard_rows         rows = { .tx = tx };

    change_init(&c, tx, row);
    if (json == NULL)
        return il__error_set(reterr, IL_INVAL, "no JSON document given");
    il_status st = change_begin(&c, column, reterr);
    if (st == IL_OK)
        st = needs_hold(&c, column, reterr);
    if (st == IL_OK)
        st = change_value(&c, &c.value, il_guard_json(json), reterr);
    if (st != IL_OK)
        return st;
    st = change_run_value(&c, sql_row_set, "value", &rows, reterr);
    if (st == IL_OK && rows.n_rows == 0)
        st = il__error_set(reterr, IL_NOT_FOUND, "table %s: no row with this key", row->table);
    return st;
}

/* "count(*)", "coalesce(sum(c.amount), 0)" */
static il_status
add_aggregate(struct change *c, struct guard_table *children, const il_guard_children *what,
              struct il__buf *out, il_error *reterr)
{
    static const char *const texts[] = {
        [IL_GUARD_COUNT] = "count(*)%s",
        [IL_GUARD_SUM]   = "coalesce(sum(c.%s), 0)",
        [IL_GUARD_MIN]   = "min(c.%s)",
        [IL_GUARD_MAX]   = "max(c.%s)",
    };
    const char *quoted = "";

    if ((unsigned)what->aggregate >= IL_GUARD_AGGREGATE_COUNT)
        return il__error_set(reterr, IL_INVAL, "unknown aggregate %d", (int)what->aggregate);
    if (what->aggregate != IL_GUARD_COUNT) {
        il_status st = il__guard_column(c->tx, children, what->column, &quoted, reterr);
        if (st != IL_OK)
            return st;
    }
    const char *text = texts[what->aggregate];
    const char *at   = strstr(text, "%s");
    il__buf_add(out, text, (size_t)(at - text));
    il__buf_adds(out, quoted);
    il__buf_adds(out, at + 2);
    return IL_OK;
}

static il_status
recompute(struct change *c, const il_guard_children *what, struct guard_rows *rows,
          il_error *reterr)
{
    struct guard_table     *children  = NULL;
    const char             *parent    = NULL;
    AUTO_BUF struct il__buf aggregate = { 0 }, where = { 0 };

    il__buf_init(&aggregate, GUARD_SQL_BYTES_MAX);
    il__buf_init(&where, GUARD_SQL_BYTES_MAX);
    il_status st = il__guard_table(c->tx, what->table, &children, reterr);
    if (st == IL_OK)
        st = add_aggregate(c, children, what, &aggregate, reterr);
    if (st == IL_OK)
        st = il__guard_column(c->tx, children, what->parent, &parent, reterr);
    if (st != IL_OK)
        return st;
    il__buf_addf(&where, "c.%s = %s.%s%s", parent, c->t->quoted, c->t->key_quoted[0],
                 what->n_where > 0 ? " AND " : "");
    st = il__guard_sql_where(c->tx, children, what->where, what->n_where, "c.", &c->q, &where,
                             reterr);
    if (st != IL_OK)
        return st;
    il__guard_sql_need(&c->q, &aggregate);
    il__guard_sql_need(&c->q, &where);
    return change_run(c, sql_row_recompute,
                      (const struct guard_fill[]){ { "aggregate", il__buf_str(&aggregate) },
                                                   { "children", children->quoted },
                                                   { "child_where", il__buf_str(&where) } },
                      3, rows, reterr);
}

il_status
il_guard_recompute(il_guard_tx *tx, const il_guard_target *row, const char *column,
                   const il_guard_children *children, int64_t *ret_value, il_error *reterr)
{
    struct change AUTO_CHANGE c;
    struct guard_rows         rows = { .tx = tx };

    change_init(&c, tx, row);
    if (children == NULL || children->table == NULL || children->parent == NULL ||
        (children->where == NULL && children->n_where > 0))
        return il__error_set(reterr, IL_INVAL,
                             "children, its table and its parent column must be given");
    il_status st = change_begin(&c, column, reterr);
    if (st == IL_OK && c.t->n_key != 1)
        st = il__error_set(reterr, IL_INVAL,
                           "table %s: an aggregate needs a single-column primary key", row->table);
    if (st == IL_OK)
        st = needs_hold(&c, column, reterr);
    if (st == IL_OK)
        st = recompute(&c, children, &rows, reterr);
    if (st != IL_OK)
        return st;
    if (rows.n_rows == 0)
        return il__error_set(reterr, IL_NOT_FOUND, "table %s: no row with this key", row->table);
    if (ret_value != NULL && rows.values[0].type != IL_GUARD_INT &&
        rows.values[0].type != IL_GUARD_NULL)
        return not_an_integer(tx, row, column, reterr);
    if (ret_value != NULL)
        *ret_value = rows.values[0].integer;
    return IL_OK;
}
