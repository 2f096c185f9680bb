/*
 * run_tables.c: the runs of the memory engine, by id, by key, by class, by age and by purge time;
 * how they begin and end. Creating a run reserves all the memory it will need, so ending it cannot
 * fail.
 */
#include "base/hash.h"
#include "core/key.h"
#include "store/memory/run.h"

static uint64_t
hash_id(const char *tenant, const char *id)
{
    return il__hash_mix(il__hash_bytes(id, strlen(id)), il__hash_bytes(tenant, strlen(tenant)));
}

struct mem_run *
il__mem_run_find(struct mem_store *m, const char *tenant, const char *id)
{
    const struct il__map *map  = &m->runs->by_id;
    uint64_t              hash = hash_id(tenant, id);
    struct mem_run       *r;

    for (size_t i = il__map_start(map, hash); (r = il__map_next(map, hash, &i)) != NULL; i++) {
        if (strcmp(r->id, id) == 0 && strcmp(r->tenant, tenant) == 0)
            return r;
    }
    return NULL;
}

/* The live runs of the op's key; NULL when there are none. */
struct mem_run_key *
il__mem_run_key_find(struct mem_store *m, uint64_t hash, const il_op *op)
{
    const struct il__map *map = &m->runs->by_key;
    struct mem_run_key   *k;

    for (size_t i = il__map_start(map, hash); (k = il__map_next(map, hash, &i)) != NULL; i++) {
        if (strcmp(k->oldest->key, op->key) == 0 && strcmp(k->oldest->tenant, op->tenant) == 0)
            return k;
    }
    return NULL;
}

static uint64_t
hash_class(const char *tenant, const char *key)
{
    return il__hash_mix(il__hash_bytes(key, il__key_class_bytes(key)),
                        il__hash_bytes(tenant, strlen(tenant)));
}

struct mem_run_class *
il__mem_run_class_find(struct mem_store *m, const il_op *op)
{
    const struct il__map *map  = &m->runs->by_class;
    uint64_t              hash = hash_class(op->tenant, op->key);
    size_t                n    = il__key_class_bytes(op->key);
    struct mem_run_class *k;

    for (size_t i = il__map_start(map, hash); (k = il__map_next(map, hash, &i)) != NULL; i++) {
        if (il__key_class_bytes(k->last->key) == n && memcmp(k->last->key, op->key, n) == 0 &&
            strcmp(k->last->tenant, op->tenant) == 0)
            return k;
    }
    return NULL;
}

static void
rate_unlink(struct mem_runs *all, struct mem_rate *rate)
{
    *(rate->sooner != NULL ? &rate->sooner->later : &all->rate_first) = rate->later;
    *(rate->later != NULL ? &rate->later->sooner : &all->rate_last)   = rate->sooner;
}

/* Mark it as used: lease time never goes back, so the last of the list is the one used last. */
static struct mem_rate *
rate_append(struct mem_store *m, struct mem_rate *rate)
{
    struct mem_runs *all = m->runs;

    rate->used_ms = m->now_ms;
    rate->later   = NULL;
    rate->sooner  = all->rate_last;

    *(rate->sooner != NULL ? &rate->sooner->later : &all->rate_first) = rate;
    all->rate_last                                                    = rate;
    return rate;
}

bool
il__mem_run_rate_overdue(const struct mem_store *m)
{
    const struct mem_rate *rate    = m->runs->rate_first;
    int64_t                slot_ms = il__rate_slot_ms(IL__RATE_HOUR); /* of the longest window */

    return rate != NULL && rate->used_ms / slot_ms <= il__rate_old(IL__RATE_HOUR, m->now_ms);
}

bool
il__mem_run_rate_drop(struct mem_store *m)
{
    struct mem_rate *rate = m->runs->rate_first;

#ifdef IL_MUTANT_rates_kept
    return false;
#endif
    if (!il__mem_run_rate_overdue(m))
        return false;
    rate_unlink(m->runs, rate);
    il__map_remove(&m->runs->rates, rate->hash, rate);
    il__free(rate);
    return true;
}

struct mem_rate *
il__mem_run_rate(struct mem_store *m, const il_op *op)
{
    struct il__map  *map      = &m->runs->rates;
    uint64_t         hash     = hash_class(op->tenant, op->key);
    size_t           n_class  = il__key_class_bytes(op->key);
    size_t           n_tenant = strlen(op->tenant) + 1;
    struct mem_rate *rate;

    for (size_t i = il__map_start(map, hash); (rate = il__map_next(map, hash, &i)) != NULL; i++) {
        if (rate->n_class == n_class && memcmp(rate->class, op->key, n_class) == 0 &&
            strcmp(rate->tenant, op->tenant) == 0) {
            rate_unlink(m->runs, rate);
            return rate_append(m, rate);
        }
    }
    if (!il__map_reserve(map) || (rate = il__calloc(1, sizeof *rate + n_tenant + n_class)) == NULL)
        return NULL;
    rate->hash    = hash;
    rate->n_class = n_class;
    rate->class   = rate->tenant + n_tenant;
    memcpy(rate->tenant, op->tenant, n_tenant);
    memcpy(rate->class, op->key, n_class);
    il__map_add(map, hash, rate);
    return rate_append(m, rate);
}

static uint64_t
seq_of(const struct il__heap_node *node)
{
    return const_container_of(node, struct mem_run, purge)->seq;
}

static bool
purged_before(const struct il__heap_node *a, const struct il__heap_node *b)
{
    return seq_of(a) < seq_of(b);
}

/* ---- making and dropping --------------------------------------------------------------------- */

/* Copy a text to *p, which moves on. */
static const char *
put(char **p, const char *text)
{
    return il__put(p, text, strlen(text) + 1);
}

static const char *
or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static struct mem_run *
alloc_run(const il_op *op)
{
    const il_run_in *in      = &op->in.run;
    const char      *texts[] = { op->tenant,       in->id,
                                 op->key,          or_empty(in->trigger),
                                 or_empty(in->by), or_empty(in->meta) };
    size_t           n_bytes = 0;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        n_bytes += strlen(texts[i]) + 1;
    struct mem_run *r = il__alloc(sizeof *r + n_bytes);
    if (r == NULL)
        return NULL;
    *r      = (struct mem_run){ .error = IL__RUN_NO_ERROR };
    char *p = r->tenant;
    IGNORE(put(&p, texts[0]) == NULL); /* the tenant, where it belongs */
    r->id      = put(&p, texts[1]);
    r->key     = put(&p, texts[2]);
    r->trigger = put(&p, texts[3]);
    r->by      = put(&p, texts[4]);
    r->meta    = put(&p, texts[5]);
    return r;
}

/* Its class exists, but does not contain it yet. False: no memory. */
static bool
join_class(struct mem_store *m, struct mem_run *r, const il_op *op)
{
    r->of_class = il__mem_run_class_find(m, op);
    if (r->of_class == NULL) {
        r->of_class = il__calloc(1, sizeof *r->of_class);
        if (r->of_class != NULL)
            r->of_class->hash = hash_class(op->tenant, op->key);
    }
    return r->of_class != NULL;
}

struct mem_run *
il__mem_run_new(struct mem_store *m, const il_op *op)
{
    struct mem_runs *t = m->runs;

    if (!il__map_reserve(&t->by_id) || !il__map_reserve(&t->by_key) ||
        !il__map_reserve(&t->by_class))
        return NULL;
    struct mem_run *r = alloc_run(op);
    if (r == NULL)
        return NULL;
    uint64_t hash          = il__mem_hash_op(m, op);
    r->of_key              = il__mem_run_key_find(m, hash, op);
    struct mem_run_key *k  = r->of_key == NULL ? il__calloc(1, sizeof *k) : r->of_key;
    bool                ok = k != NULL;
    if (ok && (op->flags & IL_RUN_SLOT) == 0)
        ok = (r->holder = il__strdup(op->holder)) != NULL;
    if (!ok) {
        if (r->of_key == NULL)
            il__free(k);
        r->of_key = NULL;
        il__mem_run_drop(r);
        return NULL;
    }
    r->of_key = k;
    k->hash   = hash;
    if (!join_class(m, r, op)) {
        il__mem_run_drop(r);
        return NULL;
    }
    r->hash       = hash_id(op->tenant, op->in.run.id);
    r->seq        = ++m->ticket;
    r->progress   = -1;
    r->ttl_ms     = op->in.run.ttl_ms;
    r->keep_ms    = op->in.run.keep_ms;
    r->created_ms = r->updated_ms = m->wall_ms;
    return r;
}

/* Free a run that is in no table. */
void
il__mem_run_drop(struct mem_run *r)
{
    if (r->of_key != NULL && r->of_key->oldest == NULL)
        il__free(r->of_key); /* made for it, and not used */
    if (r->of_class != NULL && r->of_class->last == NULL)
        il__free(r->of_class);
    il__free(r->text);
    il__free(r->holder);
    il__free(r->stage);
    il__free(r->log.data);
    il__free(r);
}

static void
link_to_key(struct mem_store *m, struct mem_run *r)
{
    struct mem_run_key *k = r->of_key;

    r->prev = k->newest;
    if (k->newest != NULL) {
        k->newest->next = r;
    } else {
        k->oldest = r;
        il__map_add(&m->runs->by_key, k->hash, k);
    }
    k->newest = r;
}

/* Among the live runs, and by creation time: last, unless the clock was set back. */
static void
link_to_class(struct mem_store *m, struct mem_run *r)
{
    struct mem_run_class *k      = r->of_class;
    struct mem_run       *before = k->last;

    if (k->last == NULL)
        il__map_add(&m->runs->by_class, k->hash, k);
    r->class_next = k->live;
    if (k->live != NULL)
        k->live->class_prev = r;
    k->live = r;
    while (before != NULL && before->created_ms > r->created_ms)
        before = before->made_before;
    r->made_before = before;
    r->made_after  = before != NULL ? before->made_after : NULL;
    if (before == NULL) { /* before all others, if any */
        r->made_after = k->last;
        while (r->made_after != NULL && r->made_after->made_before != NULL)
            r->made_after = r->made_after->made_before;
    }
    if (r->made_before != NULL)
        r->made_before->made_after = r;
    if (r->made_after != NULL)
        r->made_after->made_before = r;
    else
        k->last = r;
}

/* It is no longer live. */
static void
unlink_live(struct mem_run *r)
{
    if (r->class_prev != NULL)
        r->class_prev->class_next = r->class_next;
    else
        r->of_class->live = r->class_next;
    if (r->class_next != NULL)
        r->class_next->class_prev = r->class_prev;
    r->class_prev = r->class_next = NULL;
}

/* It is purged. */
static void
unlink_from_class(struct mem_store *m, struct mem_run *r)
{
    struct mem_run_class *k = TAKE(r->of_class);

    if (r->made_before != NULL)
        r->made_before->made_after = r->made_after;
    if (r->made_after != NULL)
        r->made_after->made_before = r->made_before;
    else
        k->last = r->made_before;
    if (k->last != NULL)
        return;
    il__map_remove(&m->runs->by_class, k->hash, k);
    il__free(k);
}

static void
unlink_from_key(struct mem_store *m, struct mem_run *r)
{
    struct mem_run_key *k = r->of_key;

    if (r->prev != NULL)
        r->prev->next = r->next;
    else
        k->oldest = r->next;
    if (r->next != NULL)
        r->next->prev = r->prev;
    else
        k->newest = r->prev;
    r->of_key = NULL;
    r->prev = r->next = NULL;
    if (k->oldest != NULL)
        return;
    il__map_remove(&m->runs->by_key, k->hash, k);
    il__free(k);
}

/* Where listings find it while it is in its state. */
static void
list_as(struct mem_runs *t, struct mem_run *r)
{
    r->by_state = (struct il__tree_node){ .first = r->tenant, .second = "", .number = r->seq };
    r->by_key   = (struct il__tree_node){ .first = r->tenant, .second = r->key, .number = r->seq };
    il__tree_add(&t->in_state[r->state], &r->by_state);
    il__tree_add(&t->of_key[r->state], &r->by_key);
}

static void
unlist(struct mem_runs *t, struct mem_run *r)
{
    il__tree_remove(&t->in_state[r->state], &r->by_state);
    il__tree_remove(&t->of_key[r->state], &r->by_key);
}

/* Add a new run to the tables: RUNNING, or PENDING. Its hold, if it has one, is set. */
void
il__mem_run_add(struct mem_store *m, struct mem_run *r, enum il__run_event event)
{
    struct mem_runs *t = m->runs;

    il__map_add(&t->by_id, r->hash, r);
    r->older = t->newest;
    if (t->newest != NULL)
        t->newest->newer = r;
    t->newest = r;
    t->n++;
    link_to_key(m, r);
    link_to_class(m, r);
    r->state = il__run_step(IL_RUN_NONE, event, false);
    list_as(t, r);
    if (r->hold != NULL)
        r->hold->run = r;
    if (r->state == IL_RUN_RUNNING) {
        CHECK(r->hold != NULL);
        r->fence      = r->hold->fence;
        r->started_ms = m->wall_ms;
    } else {
        r->of_key->n_pending++;
    }
    il__mem_run_changed(m, r);
}

/* ---- what becomes of them -------------------------------------------------------------------- */

void
il__mem_run_changed(struct mem_store *m, struct mem_run *r)
{
    r->updated_ms = m->wall_ms;
    il__board_wake(&m->board, il__board_slot(r->tenant, r->id, IL__WAKE_RUN));
}

void
il__mem_run_begin(struct mem_store *m, struct mem_run *r)
{
    unlist(m->runs, r);
    r->state = il__run_step(r->state, IL__RUN_EV_START, false);
    list_as(m->runs, r);
    CHECK(r->state == IL_RUN_RUNNING);
    r->of_key->n_pending--;
    r->fence      = r->hold->fence;
    r->started_ms = m->wall_ms;
    il__mem_run_changed(m, r);
}

/* Give `text` to the run if it is the text of its error; otherwise free it. */
static void
own_text(struct mem_run *r, char *text)
{
    if (text != NULL && r->error.text == text) {
        il__free(r->text);
        r->text = text;
    } else {
        il__free(text);
    }
}

void
il__mem_run_end(struct mem_store *m, struct mem_run *r, enum il__run_event event, char *text)
{
    const char *said = event == IL__RUN_EV_REPLACE ? r->replaced_by : text;

    r->of_key->n_pending -= r->state == IL_RUN_PENDING;
    unlist(m->runs, r);
    r->state = il__run_end(r->state, event, r->cancelled, said, &r->error);
    list_as(m->runs, r);
    own_text(r, text);
    if (r->hold != NULL) {
        r->ttl_ms    = r->hold->ttl_ms;
        r->hold->run = NULL;
    }
    r->hold = NULL;
    unlink_from_key(m, r);
    unlink_live(r);
    r->ended_ms = m->wall_ms;
    r->purge.at = m->wall_ms + r->keep_ms;
    il__heap_add(&m->runs->purge, &r->purge);
    il__mem_run_changed(m, r);
}

/* The first reason stays. The holder learns it when it renews, which the wake-up makes it do
 * now. */
void
il__mem_run_stop(struct mem_store *m, struct mem_run *r, struct il__run_error error, char *owned)
{
    if (r->cancelled) {
        il__free(owned);
        return;
    }
    r->cancelled = true;
    r->error     = error;
    own_text(r, owned);
    il__board_wake(&m->board, IL__BOARD_BREAK);
    il__mem_run_changed(m, r);
}

void
il__mem_run_held(struct mem_store *m, il_op *op, const struct mem_hold *h)
{
    if (h->run->state == IL_RUN_PENDING)
        il__mem_run_begin(m, h->run);
    if (h->run->cancelled)
        il__run_tell_stop(op, h->run->error);
}

bool
il__mem_run_broken(struct mem_store *m, const struct mem_hold *h, const char *reason)
{
    char *text = il__strdup(reason);

    if (text == NULL)
        return false;
    il__mem_run_stop(m, h->run, il__run_error_broken(text), text);
    return true;
}

void
il__mem_run_lost(struct mem_store *m, struct mem_hold *h, il_lease_state how)
{
    enum il__run_event event = il__run_lease_event(h->state, how);

    if (h->state == IL_LEASE_WAITING)
        event = h->verdict != NULL ? IL__RUN_EV_CYCLE
                                   : il__run_waiter_event(h->due.at, h->deadline_ms, m->now_ms);
    il__mem_run_end(m, h->run, event, TAKE(h->verdict));
}

bool
il__mem_run_purge(struct mem_store *m)
{
    struct mem_runs *t = m->runs;

    if (!il__mem_run_overdue(m))
        return false;
    struct mem_run *r = container_of(t->purge.first, struct mem_run, purge);
    il__heap_remove(&t->purge, &r->purge);
    il__map_remove(&t->by_id, r->hash, r);
    unlist(t, r);
    if (r->newer != NULL)
        r->newer->older = r->older;
    else
        t->newest = r->older;
    if (r->older != NULL)
        r->older->newer = r->newer;
    t->n--;
    unlink_from_class(m, r);
    il__mem_run_drop(r);
    return true;
}

bool
il__mem_run_overdue(const struct mem_store *m)
{
    return il__heap_due(&m->runs->purge, m->wall_ms);
}

bool
il__mem_run_init(struct mem_store *m)
{
    m->runs = il__calloc(1, sizeof *m->runs);
    if (m->runs != NULL)
        m->runs->purge.before = purged_before;
    return m->runs != NULL;
}

void
il__mem_run_release(struct mem_store *m)
{
    struct mem_run *older;

    if (m->runs == NULL)
        return;
    for (size_t i = 0; i < m->runs->by_key.size; i++)
        il__free(m->runs->by_key.slots[i].item);
    for (size_t i = 0; i < m->runs->by_class.size; i++)
        il__free(m->runs->by_class.slots[i].item);
    for (size_t i = 0; i < m->runs->rates.size; i++)
        il__free(m->runs->rates.slots[i].item);
    for (struct mem_run *r = m->runs->newest; r != NULL; r = older) {
        older       = r->older;
        r->of_key   = NULL;
        r->of_class = NULL;
        il__mem_run_drop(r);
    }
    il__map_release(&m->runs->by_id);
    il__map_release(&m->runs->by_key);
    il__map_release(&m->runs->by_class);
    il__map_release(&m->runs->rates);
    il__free(m->runs);
}
