/*
 * run_show.c: how a run looks on the SQLite engine; get and list. They change nothing and work on either connection: a run
 * whose lease has expired is shown as it will end.
 */
#include "base/arena.h"
#include "core/op.h"
#include "store/sqlite/run.h"

/* Its place among the pending runs of its key, those that are still there. */
static bool
read_position(struct sq_conn *c, const struct sq_state *st, const struct sq_run *r, uint32_t *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_run_position);

    if (!il__sq_bind_text(c, row, 1, r->info.tenant) || !il__sq_bind_text(c, row, 2, r->info.key) ||
        !il__sq_bind_int(c, row, 3, (int64_t)r->info.seq) ||
        !il__sq_bind_int(c, row, 4, st->now_ms) || il__sq_step(c, row) != SQLITE_ROW)
        return false;
    *ret = (uint32_t)sqlite3_column_int64(row, 0);
    return il__sq_run(c, row);
}

static il_run_state
state_at(const struct sq_state *st, const struct sq_run *r)
{
    return il__run_state_at(r->info.state, r->info.cancelled != 0, &r->hold, st->now_ms);
}

bool
il__sq_run_show_at(struct sq_conn *c, const struct sq_state *st, il_op *op, const struct sq_run *r,
                   uint32_t position)
{
    il_run_info info = r->info;

    info.position            = position;
    const il_run_info *shown = il__run_show(op, info, r->error, &r->hold, st->now_ms, st->wall_ms);
    if (shown == NULL)
        return il__sq_no_memory(c);
    op->out.fence = shown->fence;
    return true;
}

bool
il__sq_run_show(struct sq_conn *c, const struct sq_state *st, il_op *op, const struct sq_run *r)
{
    uint32_t position = 0;

    if (state_at(st, r) == IL_RUN_PENDING && !read_position(c, st, r, &position))
        return false;
    return il__sq_run_show_at(c, st, op, r, position);
}

/* ---- listing ---------------------------------------------------------------------------------------------------- */

#define LIVE (1U << IL_RUN_PENDING | 1U << IL_RUN_RUNNING)

/* The end of the range of keys that begin with `text`: it, then a byte. No UTF-8 has 0xFF; no key has 0x01, so
 * that with it the range is the one key. */
static void
range_end(const char *text, unsigned char byte, char out[IL_KEY_BYTES_MAX + 2])
{
    size_t n = strlen(text);

    memcpy(out, text, n);
    out[n]     = (char)byte;
    out[n + 1] = '\0';
}

/* The statement of a listing, ready to be stepped; NULL: the database failed. `end` lives as long. */
static sqlite3_stmt *
begin_list(struct sq_conn *c, const il_op *op, char end[IL_KEY_BYTES_MAX + 2])
{
    const il_list_in *in     = &op->in.list;
    const char       *first  = op->key != NULL ? op->key : in->prefix != NULL ? in->prefix : "";
    uint32_t          states = in->states != 0 ? in->states : UINT32_MAX;
    bool              live   = (states & ~LIVE) == 0;
    enum sq_stmt  stmt  = live ? SQ_run_list_live : op->key != NULL ? SQ_run_list_key : SQ_run_list;
    uint64_t      below = INT64_MAX;
    const char   *id;
    sqlite3_stmt *row = il__sq_use(c, stmt);

    if (in->cursor != NULL)
        CHECK(il__cursor_parse(in->cursor, &id, &below));
    range_end(first, op->key != NULL ? 0x01 : 0xFF, end);
    bool ok = il__sq_bind_text(c, row, 1, op->tenant) &&
              il__sq_bind_int(c, row, 2, (int64_t)below) && il__sq_bind_text(c, row, 3, first);
    if (ok && stmt != SQ_run_list_key)
        ok = il__sq_bind_text(c, row, 4, end);
    if (ok && !live)
        ok = il__sq_bind_int(c, row, stmt == SQ_run_list_key ? 4 : 5, states);
    return ok ? row : NULL;
}

/* Show one row of the listing, if it belongs there. *ret_full: it is one more than fits, and a cursor was made. */
static bool
list_row(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op, sqlite3_stmt *row,
         bool *ret_full)
{
    struct sq_run r;

    il__arena_clear(arena);
    if (!il__sq_run_row(c, arena, row, op->tenant, &r))
        return false;
    if (!il__run_wanted(op->in.list.states, state_at(st, &r)))
        return true;
    if (op->out.n_runs < op->in.list.limit)
        return il__sq_run_show(c, st, op, &r);
    const il_run_info *last = &op->out.runs[op->out.n_runs - 1];
    *ret_full               = true;
    op->out.next            = il__op_cursor(op, last->id, last->seq);
    return op->out.next != NULL || il__sq_no_memory(c);
}

bool
il__sq_run_list(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op)
{
    char          end[IL_KEY_BYTES_MAX + 2];
    sqlite3_stmt *row  = begin_list(c, op, end);
    bool          full = false;
    int           rc   = 0;

    op->status = IL_OK;
    while (!full && (rc = il__sq_step(c, row)) == SQLITE_ROW) {
        if (!list_row(c, st, arena, op, row, &full)) {
            (void)sqlite3_reset(row);
            return false;
        }
    }
    if (full)
        (void)sqlite3_reset(row); /* the rest is for the next page */
    op->out.fence = 0;
    return full || rc == SQLITE_DONE;
}

bool
il__sq_run_read(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op)
{
    struct sq_run r;
    bool          found;

    if (op->type == IL_OP_RUN_LIST)
        return il__sq_run_list(c, st, arena, op);
    if (!il__sq_run_find(c, arena, op->tenant, op->in.run.id, &r, &found))
        return false;
    op->status = found ? IL_OK : IL_NOT_FOUND;
    if (found && !il__sq_run_show(c, st, op, &r))
        return false;
    return !found || op->type != IL_OP_RUN_LOG || il__sq_run_log_read(c, op, &r);
}
