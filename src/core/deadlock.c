/*
 * deadlock.c: finds a cycle of units of work by graph reduction. README.md, "Deadlock", has the
 * rules and the proof. Reads only through il__deadlock_source and changes nothing.
 */
#include "core/deadlock.h"

#include "base/hash.h"
#include "base/map.h"
#include "core/conflict.h"
#include "core/key.h"
#include "core/limits.h"

struct unit { /* a root holder */
    char  *name;
    size_t n_stuck;  /* waits not known to be satisfiable */
    bool   finishes; /* n_stuck is 0 */
    bool   is_known; /* its waits are read, or will be */
    size_t met_at;   /* step of the walk that reports the cycle; 0 = not visited */
};

struct queued { /* a waiter, or a lease (ticket 0) */
    char    *holder;
    size_t   i_unit;
    uint64_t ticket;
    il_mode  mode;
    uint32_t permits;
    bool     satisfied; /* waits only: can be satisfied */
};

struct queue { /* a key: its leases, then its waits in ticket order */
    char  *key;
    size_t i_first;
    size_t n_leases;
    size_t n_waits;
};

struct il__deadlock {
    struct unit   *units;
    struct queued *queued;
    struct queue  *queues;
    size_t         n_units, units_capacity;
    size_t         n_queued, queued_capacity;
    size_t         n_queues, queues_capacity;
    struct il__map unit_index;  /* by name: number of the unit + 1, as a pointer */
    struct il__map queue_index; /* by key: number of the queue + 1 */
    size_t         i_reading;   /* the queue being read */
    bool           failed;      /* out of memory, or too large to search */
};

/* Make room for one more element of an array; false marks the search as failed. */
static bool
reserve(struct il__deadlock *d, void *array, size_t n, size_t *capacity, size_t size)
{
    d->failed = d->failed || n == IL__GRAPH_WAITS_MAX || !il__grow(array, n, capacity, size);
    return !d->failed;
}

static void
graph_release(struct il__deadlock *d)
{
    for (size_t i = 0; i < d->n_units; i++)
        il__free(d->units[i].name);
    for (size_t i = 0; i < d->n_queued; i++)
        il__free(d->queued[i].holder);
    for (size_t i = 0; i < d->n_queues; i++)
        il__free(d->queues[i].key);
    il__free(d->units);
    il__free(d->queued);
    il__free(d->queues);
    il__map_release(&d->unit_index);
    il__map_release(&d->queue_index);
}

/* The unit that `holder` belongs to, created if new; SIZE_MAX when the search has failed. */
static size_t
unit_of(struct il__deadlock *d, const char *holder)
{
    size_t   n_bytes = il__holder_root_bytes(holder);
    uint64_t hash    = il__hash_bytes(holder, n_bytes);
    void    *item;

    for (size_t i = il__map_start(&d->unit_index, hash);
         (item = il__map_next(&d->unit_index, hash, &i)) != NULL; i++) {
        size_t i_unit = (uintptr_t)item - 1;
        CHECK(i_unit < d->n_units && d->units != NULL);
        if (strlen(d->units[i_unit].name) == n_bytes &&
            memcmp(d->units[i_unit].name, holder, n_bytes) == 0)
            return i_unit;
    }
    if (!reserve(d, &d->units, d->n_units, &d->units_capacity, sizeof *d->units))
        return SIZE_MAX;
    char *name = il__strndup(holder, n_bytes);
    if (name == NULL || !il__map_reserve(&d->unit_index)) {
        il__free(name);
        d->failed = true;
        return SIZE_MAX;
    }
    d->units[d->n_units] = (struct unit){ .name = name };
    d->n_units++;
    il__map_add(&d->unit_index, hash, (void *)(uintptr_t)d->n_units);
    return d->n_units - 1;
}

void
il__deadlock_add_wanted(struct il__deadlock *d, const char *key)
{
    uint64_t hash = il__hash_bytes(key, strlen(key));
    void    *item;

    for (size_t i = il__map_start(&d->queue_index, hash);
         (item = il__map_next(&d->queue_index, hash, &i)) != NULL; i++) {
        if (strcmp(d->queues[(uintptr_t)item - 1].key, key) == 0)
            return;
    }
    if (!reserve(d, &d->queues, d->n_queues, &d->queues_capacity, sizeof *d->queues))
        return;
    char *copy = il__strdup(key);
    if (copy == NULL || !il__map_reserve(&d->queue_index)) {
        il__free(copy);
        d->failed = true;
        return;
    }
    d->queues[d->n_queues++] = (struct queue){ .key = copy };
    il__map_add(&d->queue_index, hash, (void *)(uintptr_t)d->n_queues);
}

static struct queue *
queue_being_read(struct il__deadlock *d)
{
    CHECK(d->i_reading < d->n_queues);
    return &d->queues[d->i_reading];
}

static bool
add_queued(struct il__deadlock *d, struct queued item, const char *holder)
{
    item.i_unit = unit_of(d, holder);
    if (d->failed || !reserve(d, &d->queued, d->n_queued, &d->queued_capacity, sizeof *d->queued))
        return false;
    item.holder = il__strdup(holder);
    if (item.holder == NULL) {
        d->failed = true;
        return false;
    }
    d->queued[d->n_queued++] = item;
    return true;
}

void
il__deadlock_add_lease(struct il__deadlock *d, const char *holder, il_mode mode, uint32_t permits)
{
    struct queue *q = queue_being_read(d);

    CHECK(q->n_waits == 0); /* leases come first */
    if (add_queued(d, (struct queued){ .mode = mode, .permits = permits }, holder))
        q->n_leases++;
}

void
il__deadlock_add_wait(struct il__deadlock *d, uint64_t ticket, const char *holder, il_mode mode,
                      uint32_t permits)
{
    struct queue *q = queue_being_read(d);

    CHECK(ticket != 0);
    if (add_queued(d, (struct queued){ .ticket = ticket, .mode = mode, .permits = permits },
                   holder))
        q->n_waits++;
}

void
il__deadlock_waits_nowhere_else(struct il__deadlock *d, const char *holder)
{
    size_t i_unit = unit_of(d, holder);

    if (!d->failed)
        d->units[i_unit].is_known = true;
}

/* Announce the next requests to the source: units or queues, from number `i` on. */
static il_status
expect(const struct il__deadlock *d, const struct il__deadlock_source *source,
       enum il__deadlock_part part, size_t i)
{
    size_t n       = part == IL__DEADLOCK_WAITS ? d->n_units : d->n_queues;
    size_t n_names = 0;

    if (source->expect == NULL || n - i < 2)
        return IL_OK;
    AUTO_FREE const char **names = il__calloc(n - i, sizeof *names);
    if (names == NULL)
        return IL_NOMEM;
    for (; i < n; i++) {
        if (part == IL__DEADLOCK_QUEUES)
            names[n_names++] = d->queues[i].key;
        else if (!d->units[i].is_known)
            names[n_names++] = d->units[i].name;
    }
    return n_names < 2 || source->expect(source->cookie, part, names, n_names) ? IL_OK : IL_STORE;
}

/* Read the waits of the units from number *i on. Adds queues, but no units. */
static il_status
read_waits(struct il__deadlock *d, const struct il__deadlock_source *source, size_t *i)
{
    il_status st = expect(d, source, IL__DEADLOCK_WAITS, *i);

    for (; st == IL_OK && *i < d->n_units; (*i)++) {
        const struct unit *unit = &d->units[*i];
        if (!unit->is_known && !source->waits_of(source->cookie, unit->name, strlen(unit->name), d))
            st = IL_STORE;
    }
    return st;
}

/* Read the queues from number *i on. Adds units, but no queues. */
static il_status
read_queues(struct il__deadlock *d, const struct il__deadlock_source *source, size_t *i)
{
    il_status st = expect(d, source, IL__DEADLOCK_QUEUES, *i);

    for (; st == IL_OK && !d->failed && *i < d->n_queues; (*i)++) {
        d->queues[*i].i_first = d->n_queued;
        d->i_reading          = *i;
        if (!source->queue_of(source->cookie, d->queues[*i].key, d))
            st = IL_STORE;
    }
    return st;
}

/* Read everything that can be reached from the units known so far. */
static il_status
explore(struct il__deadlock *d, const struct il__deadlock_source *source)
{
    size_t    i_unit  = 0;
    size_t    i_queue = 0;
    il_status st      = IL_OK;

    while (st == IL_OK && !d->failed && (i_unit < d->n_units || i_queue < d->n_queues)) {
        st = read_waits(d, source, &i_unit);
        if (st == IL_OK && !d->failed)
            st = read_queues(d, source, &i_queue);
    }
    return st == IL_OK && d->failed ? IL_NOMEM : st;
}

/* Will `other` not block `w` forever? Siblings of one unit do not; an ancestor does. */
static bool
gets_out_of_the_way(const struct il__deadlock *d, const struct queued *w,
                    const struct queued *other)
{
    if (other->i_unit == w->i_unit)
        return !il__holder_is_ancestor(other->holder, w->holder);
    return d->units[other->i_unit].finishes;
}

/* The first lease that keeps `w` from ever being satisfied, or NULL. */
static const struct queued *
lease_in_the_way(const struct il__deadlock *d, const struct queue *q, const struct queued *w)
{
    const struct queued *permit_in_the_way = NULL;
    uint32_t             n_permits         = 0;
    bool                 permit_comes_free = false;

    for (size_t i = 0; i < q->n_leases; i++) {
        const struct queued *lease = &d->queued[q->i_first + i];
        bool                 goes  = gets_out_of_the_way(d, w, lease);
        if (il__modes_conflict(lease->mode, lease->permits, w->mode, w->permits)) {
            if (!goes)
                return lease;
        } else if (w->mode == IL_MODE_PERMIT) {
            n_permits++;
            permit_comes_free = permit_comes_free || goes;
            if (!goes && permit_in_the_way == NULL)
                permit_in_the_way = lease;
        }
    }
    if (n_permits < w->permits || permit_comes_free)
        return NULL;
    return permit_in_the_way;
}

/*
 * The first waiter ahead that keeps `w` (number i_wait of its queue) from ever being satisfied: one
 * of the compatible waits directly ahead of it, when those conflict with it. NULL if none.
 */
static const struct queued *
wait_in_the_way(const struct il__deadlock *d, const struct queue *q, size_t i_wait)
{
    const struct queued *waits = &d->queued[q->i_first + q->n_leases];
    const struct queued *w     = &waits[i_wait];

    if (i_wait == 0 ||
        !il__modes_conflict(waits[i_wait - 1].mode, waits[i_wait - 1].permits, w->mode, w->permits))
        return NULL;
    for (size_t i = i_wait; i-- > 0;) {
        if (i + 1 < i_wait && il__modes_conflict(waits[i].mode, waits[i].permits, waits[i + 1].mode,
                                                 waits[i + 1].permits))
            return NULL;
        if (!gets_out_of_the_way(d, w, &waits[i]))
            return &waits[i];
    }
    return NULL;
}

/* Which units can finish, as far as known: those without an unsatisfied wait. */
static void
mark_units(struct il__deadlock *d)
{
    for (size_t i = 0; i < d->n_queued; i++)
        d->units[d->queued[i].i_unit].n_stuck += d->queued[i].ticket != 0;
    for (size_t i = 0; i < d->n_units; i++)
        d->units[i].finishes = d->units[i].n_stuck == 0;
}

static void
satisfy(struct il__deadlock *d, struct queued *w)
{
    struct unit *unit = &d->units[w->i_unit];

    w->satisfied = true;
    CHECK(unit->n_stuck > 0);
    unit->finishes = --unit->n_stuck == 0; /* seen at once by the waits behind it in this queue */
}

/* Apply the rules once; true if another wait or unit turned out to be satisfiable. */
static bool
reduce_once(struct il__deadlock *d)
{
    bool changed = false;

    for (size_t i = 0; i < d->n_queues; i++) {
        struct queue  *q     = &d->queues[i];
        struct queued *waits = &d->queued[q->i_first + q->n_leases];
        for (size_t j = 0; j < q->n_waits && (j == 0 || waits[j - 1].satisfied); j++) {
            if (waits[j].satisfied || lease_in_the_way(d, q, &waits[j]) != NULL ||
                wait_in_the_way(d, q, j) != NULL)
                continue;
            satisfy(d, &waits[j]);
            changed = true;
        }
    }
    return changed;
}

/* A wait of the unit that can never be satisfied: its queue and number. */
static const struct queue *
stuck_wait(const struct il__deadlock *d, size_t i_unit, size_t *ret_i_wait)
{
    for (size_t i = 0; i < d->n_queues; i++) {
        const struct queue *q = &d->queues[i];
        for (size_t j = 0; j < q->n_waits; j++) {
            const struct queued *w = &d->queued[q->i_first + q->n_leases + j];
            if (w->i_unit == i_unit && !w->satisfied) {
                *ret_i_wait = j;
                return q;
            }
        }
    }
    return NULL;
}

struct step {
    size_t              i_unit;
    size_t              i_next; /* the unit that blocks it */
    const struct queue *q;
    uint64_t            ticket;
    bool                behind; /* blocked by a waiter, not a lease */
};

/* From a unit that cannot finish to the one that blocks it. */
static struct step
step_from(const struct il__deadlock *d, size_t i_unit)
{
    size_t              i_wait;
    const struct queue *q = stuck_wait(d, i_unit, &i_wait);

    CHECK(q != NULL);
    const struct queued *waits = &d->queued[q->i_first + q->n_leases];
    struct step          step  = { .i_unit = i_unit, .q = q, .ticket = waits[i_wait].ticket };
    /* If nothing blocks the wait itself, then the one ahead of it cannot be satisfied. */
    for (;; i_wait--) {
        const struct queued *other = lease_in_the_way(d, q, &waits[i_wait]);
        step.behind                = other == NULL;
        if (other == NULL)
            other = wait_in_the_way(d, q, i_wait);
        if (other != NULL) {
            step.i_next = other->i_unit;
            return step;
        }
        CHECK(i_wait > 0);
    }
}

/* Walk from unit to unit until one repeats, then report the cycle and choose its youngest
 * ticket. */
static il_status
tell_cycle(struct il__deadlock *d, size_t i_unit, uint64_t *ret_ticket, struct il__buf *why)
{
    uint64_t               youngest = 0;
    size_t                 n_steps  = 0;
    AUTO_FREE struct step *steps    = il__calloc(d->n_units + 1, sizeof *steps);

    if (steps == NULL)
        return IL_NOMEM;
    while (d->units[i_unit].met_at == 0) {
        CHECK(n_steps < d->n_units);
        steps[n_steps]          = step_from(d, i_unit);
        d->units[i_unit].met_at = ++n_steps;
        i_unit                  = steps[n_steps - 1].i_next;
    }
    for (size_t i = d->units[i_unit].met_at - 1; i < n_steps; i++) {
        const struct step *s = &steps[i];
        il__buf_addf(why, "%s%s waits for '%s', %s %s", why->n_bytes > 0 ? "; " : "",
                     d->units[s->i_unit].name, s->q->key, s->behind ? "behind" : "held by",
                     d->units[s->i_next].name);
        youngest = MAX(youngest, s->ticket);
    }
    *ret_ticket = youngest;
    return IL_DEADLOCK;
}

il_status
il__deadlock_find(const struct il__deadlock_source *source, const char *const *holders, size_t n,
                  uint64_t *ret_ticket, struct il__buf *why)
{
    struct il__deadlock AUTO(graph_release) d = { 0 };

#ifdef IL_MUTANT_deadlock_not_searched
    return IL_OK;
#endif
    for (size_t i = 0; i < n; i++)
        IGNORE(unit_of(&d, holders[i])); /* failure is recorded in d */
    size_t n_asked = d.n_units;          /* units: two holders may belong to one */
    if (d.failed)
        return IL_NOMEM;
    il_status st = explore(&d, source);
    if (st != IL_OK)
        return st;
    mark_units(&d);
    while (reduce_once(&d))
        ;
    for (size_t i = 0; i < n_asked; i++) {
        if (!d.units[i].finishes)
            return tell_cycle(&d, i, ret_ticket, why);
    }
    return IL_OK;
}
