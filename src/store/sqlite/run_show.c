/*
 * run_show.c: formats runs for replies, and get and list, in the SQLite engine. They change nothing
 * and work on either connection: a run whose lease has expired is shown in the state in which it
 * will end.
 */
#include "base/arena.h"
#include "core/cursor.h"
#include "core/limits.h"
#include "core/op.h"
#include "store/sqlite/run.h"

/* Its place among the pending runs of its key that have not ended. */
static bool
read_position(struct sq_conn *c, const struct sq_state *st, const struct sq_run *r, uint32_t *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_run_position);

    if (!il__sq_bind_text(c, row, 1, r->info.tenant) || !il__sq_bind_text(c, row, 2, r->info.key) ||
        !il__sq_bind_int(c, row, 3, (int64_t)r->info.seq) ||
        !il__sq_bind_int(c, row, 4, st->now_ms) || il__sq_step(c, row) != SQLITE_ROW)
        return false;
    *ret = (uint32_t)sqlite3_column_int64(row, 0);
    return il__sq_stmt_run(c, row);
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

/* ---- listing --------------------------------------------------------------------------------- */

#define LIVE (1U << IL_RUN_PENDING | 1U << IL_RUN_RUNNING)

/* Rows that a page reads: its own, one more to detect a next page, and those it skips. */
static int64_t
rows_of(const il_op *op)
{
    return (int64_t)op->in.list.limit + 1 + IL__LOOK_MAX;
}

/* The seqs of the rows that a page reads, newest first. Keys that do not match are left out:
 * *ret_last is the last row, shown or not. */
static bool
look(struct sq_conn *c, const il_op *op, uint64_t *seqs, size_t *ret_n, uint64_t *ret_last)
{
    const il_list_in *in     = &op->in.list;
    const char       *prefix = op->key == NULL && in->prefix != NULL ? in->prefix : "";
    uint32_t          states = in->states != 0 ? in->states : UINT32_MAX;
    sqlite3_stmt     *row    = il__sq_use(c, op->key != NULL ? SQ_run_list_key : SQ_run_list);
    uint64_t          below  = INT64_MAX;
    int64_t           n      = 0;
    const char       *id;
    int               rc;

    if (il__run_may_be_live(in->states))
        states |= LIVE;
    *ret_last = *ret_n = 0;
    if (in->cursor != NULL)
        CHECK(il__cursor_parse(in->cursor, &id, &below));
    /* all of them are meant */
    int64_t n_ended = prefix[0] == '\0' ? (int64_t)in->limit + 1 : rows_of(op);
    if (!il__sq_bind_text(c, row, 1, op->tenant) || !il__sq_bind_int(c, row, 2, (int64_t)below) ||
        !il__sq_bind_int(c, row, 3, states) || !il__sq_bind_int(c, row, 4, rows_of(op)) ||
        !il__sq_bind_int(c, row, 5, n_ended) ||
        (op->key != NULL && !il__sq_bind_text(c, row, 6, op->key)))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        uint64_t seq = (uint64_t)sqlite3_column_int64(row, 0);
        if (strncmp(il__sq_text(row, 1), prefix, strlen(prefix)) == 0)
            seqs[(*ret_n)++] = seq;
        if (++n == rows_of(op)) /* how far it has read */
            *ret_last = seq;
    }
    return rc == SQLITE_DONE;
}

static bool
go_on_below(struct sq_conn *c, il_op *op, const char *id, uint64_t seq)
{
    op->out.next = il__op_cursor(op, id, seq);
    return op->out.next != NULL || il__sq_no_memory(c);
}

static bool
list_runs(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op)
{
    void     *scratch = NULL;
    uint64_t *seqs    = il__arena_alloc(arena, (size_t)rows_of(op) * sizeof *seqs);
    size_t    n;
    uint64_t  last;
    bool      found;
    bool      full = false;

    if (seqs == NULL)
        return il__sq_no_memory(c);
    bool ok    = look(c, op, seqs, &n, &last);
    op->status = IL_OK;
    for (size_t i = 0; ok && !full && i < n; i++) {
        struct sq_run r;
        il__arena_clear(&scratch);
        ok = il__sq_run_find_seq(c, &scratch, op->tenant, seqs[i], &r, &found);
        if (!ok || !found || !il__run_wanted(op->in.list.states, state_at(st, &r)))
            continue;
        full = op->out.n_runs == op->in.list.limit;
        if (!full)
            ok = il__sq_run_show(c, st, op, &r);
    }
    il__arena_free(&scratch);
    if (ok && full)
        ok = go_on_below(c, op, op->out.runs[op->out.n_runs - 1].id,
                         op->out.runs[op->out.n_runs - 1].seq);
    else if (ok && last != 0)
        ok = go_on_below(c, op, IL__NO_ID, last);
    op->out.fence = 0;
    return ok;
}

bool
il__sq_run_read(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op)
{
    struct sq_run r;
    bool          found;

    if (op->type == IL_OP_RUN_LIST)
        return list_runs(c, st, arena, op);
    if (!il__sq_run_find(c, arena, op->tenant, op->in.run.id, &r, &found))
        return false;
    op->status = found ? IL_OK : IL_NOT_FOUND;
    if (found && !il__sq_run_show(c, st, op, &r))
        return false;
    return !found || op->type != IL_OP_RUN_LOG || il__sq_run_log_read(c, op, &r);
}
