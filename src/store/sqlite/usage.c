/*
 * usage.c: adds up what a tenant stores, one page of rows at a time; see core/usage.h.
 */
#include "core/usage.h"

#include <stdio.h>

#include "store/sqlite/sqlite_internal.h"

/* Add up at most n rows after the place, and move it to the last of them. Returns how many; -1:
 * failed. */
static int64_t
add_up(struct sq_conn *c, il_op *op, struct il__usage_place *place, char *name, int64_t n)
{
    static const enum sq_stmt statements[IL__USAGE_KINDS] = {
        [IL__USAGE_CACHE] = SQ_usage_cache, [IL__USAGE_ONCE] = SQ_usage_once,
        [IL__USAGE_JOBS] = SQ_usage_jobs,   [IL__USAGE_RUNS] = SQ_usage_runs,
        [IL__USAGE_CRONS] = SQ_usage_crons,
    };
    sqlite3_stmt *row = il__sq_use(c, statements[place->kind]);

    if (!il__sq_bind_text(c, row, 1, op->tenant) || !il__sq_bind_text(c, row, 2, place->name) ||
        !il__sq_bind_int(c, row, 3, n) || il__sq_step(c, row) != SQLITE_ROW)
        return -1;
    int64_t n_rows = sqlite3_column_int64(row, 0);
    op->out.usage.n_rows += (uint64_t)n_rows;
    op->out.usage.n_bytes += (uint64_t)sqlite3_column_int64(row, 1);
    (void)snprintf(name, IL_KEY_BYTES_MAX + 1, "%s", il__sq_text(row, 2)); /* it fits */
    place->name = name;
    return il__sq_stmt_run(c, row) ? n_rows : -1;
}

bool
il__sq_usage(struct sq_conn *c, il_op *op)
{
    struct il__usage_place place = il__usage_place(op);
    int64_t                left  = op->in.list.limit;
    char                   name[IL_KEY_BYTES_MAX + 1];

    op->status = IL_OK;
    for (; place.kind < IL__USAGE_KINDS; place.kind++) {
        int64_t n = add_up(c, op, &place, name, left);
        if (n < 0)
            return false;
        left -= n;
        if (left == 0)
            return il__usage_next(op, &place) || il__sq_no_memory(c);
        place.name = "";
    }
    return true;
}
