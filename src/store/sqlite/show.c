/*
 * show.c: get, list and check_fence on the SQLite engine. They change nothing and work on either
 * connection: in the batch's transaction, or in a read transaction beside it.
 */
#include "base/arena.h"
#include "core/lease.h"
#include "core/op.h"
#include "store/sqlite/sqlite_internal.h"

bool
il__sq_show(struct sq_conn *c, const struct sq_state *st, il_op *op, const char *key,
            const struct sq_hold *h, int64_t n_waiters)
{
    bool           waits = h->state == IL_LEASE_WAITING;
    il_lease_state state = h->state;
    int64_t        ends  = h->due_ms;

    if (waits)
        ends = h->deadline_ms;
    else
        IGNORE(il__lease_view(st->now_ms, h->settle_ms, &state, &ends)); /* the caller knows that it lives */
    il_lease_info item = {
        .tenant         = op->tenant,
        .key            = key,
        .holder         = h->holder,
        .meta           = h->meta,
        .place          = h->place,
        .reason         = h->reason,
        .fence          = waits ? 0 : h->number,
        .ticket         = waits ? h->number : 0,
        .mode           = h->mode,
        .permits        = h->permits,
        .state          = state,
        .n_waiters      = (uint32_t)n_waiters,
        .ttl_ms         = h->ttl_ms,
        .age_ms         = st->now_ms - h->since_ms,
        .remaining_ms   = ends == IL__NEVER ? IL_FOREVER : ends - st->now_ms,
        .renewed_ms     = st->now_ms - h->renewed_ms,
        .acquired_at_ms = st->wall_ms - (st->now_ms - h->since_ms),
        .expires_at_ms  = ends == IL__NEVER ? INT64_MAX : st->wall_ms + ends - st->now_ms,
    };

    return il__op_add_item(op, &item) || il__sq_no_memory(c);
}

static bool
count_waiters(struct sq_conn *c, const struct sq_state *st, const il_op *op, int64_t *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_waiter_count);

    if (!il__sq_bind_text(c, row, 1, op->tenant) || !il__sq_bind_text(c, row, 2, op->key) ||
        !il__sq_bind_int(c, row, 3, st->now_ms) || il__sq_step(c, row) != SQLITE_ROW)
        return false;
    *ret = sqlite3_column_int64(row, 0);
    return il__sq_run(c, row);
}

/* Call `each` for every live lease of the op's key, oldest first, until one says false. */
static bool
for_leases(struct sq_conn *c, const struct sq_state *st, il_op *op,
           bool (*each)(struct sq_conn *, const struct sq_state *, il_op *, const struct sq_hold *,
                        int64_t),
           int64_t n_waiters)
{
    void         *arena = NULL;
    sqlite3_stmt *row   = il__sq_use(c, SQ_lease_of_key);
    int           rc    = 0;

    if (!il__sq_bind_text(c, row, 1, op->tenant) || !il__sq_bind_text(c, row, 2, op->key))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        struct sq_hold h;
        if (!il__sq_lease_row(&arena, row, &h)) {
            (void)il__sq_no_memory(c);
            break;
        }
        if (il__lease_view(st->now_ms, h.settle_ms, &h.state, &h.due_ms) &&
            !each(c, st, op, &h, n_waiters))
            break;
    }
    if (rc == SQLITE_ROW)
        (void)sqlite3_reset(row); /* left in the middle */
    il__arena_free(&arena);
    return rc == SQLITE_DONE;
}

static bool
get_each(struct sq_conn *c, const struct sq_state *st, il_op *op, const struct sq_hold *h,
         int64_t n_waiters)
{
    op->status    = IL_OK;
    op->out.fence = h->number; /* the last one is the newest */
    return op->out.n_items >= IL_PAGE_ITEMS_MAX || il__sq_show(c, st, op, op->key, h, n_waiters);
}

bool
il__sq_get(struct sq_conn *c, const struct sq_state *st, il_op *op)
{
    int64_t n_waiters;

    op->status = IL_NOT_HELD;
    return count_waiters(c, st, op, &n_waiters) && for_leases(c, st, op, get_each, n_waiters);
}

static bool
check_each(struct sq_conn *c UNUSED, const struct sq_state *st UNUSED, il_op *op,
           const struct sq_hold *h, int64_t n_waiters UNUSED)
{
    op->out.fence = h->number;
    if (h->number == op->fence && h->state == IL_LEASE_HELD)
        op->status = IL_OK;
    return true;
}

bool
il__sq_check_fence(struct sq_conn *c, const struct sq_state *st, il_op *op)
{
    op->status = IL_STALE;
    return for_leases(c, st, op, check_each, 0);
}

/* ---- listing -------------------------------------------------------------------------------------------------- */

static bool
bind_page(struct sq_conn *c, const struct sq_state *st, sqlite3_stmt *row, const il_op *op)
{
    const char *after_key    = "";
    uint64_t    after_number = 0;

    if (op->in.list.cursor != NULL)
        CHECK(il__cursor_parse(op->in.list.cursor, &after_key, &after_number));
    return il__sq_bind_text(c, row, 1, op->tenant) &&
           il__sq_bind_prefix(c, row, 2, op->in.list.prefix) &&
           il__sq_bind_text(c, row, 4, after_key) &&
           il__sq_bind_int(c, row, 5, (int64_t)after_number) &&
           il__sq_bind_int(c, row, 6, st->now_ms) &&
           il__sq_bind_int(c, row, 7, (int64_t)op->in.list.limit + 1); /* one more tells of a next page */
}

/* Show the rows of the page; the one beyond it only makes a cursor. */
static bool
show_page(struct sq_conn *c, const struct sq_state *st, il_op *op, sqlite3_stmt *row, bool waiters,
          void **arena)
{
    int      i_key    = 14;
    uint64_t last     = 0;
    char    *last_key = NULL;
    int      rc;

    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        struct sq_hold h;
        if (op->out.n_items == op->in.list.limit) {
            (void)sqlite3_reset(row); /* the rest is for the next page */
            op->out.next = il__op_cursor(op, last_key, last);
            return op->out.next != NULL || il__sq_no_memory(c);
        }
        il__arena_clear(arena);
        last_key  = il__arena_strdup(arena, il__sq_text(row, i_key));
        bool read = waiters ? il__sq_waiter_row(arena, row, &h) : il__sq_lease_row(arena, row, &h);
        if (!read || last_key == NULL ||
            !il__sq_show(c, st, op, last_key, &h, sqlite3_column_int64(row, i_key + 1))) {
            (void)sqlite3_reset(row);
            return il__sq_no_memory(c);
        }
        last = h.number;
    }
    return rc == SQLITE_DONE;
}

bool
il__sq_list(struct sq_conn *c, const struct sq_state *st, il_op *op)
{
    bool          waiters = (op->flags & IL_LIST_WAITERS) != 0;
    void         *arena   = NULL;
    sqlite3_stmt *row     = il__sq_use(c, waiters ? SQ_waiter_list : SQ_lease_list);

    op->status = IL_OK;
    bool ok    = bind_page(c, st, row, op) && show_page(c, st, op, row, waiters, &arena);
    il__arena_free(&arena);
    return ok;
}
