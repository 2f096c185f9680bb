/*
 * sweep.c: recovery in the memory engine, and the data it supplies to the core's deadlock search.
 */
#include "core/deadlock.h"
#include "core/key.h"
#include "core/lease.h"
#include "core/op.h"
#include "store/memory/run.h"

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
    /* A lease that has ended, or will end by itself, does not block forever. */
    for (const struct mem_hold *h = k->leases.head; h != NULL; h = h->next) {
        if (il__lease_lasts(s->m->now_ms, h->settle_ms, h->state, h->due.at))
            il__deadlock_add_lease(d, h->holder, h->mode, h->permits);
    }
    for (const struct mem_hold *h = k->waiters.head; h != NULL; h = h->next) {
        if (h->verdict == NULL && !il__mem_hold_is_dead(s->m, h))
            il__deadlock_add_wait(d, h->ticket, h->holder, h->mode, h->permits);
    }
    return true;
}

static struct mem_hold *
find_ticket(const struct mem_store *m, uint64_t ticket)
{
    struct mem_hold *h = m->waiting;

    while (h != NULL && h->ticket != ticket)
        h = h->wait_next;
    return h;
}

/*
 * Search from a unit of work. IL_DEADLOCK: *ret_ticket no longer waits; it has its verdict and was
 * woken. The waiter of a run is removed together with its run, which then carries the verdict. A
 * search that runs out of memory is repeated by the next sweep.
 */
il_status
il__mem_search_deadlock(struct mem_store *m, const char *tenant, const char *const *holders,
                        size_t n, uint64_t *ret_ticket, struct il__buf *why)
{
    struct search                    search = { .m = m, .tenant = tenant };
    const struct il__deadlock_source source = { .waits_of = waits_of,
                                                .queue_of = queue_of,
                                                .cookie   = &search };

    il_status st = il__deadlock_find(&source, holders, n, ret_ticket, why);
    if (st != IL_DEADLOCK)
        return st;
    struct mem_hold *h = find_ticket(m, *ret_ticket);
    if (h != NULL) {
        h->verdict = il__strdup(il__buf_str(why));
        if (h->verdict == NULL)
            return IL_NOMEM;
        il__board_wake(&m->board, il__board_slot(h->key->tenant, h->key->key, h->holder));
        struct mem_key *k = h->key;
        if (h->run != NULL)
            il__mem_hold_end(m, h, il__lease_step(h->state, IL__EV_LEAVE));
        il__mem_offer_next(m, k, NULL); /* those behind it may be able to proceed */
        return IL_DEADLOCK;
    }
    return IL_OK;
}

/* Could the wait be part of a cycle? Only if its unit of work also holds or waits for something
 * else. */
static bool
is_entangled(struct mem_store *m, struct mem_hold *h)
{
    return h->verdict == NULL &&
           (il__mem_unit_next(h) != NULL ||
            il__mem_unit_first(m, h->unit_hash, h->key->tenant, h->holder) != h);
}

/* Holders of one tenant whose waits could be part of a cycle, by ticket. */
static size_t
collect_entangled(struct mem_store *m, const char *tenant, const char **holders)
{
    size_t n = 0;

    for (struct mem_hold *h = m->waiting; h != NULL; h = h->wait_next) {
        if (strcmp(h->key->tenant, tenant) == 0 && is_entangled(m, h))
            holders[n++] = h->holder;
    }
    return n;
}

/* Search all of a tenant's waits at once; after each cycle that was broken, search all of them
 * again. */
static void
sweep_tenant(struct mem_store *m, il_op *op, const char *tenant, const char **holders)
{
    il_status st = IL_DEADLOCK;

    while (st == IL_DEADLOCK) {
        uint64_t                victim;
        struct il__buf AUTO_BUF why = { .n_bytes_max = 4096 };
        size_t                  n   = collect_entangled(m, tenant, holders);
        st = n > 0 ? il__mem_search_deadlock(m, tenant, holders, n, &victim, &why) : IL_OK;
        op->out.sweep.n_deadlocks += st == IL_DEADLOCK;
    }
}

/* The next tenant with waiters in alphabetical order; NULL: none. */
static const char *
next_tenant(const struct mem_store *m, const char *after)
{
    const char *next = NULL;

    for (const struct mem_hold *h = m->waiting; h != NULL; h = h->wait_next) {
        const char *tenant = h->key->tenant;
        if (strcmp(tenant, after) > 0 && (next == NULL || strcmp(tenant, next) < 0))
            next = tenant;
    }
    return next;
}

static void
sweep_deadlocks(struct mem_store *m, il_op *op)
{
    if (m->n_waiters == 0)
        return;
    AUTO_FREE const char **holders = il__calloc(m->n_waiters, sizeof *holders);
    if (holders == NULL)
        return; /* the next sweep tries again */
    /* The search cancels waits but frees no key, so the tenant's name stays valid. */
    for (const char *tenant = next_tenant(m, ""); tenant != NULL; tenant = next_tenant(m, tenant))
        sweep_tenant(m, op, tenant, holders);
}

/* All tenants: recovery is done for the store, not for a caller. */
void
il__mem_sweep(struct mem_store *m, il_op *op)
{
    il_sweep_out *counts = &op->out.sweep;
    uint32_t      limit  = op->in.list.limit;

    op->status = IL_OK;
    while (il__heap_due(&m->due, m->now_ms)) {
        if (counts->n_expired + counts->n_dropped >= limit) {
            op->out.flags |= IL_OUT_MORE;
            break;
        }
        struct mem_key *k = container_of(m->due.first, struct mem_hold, due)->key;
        il__mem_expire(m, k, counts);
        il__mem_key_drop_if_idle(m, k);
    }
    il__ended_purge(&m->ended, m->now_ms, limit);
    sweep_deadlocks(m, op);
}
