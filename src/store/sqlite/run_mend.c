/*
 * run_mend.c: live runs whose lease or waiter went without them.
 *
 * A process that had the store open when it was upgraded goes on with the statements of its version, which knows no runs: it
 * makes a lease of a waiter without saying whose, and deletes what is overdue without ending the run of it. What it
 * left is put right by the next op on a run of the key, or the key would be closed to runs for ever.
 *
 * Race-free as all of it happens inside one BEGIN IMMEDIATE transaction.
 */
#include "store/sqlite/run.h"

static bool
has_lease(const struct sq_key *k, uint64_t seq)
{
    for (size_t i = 0; i < k->leases.n; i++) {
        if (!k->leases.items[i].gone && k->leases.items[i].run == seq)
            return true;
    }
    return false;
}

static bool
attach(struct sq_store *s, const struct sq_key *k, struct sq_hold *h, const struct sq_run *r)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_lease_attach);

    h->run = r->info.seq;
    return il__sq_bind_text(c, stmt, 1, k->tenant) && il__sq_bind_text(c, stmt, 2, k->key) &&
           il__sq_bind_int(c, stmt, 3, (int64_t)h->number) &&
           il__sq_bind_int(c, stmt, 4, (int64_t)r->info.seq) && il__sq_run(c, stmt) &&
           il__sq_run_offered(s, r->info.seq, h->number);
}

static bool
mend(struct sq_store *s, const struct sq_key *k, struct sq_run *r)
{
    struct sq_hold *own = il__sq_find_holder(&k->leases, r->info.holder);

    if (r->info.state == IL_RUN_PENDING && own != NULL && own->run == 0 && own->state == IL_LEASE_OFFERED)
        return attach(s, k, own, r);
    r->hold.state = IL_LEASE_NONE;
    return il__sq_run_end(
        s, r, r->info.state == IL_RUN_PENDING ? IL__RUN_EV_SILENT : IL__RUN_EV_EXPIRE, NULL);
}

bool
il__sq_run_mend(struct sq_store *s, const struct sq_key *k, struct sq_live *ret_live, bool *ret_mended)
{
    *ret_mended = false;
    if (!il__sq_run_live(s, k->tenant, k->key, ret_live))
        return false;
    for (size_t i = 0; i < ret_live->n; i++) {
        struct sq_run  *r = &ret_live->items[i];
        struct sq_hold *w = NULL;
        if (r->info.holder[0] == '\0' || has_lease(k, r->info.seq))
            continue; /* a slot has none */
        if (!il__sq_waiters_find(s, k, r->info.holder, &w))
            return false;
        if (w != NULL && w->run == r->info.seq)
            continue;
        if (!mend(s, k, r))
            return false;
        *ret_mended = true;
    }
    return !*ret_mended || il__sq_run_live(s, k->tenant, k->key, ret_live);
}
