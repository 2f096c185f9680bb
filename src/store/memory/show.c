/*
 * show.c: get, list and check_fence in the memory engine. They change nothing: overdue holds are
 * skipped, not expired.
 */
#include "core/cursor.h"
#include "core/lease.h"
#include "core/limits.h"
#include "core/op.h"
#include "store/memory/memory_internal.h"

static uint32_t
count_waiters(const struct mem_store *m, const struct mem_key *k)
{
    uint32_t n = 0;

    for (const struct mem_hold *h = k->waiters.head; h != NULL && n < IL_COUNT_MAX; h = h->next)
        n += h->verdict == NULL && !il__mem_hold_is_dead(m, h);
    return n;
}

/* Append the hold to the op's items. False: no memory. */
bool
il__mem_show(struct mem_store *m, il_op *op, const struct mem_hold *h)
{
    bool           waits = h->state == IL_LEASE_WAITING;
    il_lease_state state = h->state;
    int64_t        ends  = h->due.at;
    int64_t        wall  = m->clock->wall_ms(m->clock->cookie);

    if (waits)
        ends = h->deadline_ms;
    else
        /* the caller knows that it is live */
        IGNORE(il__lease_view(m->now_ms, h->settle_ms, &state, &ends));
    il_lease_info item = {
        .tenant         = h->key->tenant,
        .key            = h->key->key,
        .holder         = h->holder,
        .meta           = h->meta,
        .place          = h->place,
        .reason         = !waits && h->verdict != NULL ? h->verdict : "",
        .fence          = h->fence,
        .ticket         = waits ? h->ticket : 0,
        .mode           = h->mode,
        .permits        = h->permits,
        .state          = state,
        .n_waiters      = count_waiters(m, h->key),
        .ttl_ms         = h->ttl_ms,
        .age_ms         = m->now_ms - h->since_ms,
        .remaining_ms   = ends == IL__NEVER ? IL_FOREVER : ends - m->now_ms,
        .renewed_ms     = m->now_ms - h->renewed_ms,
        .acquired_at_ms = wall - (m->now_ms - h->since_ms),
        .expires_at_ms  = ends == IL__NEVER ? INT64_MAX : wall + ends - m->now_ms,
    };

    return il__op_add_item(op, &item);
}

/* Has it ended? A lease whose key is still settling has not. */
static bool
is_over(const struct mem_store *m, const struct mem_hold *h)
{
    il_lease_state state = h->state;
    int64_t        ends  = h->due.at;

    if (h->state == IL_LEASE_WAITING)
        return il__mem_hold_is_dead(m, h);
    return !il__lease_view(m->now_ms, h->settle_ms, &state, &ends);
}

void
il__mem_get(struct mem_store *m, il_op *op)
{
    struct mem_key *k = il__mem_key_find(m, il__mem_hash_op(m, op), op->tenant, op->key);

    op->status = IL_NOT_HELD;
    if (k == NULL)
        return;
    for (const struct mem_hold *h = k->leases.head; h != NULL; h = h->next) {
        if (is_over(m, h))
            continue;
        op->status    = IL_OK;
        op->out.fence = h->fence; /* the last one is the newest */
        if (op->out.n_items < IL_PAGE_ITEMS_MAX && il__op_has_room(op, IL__LEASE_BYTES) &&
            !il__mem_show(m, op, h)) {
            op->status = IL_NOMEM;
            return;
        }
    }
}

void
il__mem_check_fence(struct mem_store *m, il_op *op)
{
    struct mem_key *k = il__mem_key_find(m, il__mem_hash_op(m, op), op->tenant, op->key);

    op->status = IL_STALE;
    if (k == NULL)
        return;
    for (const struct mem_hold *h = k->leases.head; h != NULL; h = h->next) {
        if (is_over(m, h))
            continue;
        op->out.fence = h->fence;
        if (h->fence == op->fence && h->state == IL_LEASE_HELD && !il__mem_hold_is_dead(m, h))
            op->status = IL_OK;
    }
}

/* ---- listing: collect the matching holds, sort them, show a page ----------------------------- */

static uint64_t
number_of(const struct mem_hold *h)
{
    return h->state == IL_LEASE_WAITING ? h->ticket : h->fence;
}

static int
compare_holds(const void *a, const void *b)
{
    const struct mem_hold *x = *(const struct mem_hold *const *)a;
    const struct mem_hold *y = *(const struct mem_hold *const *)b;
    int                    c = strcmp(x->key->key, y->key->key);

    if (c != 0)
        return c;
    return number_of(x) < number_of(y) ? -1 : number_of(x) > number_of(y);
}

/* Does the hold belong on the page: right tenant and prefix, alive, after the cursor? */
static bool
is_listed(const struct mem_store *m, const il_op *op, const struct mem_hold *h,
          const char *after_key, uint64_t after_number)
{
    const char *prefix = op->in.list.prefix != NULL ? op->in.list.prefix : "";

    if ((h->state == IL_LEASE_WAITING && h->verdict != NULL) || is_over(m, h) ||
        strcmp(h->key->tenant, op->tenant) != 0 ||
        strncmp(h->key->key, prefix, strlen(prefix)) != 0)
        return false;
    if (after_key == NULL)
        return true;
    int c = strcmp(h->key->key, after_key);
    return c > 0 || (c == 0 && number_of(h) > after_number);
}

void
il__mem_list(struct mem_store *m, il_op *op)
{
    const char *after_key    = NULL;
    uint64_t    after_number = 0;
    size_t      n            = 0;
    bool        waiters      = (op->flags & IL_LIST_WAITERS) != 0;

    if (op->in.list.cursor != NULL)
        CHECK(il__cursor_parse(op->in.list.cursor, &after_key, &after_number));
    AUTO_FREE const struct mem_hold **found = il__calloc(m->n_holds + 1, sizeof *found);
    op->status                              = found != NULL ? IL_OK : IL_NOMEM;
    for (size_t i = 0; i < m->keys.size && op->status == IL_OK; i++) {
        const struct mem_key  *k = m->keys.slots[i].item;
        const struct mem_hold *h = k == NULL ? NULL : waiters ? k->waiters.head : k->leases.head;
        for (; h != NULL; h = h->next) {
            if (is_listed(m, op, h, after_key, after_number))
                found[n++] = h;
        }
    }
    if (n > 0)
        qsort(found, n, sizeof *found, compare_holds);
    for (size_t i = 0; i < MIN(n, op->in.list.limit) && op->status == IL_OK; i++) {
        if (!il__mem_show(m, op, found[i]))
            op->status = IL_NOMEM;
    }
    if (op->status == IL_OK && n > op->in.list.limit) {
        const struct mem_hold *last = found[op->in.list.limit - 1];
        op->out.next                = il__op_cursor(op, last->key->key, number_of(last));
        if (op->out.next == NULL)
            op->status = IL_NOMEM;
    }
}
