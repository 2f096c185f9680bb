/*
 * sweep.c: recovery on the SQLite engine, and what it delivers to the deadlock search of the core.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "core/deadlock.h"
#include "core/key.h"
#include "core/lease.h"
#include "core/op.h"
#include "store/sqlite/sqlite_internal.h"

/* ---- the deadlock search ------------------------------------------------------------------------------------- */

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

    if (!il__sq_bind_text(c, row, 1, search->tenant) || !il__sq_bind_bytes(c, row, 2, root, root_bytes))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW)
        il__deadlock_add_wanted(d, il__sq_text(row, 0));
    return rc == SQLITE_DONE;
}

static bool
queue_of(void *cookie, const char *key, struct il__deadlock *d)
{
    struct search *search = cookie;
    struct sq_key  k      = { .tenant = search->tenant, .key = key };

    if (!il__sq_key_load(search->s, &k))
        return false;
    for (size_t i = 0; i < k.leases.n; i++)
        il__deadlock_add_lease(d, k.leases.items[i].holder, k.leases.items[i].mode,
                               k.leases.items[i].permits);
    for (size_t i = 0; i < k.waiters.n; i++) {
        const struct sq_hold *w = &k.waiters.items[i];
        if (w->verdict[0] == '\0')
            il__deadlock_add_wait(d, w->number, w->holder, w->mode, w->permits);
    }
    return true;
}

/* Tenant and key, copied, for the row goes; NULL when there is no memory. */
static struct sq_key
key_of_row(struct sq_store *s, sqlite3_stmt *row)
{
    return (struct sq_key){ .tenant = il__arena_strdup(&s->scratch, il__sq_text(row, 0)),
                            .key    = il__arena_strdup(&s->scratch, il__sq_text(row, 1)) };
}

/* Give the victim its verdict, wake it, and let those behind it pass. */
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
    if (!il__sq_run(c, row))
        return false;
    if (k.tenant == NULL || k.key == NULL || holder == NULL)
        return il__sq_no_memory(c);
    return il__sq_wake(s, il__board_slot(k.tenant, k.key, holder)) && il__sq_key_load(s, &k) &&
           il__sq_give_on(s, &k, NULL);
}

/* *ret_found: a cycle was found and *ret_ticket, its youngest waiter, has been cancelled. */
bool
il__sq_search_deadlock(struct sq_store *s, const char *tenant, const char *holder,
                       uint64_t *ret_ticket, struct il__buf *why, bool *ret_found)
{
    struct search                    search = { .s = s, .tenant = tenant };
    const struct il__deadlock_source source = { .waits_of = waits_of,
                                                .queue_of = queue_of,
                                                .cookie   = &search };

    *ret_found   = false;
    il_status st = il__deadlock_find(&source, holder, ret_ticket, why);
    if (st == IL_STORE)
        return false;
    if (st != IL_DEADLOCK)
        return true; /* none, or no memory to look: the next sweep looks again */
    *ret_found = true;
    return cancel(s, *ret_ticket, il__buf_str(why));
}

/* ---- the sweep ----------------------------------------------------------------------------------------------- */

/* Settle the next key that has something overdue; *ret_done when there is none. */
static bool
settle_next(struct sq_store *s, enum sq_stmt due, il_sweep_out *counts, bool *ret_done)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, due);

    il__arena_clear(&s->scratch);
    if (!il__sq_bind_int(c, row, 1, s->state.now_ms) || !il__sq_bind_int(c, row, 2, 1))
        return false;
    int rc    = il__sq_step(c, row);
    *ret_done = rc == SQLITE_DONE;
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    struct sq_key k = key_of_row(s, row);
    if (!il__sq_run(c, row))
        return false;
    if (k.tenant == NULL || k.key == NULL)
        return il__sq_no_memory(c);
    return il__sq_key_load(s, &k) && il__sq_settle(s, &k, counts);
}

static bool
settle_all(struct sq_store *s, il_op *op)
{
    static const enum sq_stmt due[]  = { SQ_lease_due, SQ_waiter_due };
    il_sweep_out             *counts = &op->out.sweep;

    for (size_t i = 0; i < ARRAY_LEN(due); i++) {
        bool done = false;
        while (!done) {
            if (counts->n_expired + counts->n_dropped >= op->in.list.limit) {
                op->out.flags |= IL_OUT_MORE;
                return true;
            }
            if (!settle_next(s, due[i], counts, &done))
                return false;
        }
    }
    return true;
}

/* The next waiter that could be part of a cycle: number `skip` of them. */
static bool
entangled(struct sq_store *s, int skip, const char **ret_tenant, const char **ret_holder)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_waiter_entangled);
    int             rc;

    *ret_tenant = NULL;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW && skip-- > 0)
        ;
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    *ret_tenant = il__arena_strdup(&s->scratch, il__sq_text(row, 0));
    *ret_holder = il__arena_strdup(&s->scratch, il__sq_text(row, 1));
    (void)sqlite3_reset(row); /* left in the middle */
    if (*ret_tenant == NULL || *ret_holder == NULL) {
        c->rc = SQLITE_NOMEM;
        return false;
    }
    return true;
}

static bool
sweep_deadlocks(struct sq_store *s, il_op *op)
{
    const char *tenant;
    const char *holder = NULL;

    for (int skip = 0; s->has_waiters; skip++) {
        struct il__buf AUTO_BUF why    = { .n_bytes_max = 4096 };
        uint64_t                ticket = 0;
        bool                    found  = false;
        il__arena_clear(&s->scratch);
        if (!entangled(s, skip, &tenant, &holder))
            return false;
        if (tenant == NULL)
            return true;
        if (!il__sq_search_deadlock(s, tenant, holder, &ticket, &why, &found))
            return false;
        op->out.sweep.n_deadlocks += found;
        if (found)
            skip = -1; /* one waiter less; look at all again */
    }
    return true;
}

/* All tenants: recovery belongs to the store, not to a caller. */
bool
il__sq_sweep(struct sq_store *s, il_op *op)
{
    op->status = IL_OK;
    return settle_all(s, op) && il__sq_ended_purge(s, op->in.list.limit) && sweep_deadlocks(s, op);
}
