/*
 * history.c: the recorded expiries, breaks and refusals of keys, in the memory engine. The rules
 * are in src/core/history.h.
 *
 * A key's history is the text that the core makes of it, and outlives the key's leases. Those of a
 * tenant are in a list, the one that changed last at its end: the oldest is removed when there are
 * too many, or after a week. If memory runs out, the event is not recorded.
 */
#include "core/history.h"

#include "base/hash.h"
#include "core/op.h"
#include "store/memory/history.h"

struct past_tenant;

struct past_key {
    struct past_tenant *tenant;
    struct past_key    *older, *newer;
    uint64_t            hash;
    int64_t             last_ms; /* of its newest event, on the wall clock */
    struct il__buf      text;
    char                key[];
};

struct past_tenant {
    struct past_tenant *next;
    struct past_key    *oldest, *newest;
    size_t              n;
    char                name[IL_TENANT_BYTES_MAX + 1];
};

struct mem_histories {
    struct il__map      keys; /* struct past_key by tenant and key */
    struct past_tenant *tenants;
};

bool
il__mem_history_init(struct mem_store *m)
{
    m->histories = il__calloc(1, sizeof *m->histories);
    return m->histories != NULL;
}

static void
unlink_key(struct past_key *p)
{
    struct past_tenant *t = p->tenant;

    *(p->older != NULL ? &p->older->newer : &t->oldest) = p->newer;
    *(p->newer != NULL ? &p->newer->older : &t->newest) = p->older;
    t->n--;
}

static void
append_key(struct past_tenant *t, struct past_key *p)
{
    p->tenant                                             = t;
    p->older                                              = t->newest;
    p->newer                                              = NULL;
    *(t->newest != NULL ? &t->newest->newer : &t->oldest) = p;
    t->newest                                             = p;
    t->n++;
}

/* Its tenant stays, even if it has no other. */
static void
forget(struct mem_histories *all, struct past_key *p)
{
    unlink_key(p);
    il__map_remove(&all->keys, p->hash, p);
    il__buf_release(&p->text);
    il__free(p);
}

void
il__mem_history_release(struct mem_store *m)
{
    struct mem_histories *all = m->histories;

    if (all == NULL)
        return;
    while (all->tenants != NULL) {
        struct past_tenant *t = all->tenants;
        while (t->oldest != NULL)
            forget(all, t->oldest);
        all->tenants = t->next;
        il__free(t);
    }
    il__map_release(&all->keys);
    il__free(all);
}

static struct past_key *
find(const struct mem_histories *all, uint64_t hash, const char *tenant, const char *key)
{
    struct past_key *p;

    for (size_t i = il__map_start(&all->keys, hash);
         (p = il__map_next(&all->keys, hash, &i)) != NULL; i++) {
        if (strcmp(p->key, key) == 0 && strcmp(p->tenant->name, tenant) == 0)
            return p;
    }
    return NULL;
}

/* NULL: out of memory. */
static struct past_tenant *
tenant_of(struct mem_histories *all, const char *name)
{
    struct past_tenant *t = all->tenants;

    while (t != NULL && strcmp(t->name, name) != 0)
        t = t->next;
    if (t == NULL && (t = il__calloc(1, sizeof *t)) != NULL) {
        CHECK(strlen(name) < sizeof t->name);
        memcpy(t->name, name, strlen(name) + 1);
        t->next      = all->tenants;
        all->tenants = t;
    }
    return t;
}

/* A key without events. NULL: out of memory. */
static struct past_key *
add_key(struct mem_histories *all, uint64_t hash, const char *tenant, const char *key)
{
    size_t              n_bytes = strlen(key) + 1;
    struct past_tenant *t       = tenant_of(all, tenant);

    if (t == NULL || !il__map_reserve(&all->keys))
        return NULL;
    struct past_key *p = il__calloc(1, sizeof *p + n_bytes);
    if (p == NULL)
        return NULL;
    memcpy(p->key, key, n_bytes);
    p->hash = hash;
    append_key(t, p);
    il__map_add(&all->keys, hash, p);
    return p;
}

static struct il__history
stored(const struct past_key *p)
{
    return (struct il__history){ .data    = p != NULL ? il__buf_str(&p->text) : "",
                                 .n_bytes = p != NULL ? p->text.n_bytes : 0 };
}

/* False: out of memory. */
static bool
record(struct mem_store *m, const char *tenant, const char *key, const struct il__event *e)
{
    struct mem_histories *all  = m->histories;
    uint64_t              hash = il__mem_hash_key(m, tenant, key);
    struct past_key      *p    = find(all, hash, tenant, key);
    struct il__history    old  = stored(p);
    struct il__buf        text = { 0 };
    bool                  damaged;

    bool ok = il__history_add(&old, e, m->wall_ms, &text, &damaged);
    CHECK(!damaged);
    if (!ok || (p == NULL && (p = add_key(all, hash, tenant, key)) == NULL)) {
        il__buf_release(&text);
        return false;
    }
    il__buf_release(&p->text);
    p->text    = text;
    p->last_ms = MAX(p->last_ms, e->last_ms);
    unlink_key(p); /* to the end of its tenant's list */
    append_key(p->tenant, p);
    while (p->tenant->n > IL_EVENT_KEYS_MAX)
        forget(all, p->tenant->oldest);
    return true;
}

/* The wall clock is read only now: most batches do without. */
static struct il__lease_facts
facts_of(struct mem_store *m, const struct mem_hold *h)
{
    m->wall_ms = m->clock->wall_ms(m->clock->cookie);
    return (struct il__lease_facts){ .holder  = h->holder,
                                     .meta    = h->meta,
                                     .fence   = h->fence,
                                     .held_ms = m->now_ms - h->since_ms,
                                     .over_ms = m->now_ms - h->due.at };
}

void
il__mem_history_expired(struct mem_store *m, const struct mem_hold *h)
{
    struct il__lease_facts facts = facts_of(m, h);
    struct il__event       e     = il__event_expired(&facts, m->wall_ms);

    (void)record(m, h->key->tenant, h->key->key, &e); /* the lease ends even if this is lost */
}

void
il__mem_history_broken(struct mem_store *m, const struct mem_hold *h, const il_op *op)
{
    struct il__lease_facts facts = facts_of(m, h);
    struct il__event       e     = il__event_broken(&facts, op, m->wall_ms);

    (void)record(m, h->key->tenant, h->key->key, &e); /* the lease ends even if this is lost */
}

void
il__mem_refused(struct mem_store *m, il_op *op)
{
    struct il__event e = il__event_refused(op, m->wall_ms);

    if (record(m, op->tenant, op->key, &e))
        op->status = IL_OK;
    else
        il__op_end(op, IL_NOMEM, "out of memory");
}

/* Leases that have expired, but that nobody has ended yet, are listed as if they had been. False:
 * out of memory. */
static bool
add_overdue(struct mem_store *m, const struct mem_key *k, struct il__buf *text)
{
    for (const struct mem_hold *h = k->leases.head; h != NULL; h = h->next) {
        if (h->state != IL_LEASE_HELD || !il__mem_hold_is_dead(m, h))
            continue;
        struct il__lease_facts facts = facts_of(m, h);
        struct il__event       e     = il__event_expired(&facts, m->wall_ms);
        struct il__history     old   = { .data = il__buf_str(text), .n_bytes = text->n_bytes };
        struct il__buf         added = { 0 };
        bool                   damaged;
        if (!il__history_add(&old, &e, m->wall_ms, &added, &damaged)) {
            il__buf_release(&added);
            return false;
        }
        il__buf_release(text);
        *text = added;
    }
    return true;
}

void
il__mem_history(struct mem_store *m, il_op *op)
{
    uint64_t                hash    = il__mem_hash_op(m, op);
    const struct mem_key   *k       = il__mem_key_find(m, hash, op->tenant, op->key);
    struct il__history      history = stored(find(m->histories, hash, op->tenant, op->key));
    struct il__buf AUTO_BUF text    = { .n_bytes_max = history.n_bytes };
    bool                    damaged = false;

    il__buf_add(&text, history.data, history.n_bytes);
    bool ok = !text.failed && (k == NULL || add_overdue(m, k, &text));
    history = (struct il__history){ .data = il__buf_str(&text), .n_bytes = text.n_bytes };
    if (!ok || !il__history_list(&history, op, m->wall_ms, &damaged)) {
        il__op_reset(op);
        op->status = IL_NOMEM;
    }
    CHECK(!damaged);
}

/* ---- retention ------------------------------------------------------------------------------- */

static bool
is_old(const struct mem_store *m, const struct past_tenant *t)
{
    return t->oldest != NULL && m->wall_ms - t->oldest->last_ms >= IL_EVENT_KEEP_MS;
}

void
il__mem_history_sweep(struct mem_store *m, il_op *op)
{
    uint32_t n = 0;

    for (struct past_tenant *t = m->histories->tenants; t != NULL; t = t->next) {
        for (; is_old(m, t); n++) {
            if (n == op->in.list.limit) {
                op->out.flags |= IL_OUT_MORE;
                return;
            }
            forget(m->histories, t->oldest);
            op->out.sweep.n_purged++;
        }
    }
}

bool
il__mem_history_overdue(const struct mem_store *m)
{
    for (const struct past_tenant *t = m->histories->tenants; t != NULL; t = t->next) {
        if (is_old(m, t))
            return true;
    }
    return false;
}
