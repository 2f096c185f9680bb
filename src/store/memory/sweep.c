/*
 * sweep.c: recovery on the memory engine, and what it delivers to the deadlock search of the core.
 */
#include "core/deadlock.h"
#include "core/key.h"
#include "core/lease.h"
#include "core/op.h"
#include "store/memory/memory_internal.h"

struct search {
    struct mem_store *m;
    const char       *tenant;
};

static bool
waits_of(void *cookie, const char *root, size_t root_bytes UNUSED, struct il__deadlock *d)
{
    struct search *s    = cookie;
    uint64_t       unit = il__mem_hash_unit(s->m, s->tenant, root);

    for (struct mem_hold *h = il__mem_unit_first(s->m, unit, s->tenant, root); h != NULL;
         h                  = il__mem_unit_next(h)) {
        if (h->state == IL_LEASE_WAITING && h->verdict == NULL)
            il__deadlock_add_wanted(d, h->key->key);
    }
    return true;
}

static bool
queue_of(void *cookie, const char *key, struct il__deadlock *d)
{
    struct search        *s = cookie;
    const struct mem_key *k =
        il__mem_key_find(s->m, il__mem_hash_key(s->m, s->tenant, key), s->tenant, key);

    CHECK(k != NULL);
    for (const struct mem_hold *h = k->leases.head; h != NULL; h = h->next)
        il__deadlock_add_lease(d, h->holder, h->mode, h->permits);
    for (const struct mem_hold *h = k->waiters.head; h != NULL; h = h->next) {
        if (h->verdict == NULL)
            il__deadlock_add_wait(d, h->ticket, h->holder, h->mode, h->permits);
    }
    return true;
}

static struct mem_hold *
find_ticket(const struct mem_store *m, uint64_t ticket)
{
    for (size_t i = 0; i < m->keys.size; i++) {
        const struct mem_key *k = m->keys.slots[i].item;
        struct mem_hold      *h = k != NULL ? k->waiters.head : NULL;
        while (h != NULL && h->ticket != ticket)
            h = h->next;
        if (h != NULL)
            return h;
    }
    return NULL;
}

/*
 * Search from a unit of work. IL_DEADLOCK: *ret_victim waits no longer: it has its verdict and was woken.
 * A search that fails for lack of memory is repeated by the next sweep.
 */
il_status
il__mem_search_deadlock(struct mem_store *m, const char *tenant, const char *holder,
                        struct mem_hold **ret_victim, struct il__buf *why)
{
    struct search                    search = { .m = m, .tenant = tenant };
    const struct il__deadlock_source source = { .waits_of = waits_of,
                                                .queue_of = queue_of,
                                                .cookie   = &search };
    uint64_t                         ticket;

    il_status st = il__deadlock_find(&source, holder, &ticket, why);
    if (st != IL_DEADLOCK)
        return st;
    struct mem_hold *h = find_ticket(m, ticket);
    if (h != NULL) {
        h->verdict = il__strdup(il__buf_str(why));
        if (h->verdict == NULL)
            return IL_NOMEM;
        il__board_wake(&m->board, il__board_slot(h->key->tenant, h->key->key, h->holder));
        il__mem_give_on(m, h->key, NULL); /* those behind it may be free to go */
        *ret_victim = h;
        return IL_DEADLOCK;
    }
    return IL_OK;
}

/* Search from the waiters of one key whose unit of work holds or waits for something else too. */
static bool
search_from(struct mem_store *m, const struct mem_key *k)
{
    for (struct mem_hold *h = k->waiters.head; h != NULL; h = h->next) {
        struct mem_hold        *victim;
        struct il__buf AUTO_BUF why = { .n_bytes_max = 4096 };
        bool alone = il__mem_unit_first(m, h->unit_hash, k->tenant, h->holder) == h &&
                     il__mem_unit_next(h) == NULL;
        if (h->verdict == NULL && !alone &&
            il__mem_search_deadlock(m, k->tenant, h->holder, &victim, &why) == IL_DEADLOCK)
            return true;
    }
    return false;
}

static void
sweep_deadlocks(struct mem_store *m, il_op *op)
{
    size_t i = 0;

    while (m->n_waiters > 0 && i < m->keys.size) {
        const struct mem_key *k = m->keys.slots[i].item;
        if (k != NULL && search_from(m, k)) {
            op->out.sweep.n_deadlocks++;
            i = 0; /* others may have moved on; look at all again */
        } else {
            i++;
        }
    }
}

/* All tenants: recovery belongs to the store, not to a caller. */
void
il__mem_sweep(struct mem_store *m, il_op *op)
{
    il_sweep_out *counts = &op->out.sweep;
    uint32_t      limit  = op->in.list.limit;

    op->status = IL_OK;
    while (m->due != NULL && il__lease_due(m->due->due_ms, m->now_ms)) {
        if (counts->n_expired + counts->n_dropped >= limit) {
            op->out.flags |= IL_OUT_MORE;
            break;
        }
        struct mem_key *k = m->due->key;
        il__mem_settle(m, k, counts);
        il__mem_key_drop_if_idle(m, k);
    }
    il__ended_purge(&m->ended, m->now_ms, limit);
    sweep_deadlocks(m, op);
}
