/*
 * lock_order.c: the rows that a transaction holds, the order in which rows may be locked, and what
 * observers are told.
 *
 * The order is total: by rank of the class, then by table (schema and name), then by primary key. A
 * transaction only ever locks rows that come after all those it holds. So no two transactions can
 * wait for each other: of all rows that are held and waited for, the holder of the highest-ranked
 * row waits for nothing.
 */
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "guard/guard_internal.h"

#define KEY_TEXT_BYTES_MAX 256

int
il__guard_id_compare(const il_guard_id *a, const il_guard_id *b)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        int diff = il__guard_value_compare(&a->values[i], &b->values[i]);
        if (diff != 0)
            return diff;
    }
    return (a->n > b->n) - (a->n < b->n);
}

static int
table_compare(const struct guard_table *a, const struct guard_table *b)
{
    int diff = a != b ? strcmp(a->schema, b->schema) : 0;

    return diff != 0 || a == b ? diff : strcmp(a->name, b->name);
}

struct guard_held *
il__guard_row_held(il_guard_tx *tx, const struct guard_table *t, const il_guard_id *id)
{
    for (size_t i = tx->n_rows; i > 0; i--) { /* what was locked last is used most */
        struct guard_held *h = &tx->rows[i - 1];
        if (h->ended_ns == 0 && table_compare(h->table, t) == 0 &&
            il__guard_id_compare(&h->id, id) == 0)
            return h;
    }
    return NULL;
}

/* ---- the order ------------------------------------------------------------------------------- */

bool
il__guard_order_needs_id(const il_guard_tx *tx, const il_guard_target *row)
{
    const struct guard_class *class_ = il__guard_class(tx->g, row->entity);

    for (size_t i = 0; class_ != NULL && i < tx->n_rows; i++) {
        if (tx->rows[i].ended_ns == 0 && tx->rows[i].class_->rank >= class_->rank)
            return true;
    }
    return false;
}

static bool
comes_after(const struct guard_held *h, const struct guard_class *class_,
            const struct guard_table *t, const il_guard_id *id)
{
    if (h->class_->rank != class_->rank)
        return h->class_->rank > class_->rank;
    int diff = table_compare(h->table, t);
    if (diff != 0 || id == NULL)
        return diff > 0;
    return il__guard_id_compare(&h->id, id) > 0;
}

il_status
il__guard_order(il_guard_tx *tx, const il_guard_target *row, const struct guard_table *t,
                const il_guard_id *id, il_error *reterr)
{
    const struct guard_class *class_ = il__guard_class(tx->g, row->entity);

    if (class_ == NULL)
        return il__error_set(reterr, IL_ORDER,
                             "class %s has no rank; declare it in il_guard_opts.ranks (%s)",
                             row->entity, row->place != NULL ? row->place : "unknown place");
#ifdef IL_MUTANT_guard_no_rank
    if (tx->n_rows > 0)
        return IL_OK;
#endif
    for (size_t i = 0; i < tx->n_rows; i++) {
        const struct guard_held *h = &tx->rows[i];
        if (h->ended_ns != 0 || !comes_after(h, class_, t, id))
            continue;
        return il__error_set(reterr, IL_ORDER,
                             "%s (rank %d) must be locked before %s %s (rank %d): locked at %s, "
                             "then %s at %s",
                             class_->name, class_->rank, h->class_->name, h->key, h->class_->rank,
                             h->place, class_->name,
                             row->place != NULL ? row->place : "unknown place");
    }
    return IL_OK;
}

/* ---- holding --------------------------------------------------------------------------------- */

static il_status
make_room(il_guard_tx *tx, il_error *reterr)
{
    if (tx->n_rows == IL_GUARD_ROWS_MAX)
        return il__error_set(reterr, IL_LIMIT,
                             "too many locked rows in one transaction (maximum %d)",
                             IL_GUARD_ROWS_MAX);
    if (!il__grow(&tx->rows, tx->n_rows, &tx->rows_capacity, sizeof *tx->rows))
        return il__error_set(reterr, IL_NOMEM, "out of memory for a row lock");
    return IL_OK;
}

static const char *
print_id(il_guard_tx *tx, const il_guard_id *id)
{
    AUTO_BUF struct il__buf text = { 0 };

    il__buf_init(&text, KEY_TEXT_BYTES_MAX);
    for (size_t i = 0; i < id->n; i++) {
        il__buf_adds(&text, i > 0 ? "," : "");
        il__guard_value_print(&id->values[i], &text);
    }
    return il__arena_strdup(&tx->mem, il__buf_str(&text));
}

static bool
copy_id(il_guard_tx *tx, const il_guard_id *id, il_guard_id *ret)
{
    il_guard_value *values = il__arena_alloc(&tx->mem, id->n * sizeof *values);

    if (values == NULL)
        return false;
    for (size_t i = 0; i < id->n; i++) {
        if (!il__guard_value_copy(&tx->mem, &id->values[i], &values[i]))
            return false;
    }
    *ret = (il_guard_id){ values, id->n };
    return true;
}

il_status
il__guard_row_hold(il_guard_tx *tx, const il_guard_target *row, const struct guard_table *t,
                   const il_guard_id *id, int64_t wait_ns, il_guard_id *ret, il_error *reterr)
{
    struct guard_held *h = il__guard_row_held(tx, t, id);

    for (size_t i = 0; i < id->n; i++) { /* SQLite allows it; such a row is not identified */
        if (id->values[i].type == IL_GUARD_NULL)
            return il__error_set(reterr, IL_INVAL, "table %s: the primary key of the row is NULL",
                                 row->table);
    }
    if (h == NULL) {
        il_status st = make_room(tx, reterr);
        if (st != IL_OK)
            return st;
        h  = &tx->rows[tx->n_rows];
        *h = (struct guard_held){
            .class_           = il__guard_class(tx->g, row->entity),
            .table            = t,
            .asked            = il__arena_strdup(&tx->mem, row->table),
            .key              = print_id(tx, id),
            .place            = il__arena_strdup(&tx->mem, row->place != NULL ? row->place : ""),
            .wait_ns          = wait_ns + tx->begin_wait_ns,
            .since_ns         = il__clock_boot_ns(),
            .n_queries_before = tx->n_queries,
        };
        CHECK(h->class_ != NULL);
        if (h->asked == NULL || h->key == NULL || h->place == NULL || !copy_id(tx, id, &h->id))
            return il__error_set(reterr, IL_NOMEM, "out of memory for a row lock");
        if (tx->begin_wait_ns > 0) /* the file's lock is held since the begin */
            h->since_ns -= wait_ns;
        tx->begin_wait_ns = 0;
        tx->n_rows++;
    }
    if (ret != NULL)
        *ret = h->id;
    return IL_OK;
}

void
il__guard_row_let_go(il_guard_tx *tx, size_t n)
{
    int64_t now_ns = il__clock_boot_ns();

    for (size_t i = n; i < tx->n_rows; i++) {
        struct guard_held *h = &tx->rows[i];
        if (h->ended_ns != 0)
            continue;
        h->ended_ns  = now_ns;
        h->n_queries = tx->n_queries - h->n_queries_before;
    }
}

void
il__guard_report(il_guard_tx *tx, il_guard_outcome outcome)
{
    for (size_t i = 0; tx->g->observe != NULL && i < tx->n_rows; i++) {
        const struct guard_held *h = &tx->rows[i];
        tx->g->observe(tx->g->cookie, &(il_guard_event){
                                          .pipeline   = tx->pipeline,
                                          .caller     = tx->caller,
                                          .entity     = h->class_->name,
                                          .table      = h->asked,
                                          .key        = h->key,
                                          .place      = h->place,
                                          .wait_ns    = h->wait_ns,
                                          .hold_ns    = MAX(h->ended_ns - h->since_ns, 0),
                                          .n_queries  = h->n_queries,
                                          .n_attempt  = tx->n_attempt,
                                          .outcome    = outcome,
                                          .constraint = tx->constraint,
                                          .tags       = tx->tags,
                                          .n_tags     = tx->n_tags,
                                      });
    }
}
