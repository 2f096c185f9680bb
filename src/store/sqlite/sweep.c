/*
 * sweep.c: recovery in the SQLite engine, and the data it supplies to the core's deadlock search.
 */
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "core/deadlock.h"
#include "core/key.h"
#include "core/lease.h"
#include "core/op.h"
#include "store/sqlite/run.h"

/* ---- the deadlock search --------------------------------------------------------------------- */

struct search {
    struct sq_store *s;
    const char      *tenant;
};

static bool
waits_of(void *cookie, const char *root, size_t root_bytes, struct il__deadlock *d)
{
    struct search  *search = cookie;
    struct sq_conn *c      = &search->s->conn;
    sqlite3_stmt   *row    = il__sq_use(c, SQ_waiter_of_unit);
    int             rc;

    if (!il__sq_bind_text(c, row, 1, search->tenant) ||
        !il__sq_bind_bytes(c, row, 2, root, root_bytes))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        if (sqlite3_column_int(row, 1) == 0) /* a cancelled waiter wants nothing any more */
            il__deadlock_add_wanted(d, il__sq_text(row, 0));
    }
    return rc == SQLITE_DONE;
}

static bool
queue_of(void *cookie, const char *key, struct il__deadlock *d)
{
    struct search *search = cookie;
    struct sq_key  k      = { .tenant = search->tenant, .key = key };

    if (!il__sq_key_load(search->s, &k) || !il__sq_waiters_all(search->s, &k))
        return false;
    /* A lease that has ended, or will end by itself, does not block forever. */
    int64_t now_ms = search->s->state.now_ms;
    for (size_t i = 0; i < k.leases.n; i++) {
        const struct sq_hold *h = &k.leases.items[i];
        if (il__lease_lasts(now_ms, h->settle_ms, h->state, h->due_ms))
            il__deadlock_add_lease(d, h->holder, h->mode, h->permits);
    }
    for (size_t i = 0; i < k.waiters.n; i++) {
        const struct sq_hold *w = &k.waiters.items[i];
        if (w->verdict[0] == '\0' && !il__lease_due(w->due_ms, now_ms))
            il__deadlock_add_wait(d, w->number, w->holder, w->mode, w->permits);
    }
    return true;
}

/* Copies of tenant and key, because the row will be deleted; NULL: no memory. */
static struct sq_key
key_of_row(struct sq_store *s, sqlite3_stmt *row)
{
    return (struct sq_key){ .tenant = il__arena_strdup(&s->scratch, il__sq_text(row, 0)),
                            .key    = il__arena_strdup(&s->scratch, il__sq_text(row, 1)) };
}

/* Give the victim its verdict, wake it, and let those behind it pass. The waiter of a run is
 * removed together with its run, which then carries the verdict. */
static bool
cancel(struct sq_store *s, uint64_t ticket, const char *verdict)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_waiter_cancel);

    if (!il__sq_bind_int(c, row, 1, (int64_t)ticket) || !il__sq_bind_text(c, row, 2, verdict))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    struct sq_key k      = key_of_row(s, row);
    const char   *holder = il__arena_strdup(&s->scratch, il__sq_text(row, 2));
    uint64_t      run    = (uint64_t)sqlite3_column_int64(row, 3);
    s->place.known       = false;
    if (!il__sq_stmt_run(c, row))
        return false;
    if (k.tenant == NULL || k.key == NULL || holder == NULL)
        return il__sq_no_memory(c);
    struct sq_hold *w = NULL;
    if (!il__sq_wake(s, il__board_slot(k.tenant, k.key, holder)) || !il__sq_key_load(s, &k) ||
        (run != 0 && !il__sq_waiters_find(s, &k, holder, &w)))
        return false;
    if (w != NULL && !il__sq_waiter_leave(s, &k, w))
        return false;
    return il__sq_offer_next(s, &k, NULL);
}

/* *ret_found: a cycle was found and *ret_ticket, its youngest waiter, has been cancelled. */
bool
il__sq_search_deadlock(struct sq_store *s, const char *tenant, const char *const *holders, size_t n,
                       uint64_t *ret_ticket, struct il__buf *why, bool *ret_found)
{
    struct search                    search = { .s = s, .tenant = tenant };
    const struct il__deadlock_source source = { .waits_of = waits_of,
                                                .queue_of = queue_of,
                                                .cookie   = &search };

    *ret_found   = false;
    il_status st = il__deadlock_find(&source, holders, n, ret_ticket, why);
    if (st == IL_STORE)
        return false;
    if (st != IL_DEADLOCK)
        return true; /* none, or no memory for the search: the next sweep searches again */
    *ret_found = true;
    return cancel(s, *ret_ticket, il__buf_str(why));
}

/* ---- the sweep ------------------------------------------------------------------------------- */

/* The next key with an overdue hold; its tenant is NULL if there is none. */
static bool
next_due(struct sq_store *s, struct sq_key *ret)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_hold_due);

    *ret = (struct sq_key){ 0 };
    il__arena_clear(&s->scratch);
    if (!il__sq_bind_int(c, row, 1, s->state.now_ms))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    *ret = key_of_row(s, row);
    if (!il__sq_stmt_run(c, row))
        return false;
    return (ret->tenant != NULL && ret->key != NULL) || il__sq_no_memory(c);
}

static bool
expire_all(struct sq_store *s, il_op *op)
{
    il_sweep_out *counts = &op->out.sweep;
    struct sq_key k;

    for (;;) {
        uint32_t n = counts->n_expired + counts->n_dropped;
        if (!next_due(s, &k))
            return false;
        if (k.tenant == NULL)
            return true;
        if (n >= op->in.list.limit) {
            op->out.flags |= IL_OUT_MORE;
            return true;
        }
        if (!il__sq_key_load(s, &k) || !il__sq_expire(s, &k, counts))
            return false;
        if (counts->n_expired + counts->n_dropped == n)
            return il__sq_corrupt(&s->conn); /* a row that its own key does not lead to */
    }
}

/* Holders of one tenant whose waits could be part of a cycle. */
struct entangled {
    const char  *tenant;
    const char **holders;
    size_t       n;
};

/* Those of the next tenant after `tenant` ("" = the first), in the scratch arena; n = 0 if there is
 * none. */
static bool
load_entangled(struct sq_store *s, const char *tenant, struct entangled *ret)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_waiter_entangled);
    int             rc;

    *ret = (struct entangled){ 0 };
    if (!il__sq_bind_text(c, row, 1, tenant))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        if (ret->tenant == NULL)
            ret->tenant = il__arena_strdup(&s->scratch, il__sq_text(row, 0));
        if (ret->tenant == NULL || strcmp(ret->tenant, il__sq_text(row, 0)) != 0)
            break; /* no memory: try another time; or the next tenant, which has its turn */
        const char  *holder = il__arena_strdup(&s->scratch, il__sq_text(row, 1));
        const char **added  = NULL;
        if (holder != NULL)
            added = il__arena_append(&s->scratch, &ret->holders, &ret->n, sizeof *added);
        if (added == NULL)
            break;
        *added = holder;
    }
    (void)sqlite3_reset(row); /* it may have been interrupted */
    return rc == SQLITE_DONE || rc == SQLITE_ROW;
}

/* Search all of a tenant's waits at once; after each cycle that was broken, search all of them
 * again. */
static bool
sweep_tenant(struct sq_store *s, il_op *op, const struct entangled *e)
{
    bool found = true;

    while (found) {
        struct il__buf AUTO_BUF why    = { .n_bytes_max = 4096 };
        uint64_t                ticket = 0;
        if (!il__sq_search_deadlock(s, e->tenant, e->holders, e->n, &ticket, &why, &found))
            return false;
        op->out.sweep.n_deadlocks += found;
    }
    return true;
}

static bool
sweep_deadlocks(struct sq_store *s, il_op *op)
{
    char             tenant[IL_TENANT_BYTES_MAX + 1] = "";
    struct entangled e;

    while (s->has_waiters) {
        il__arena_clear(&s->scratch);
        if (!load_entangled(s, tenant, &e))
            return false;
        if (e.n == 0)
            return true; /* or no memory for the search: the next sweep searches again */
        if (!sweep_tenant(s, op, &e))
            return false;
        (void)snprintf(tenant, sizeof tenant, "%s", e.tenant);
    }
    return true;
}

/* All tenants: recovery is done for the store, not for a caller. */
bool
il__sq_sweep(struct sq_store *s, il_op *op)
{
    op->status = IL_OK;
    return expire_all(s, op) && il__sq_ended_purge(s, op->in.list.limit) && sweep_deadlocks(s, op);
}
