/*
 * rows.c: writes many rows; see rows.h.
 *
 * A statement per row costs a round trip on PostgreSQL and next to nothing on SQLite, where it
 * stays prepared; a JSON list costs SQLite a function call per value. So each engine gets what it
 * does best.
 */
#include "apps/ingest/rows.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "wire/wire.h"

#define GO_ON_ROWS 1024 /* of SQLite, between two calls of go_on() */

static bool
may_go_on(const struct rows *r)
{
    return r->go_on == NULL || r->go_on(r->go_on_cookie);
}

static il_status
cancelled(il_error *reterr)
{
    return il__error_set(reterr, IL_CANCELLED, "the ingestion was stopped");
}

static il_status
no_memory(il_error *reterr)
{
    return il__error_set(reterr, IL_NOMEM, "out of memory for rows");
}

static int
add_new(void *cookie, const il_guard_row *row)
{
    struct rows_written *w = cookie;

    w->n_new += row->values[0].integer;
    return 1;
}

static il_status
write_each(il_guard_tx *tx, const struct rows *r, struct rows_written *p, il_error *reterr)
{
    il_guard_value values[ROWS_SHARED_MAX + ROWS_COLUMNS_MAX];
    enum rows_next more = ROWS_END;
    il_status      st   = IL_OK;
    int64_t        n    = 0;

    memcpy(values, r->shared, r->n_shared * sizeof *values);
    while (st == IL_OK && (more = r->next(r->cookie, values + r->n_shared)) == ROWS_MORE) {
        if (p->n++ % GO_ON_ROWS == 0 && !may_go_on(r))
            return cancelled(reterr);
        st = il__tables_run(tx, r->statement, values, r->n_shared + r->n_columns, add_new, p, &n,
                            reterr);
        p->n_changed += n;
    }
    return st == IL_OK && more == ROWS_NO_MEMORY ? no_memory(reterr) : st;
}

static void
add_value(struct il__buf *out, const il_guard_value *v)
{
    char number[24];

    switch (v->type) {
    case IL_GUARD_INT:
        (void)snprintf(number, sizeof number, "%" PRId64, v->integer);
        il__buf_adds(out, number);
        break;
    case IL_GUARD_JSON:
        il__buf_add(out, v->data, v->n_bytes);
        break;
    case IL_GUARD_TEXT:
        il__wire_print_text(out, v->data);
        break;
    default:
        CHECK(v->type == IL_GUARD_NULL);
        il__buf_adds(out, "null");
    }
}

/* Append one row; NULLs are left out. */
static void
add_row(struct il__buf *out, const struct rows *r, const il_guard_value *values)
{
    char separator = '{';

    for (size_t i = 0; i < r->n_columns; i++) {
        if (values[i].type == IL_GUARD_NULL)
            continue;
        il__buf_addc(out, separator);
        il__buf_addc(out, '"');
        il__buf_adds(out, r->columns[i]);
        il__buf_adds(out, "\":");
        add_value(out, &values[i]);
        separator = ',';
    }
    CHECK(separator == ','); /* the key at least */
    il__buf_addc(out, '}');
}

static il_status
write_many(il_guard_tx *tx, const struct rows *r, struct rows_written *p, il_error *reterr)
{
    AUTO_BUF struct il__buf json = { 0 };
    il_guard_value          values[ROWS_SHARED_MAX + 1], row[ROWS_COLUMNS_MAX];
    enum rows_next          more = ROWS_MORE;
    il_status               st   = IL_OK;
    int64_t                 n    = 0;

    il__buf_init(&json, ROWS_JSON_BYTES_MAX);
    memcpy(values, r->shared, r->n_shared * sizeof *values);
    while (more == ROWS_MORE && st == IL_OK) {
        size_t n_rows = 0;
        il__buf_clear(&json);
        while (n_rows < ROWS_PER_STATEMENT_MAX && (more = r->next(r->cookie, row)) == ROWS_MORE) {
            il__buf_addc(&json, n_rows++ == 0 ? '[' : ',');
            add_row(&json, r, row);
        }
        il__buf_addc(&json, ']');
        if (json.failed || more == ROWS_NO_MEMORY)
            return no_memory(reterr);
        if (n_rows == 0)
            break;
        if (!may_go_on(r))
            return cancelled(reterr);
        values[r->n_shared] = il_guard_json(il__buf_str(&json));
        st = il__tables_run(tx, r->statement, values, r->n_shared + 1, add_new, p, &n, reterr);
        p->n += (int64_t)n_rows;
        p->n_changed += n;
    }
    return st;
}

il_status
il__rows_write(il_guard_tx *tx, const struct rows *r, struct rows_written *ret, il_error *reterr)
{
    struct rows_written p = { 0 };

    CHECK(r->n_shared <= ROWS_SHARED_MAX && r->n_columns <= ROWS_COLUMNS_MAX);
    il_status st = il__guard_tx_is_postgres(tx) ? write_many(tx, r, &p, reterr)
                                                : write_each(tx, r, &p, reterr);
    if (st == IL_OK)
        *ret = p;
    return st;
}
