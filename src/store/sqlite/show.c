/*
 * show.c: get, list and check_fence in the SQLite engine. They change nothing and work on either
 * connection: in the batch's transaction, or in a read transaction beside it.
 */
#include "base/arena.h"
#include "core/cursor.h"
#include "core/lease.h"
#include "core/limits.h"
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
        /* the caller knows that it is live */
        IGNORE(il__lease_view(st->now_ms, h->settle_ms, &state, &ends));
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
count_waiters(struct sq_conn *c, const struct sq_state *st, const char *tenant, const char *key,
              int64_t *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_waiter_count);

    if (!il__sq_bind_text(c, row, 1, tenant) || !il__sq_bind_text(c, row, 2, key) ||
        !il__sq_bind_int(c, row, 3, st->now_ms) || !il__sq_bind_int(c, row, 4, IL_COUNT_MAX) ||
        il__sq_step(c, row) != SQLITE_ROW)
        return false;
    *ret = sqlite3_column_int64(row, 0);
    return il__sq_stmt_run(c, row);
}

/* Call `each` for every live lease of the op's key, oldest first, until it returns false. */
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
        (void)sqlite3_reset(row); /* interrupted halfway */
    il__arena_free(&arena);
    return rc == SQLITE_DONE;
}

static bool
get_each(struct sq_conn *c, const struct sq_state *st, il_op *op, const struct sq_hold *h,
         int64_t n_waiters)
{
    op->status    = IL_OK;
    op->out.fence = h->number; /* the last one is the newest */
    return op->out.n_items >= IL_PAGE_ITEMS_MAX || !il__op_has_room(op, IL__LEASE_BYTES) ||
           il__sq_show(c, st, op, op->key, h, n_waiters);
}

bool
il__sq_get(struct sq_conn *c, const struct sq_state *st, il_op *op)
{
    int64_t n_waiters;

    op->status = IL_NOT_HELD;
    return count_waiters(c, st, op->tenant, op->key, &n_waiters) &&
           for_leases(c, st, op, get_each, n_waiters);
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

/* ---- listing --------------------------------------------------------------------------------- */

/* Rows that a page reads: its own, one more to detect a next page, and those it skips. */
static int64_t
rows_of(const il_op *op)
{
    return (int64_t)op->in.list.limit + 1 + IL__LOOK_MAX;
}

/* A page in progress. */
struct page {
    struct sq_conn        *c;
    const struct sq_state *st;
    il_op                 *op;
    sqlite3_stmt          *row;
    void                  *arena;
    bool                   waiters;
    /* the key whose waiters were last counted, in the op's memory; NULL = none */
    const char *counted;
    int64_t     n_waiters;
    char        end[IL_KEY_BYTES_MAX + 2]; /* of the keys; bound without a copy */
};

static bool
bind_page(struct page *p)
{
    const il_op *op     = p->op;
    const char  *prefix = op->in.list.prefix != NULL ? op->in.list.prefix : "";
    const char  *key    = prefix;
    uint64_t     number = 0;

    if (op->in.list.cursor != NULL)
        CHECK(il__cursor_parse(op->in.list.cursor, &key, &number));
    if (strcmp(key, prefix) < 0) { /* one lower bound, so that the page begins by a seek */
        key    = prefix;
        number = 0;
    }
    (void)snprintf(p->end, sizeof p->end, "%s\xFF", prefix); /* a byte that UTF-8 never has */
    return il__sq_bind_text(p->c, p->row, 1, op->tenant) &&
           il__sq_bind_text(p->c, p->row, 2, key) &&
           il__sq_bind_int(p->c, p->row, 3, (int64_t)number) &&
           il__sq_bind_text(p->c, p->row, 4, p->end) &&
           il__sq_bind_int(p->c, p->row, 5, rows_of(op));
}

/* Are the contents of a row still visible? */
static bool
is_seen(const struct page *p, const struct sq_hold *h)
{
    il_lease_state state = h->state;
    int64_t        ends  = h->due_ms;

    if (p->waiters)
        return h->due_ms > p->st->now_ms && h->verdict[0] == '\0';
    return il__lease_view(p->st->now_ms, h->settle_ms, &state, &ends);
}

/* Show the contents of a row. The queue of a key is counted once, however many of its waiters are
 * on the page. */
static bool
show_row(struct page *p, const char *key, const struct sq_hold *h)
{
    if (p->counted == NULL || strcmp(p->counted, key) != 0) {
        p->counted = il__op_strdup(p->op, key);
        if (p->counted == NULL)
            return il__sq_no_memory(p->c);
        if (!count_waiters(p->c, p->st, p->op->tenant, key, &p->n_waiters))
            return false;
    }
    return il__sq_show(p->c, p->st, p->op, key, h, p->n_waiters);
}

static bool
go_on_after(struct page *p, const char *key, uint64_t number)
{
    p->op->out.next = il__op_cursor(p->op, key, number);
    return p->op->out.next != NULL || il__sq_no_memory(p->c);
}

/* Process one row: *ret_full if it is beyond the page and only provides the cursor. */
static bool
page_row(struct page *p, int64_t n_looked, bool *ret_full)
{
    il_op         *op = p->op;
    struct sq_hold h;

    il__arena_clear(&p->arena);
    const char *key = il__arena_strdup(&p->arena, il__sq_text(p->row, 14));
    if (key == NULL || !(p->waiters ? il__sq_waiter_row(&p->arena, p->row, &h)
                                    : il__sq_lease_row(&p->arena, p->row, &h)))
        return il__sq_no_memory(p->c);
    bool seen = is_seen(p, &h);
    if (seen && op->out.n_items == op->in.list.limit) {
        const il_lease_info *last = &op->out.items[op->out.n_items - 1];
        *ret_full                 = true;
        return go_on_after(p, last->key, p->waiters ? last->ticket : last->fence);
    }
    if (seen && !show_row(p, key, &h))
        return false;
    *ret_full = n_looked == rows_of(op); /* how far the page has read */
    return !*ret_full || go_on_after(p, key, h.number);
}

bool
il__sq_list(struct sq_conn *c, const struct sq_state *st, il_op *op)
{
    struct page p = { .c = c, .st = st, .op = op, .waiters = (op->flags & IL_LIST_WAITERS) != 0 };
    int64_t     n = 0;
    bool        full = false;
    bool        ok   = true;
    int         rc   = SQLITE_DONE;

    p.row      = il__sq_use(c, p.waiters ? SQ_waiter_list : SQ_lease_list);
    op->status = IL_OK;
    if (!bind_page(&p))
        return false;
    while (ok && !full && (rc = il__sq_step(c, p.row)) == SQLITE_ROW)
        ok = page_row(&p, ++n, &full);
    if (!ok || full)
        (void)sqlite3_reset(p.row); /* interrupted halfway */
    il__arena_free(&p.arena);
    return ok && (full || rc == SQLITE_DONE);
}
