/*
 * slots.c: the slots that wait for execution in this process, by tenant and subject; slots.h is the
 * contract.
 */
#include "apps/work/slots.h"

#include <stdio.h>

#include "base/hash.h"
#include "runtime/fair.h"

#define SLOTS_MAX 65536

static uint64_t
name_hash(const char *tenant, const char *name)
{
    return il__hash_mix(il__hash_bytes(tenant, strlen(tenant)), il__hash_bytes(name, strlen(name)));
}

struct slot *
work_slots_find(struct slots *w, const char *tenant, const char *id)
{
    uint64_t hash = name_hash(tenant, id);

    for (size_t i = il__map_start(&w->ids, hash);; i++) {
        struct slot *slot = il__map_next(&w->ids, hash, &i);
        if (slot == NULL ||
            (strcmp(slot->id, id) == 0 && strcmp(slot->group->tenant->name, tenant) == 0))
            return slot;
    }
}

struct slot_group *
work_slots_group(struct slots *w, const char *tenant, const char *name)
{
    uint64_t hash = name_hash(tenant, name);

    for (size_t i = il__map_start(&w->groups, hash);; i++) {
        struct slot_group *g = il__map_next(&w->groups, hash, &i);
        if (g == NULL || (strcmp(g->name, name) == 0 && strcmp(g->tenant->name, tenant) == 0))
            return g;
    }
}

struct slot_tenant *
work_slots_tenant(struct slots *w, const char *name)
{
    struct slot_tenant *t = w->turn;

    if (t == NULL)
        return NULL;
    do {
        if (strcmp(t->name, name) == 0)
            return t;
        t = t->next;
    } while (t != w->turn);
    return NULL;
}

static struct slot_tenant *
need_tenant(struct slots *w, const char *name)
{
    struct slot_tenant *t = work_slots_tenant(w, name);

    if (t != NULL || (t = il__calloc(1, sizeof *t)) == NULL)
        return t;
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    if (w->turn == NULL) {
        t->next = t->prev = t;
        w->turn           = t;
    } else { /* after all others */
        t->next       = w->turn;
        t->prev       = w->turn->prev;
        t->prev->next = t;
        t->next->prev = t;
    }
    return t;
}

static void
drop_tenant(struct slots *w, struct slot_tenant *t)
{
    if (t->groups != NULL)
        return;
    t->prev->next = t->next;
    t->next->prev = t->prev;
    if (w->turn == t)
        w->turn = t->next != t ? t->next : NULL;
    il__free(t);
}

void
work_slots_drop_group(struct slots *w, struct slot_group *g)
{
    if (g->first != NULL || g->busy)
        return;
    struct slot_group **p = &g->tenant->groups;
    while (*p != g)
        p = &(*p)->next;
    *p = g->next;
    il__map_remove(&w->groups, name_hash(g->tenant->name, g->name), g);
    drop_tenant(w, g->tenant);
    il__free(g);
}

static struct slot_group *
need_group(struct slots *w, const char *tenant, const char *name)
{
    struct slot_group *g = work_slots_group(w, tenant, name);

    if (g != NULL)
        return g;
    struct slot_tenant *t = need_tenant(w, tenant);
    if (t == NULL)
        return NULL;
    g = il__map_reserve(&w->groups) ? il__calloc(1, sizeof *g) : NULL;
    if (g == NULL) {
        drop_tenant(w, t);
        return NULL;
    }
    (void)snprintf(g->name, sizeof g->name, "%s", name);
    g->tenant = t;
    g->next   = t->groups;
    t->groups = g;
    il__map_add(&w->groups, name_hash(tenant, name), g);
    return g;
}

bool
work_slot_comes_before(const struct slot *a, const struct slot *b)
{
    if (a->seq != 0 && b->seq != 0)
        return a->seq < b->seq;
    if (a->seq != b->seq)
        return a->seq != 0;
    return a->arrived < b->arrived;
}

static void
put_slot(struct slot *slot)
{
    struct slot **p = &slot->group->first;

    while (*p != NULL && work_slot_comes_before(*p, slot))
        p = &(*p)->next;
    slot->next = *p;
    *p         = slot;
}

static void
pull_slot(const struct slot *slot)
{
    struct slot **p = &slot->group->first;

    while (*p != slot)
        p = &(*p)->next;
    *p = slot->next;
}

void
work_slots_forget(struct slots *w, struct slot *slot)
{
    struct slot_group *g = slot->group;

    pull_slot(slot);
    il__map_remove(&w->ids, name_hash(g->tenant->name, slot->id), slot);
    w->n--;
    g->tenant->n--;
    il__free(slot);
    work_slots_drop_group(w, g);
}

struct slot *
work_slots_note(struct slots *w, const char *tenant, const char *name, const char *id, uint64_t seq)
{
    struct slot *slot = work_slots_find(w, tenant, id);

    if (slot != NULL) {
        if (seq != 0 && slot->seq == 0) {
            pull_slot(slot);
            slot->seq = seq;
            put_slot(slot);
        }
        return slot;
    }
    const struct slot_tenant *t = work_slots_tenant(w, tenant);
    if (!il__fair_may_take(t != NULL ? t->n : 0, SLOTS_MAX - w->n) || !il__map_reserve(&w->ids))
        return NULL;
    struct slot_group *g = need_group(w, tenant, name);
    slot                 = g != NULL ? il__calloc(1, sizeof *slot) : NULL;
    if (slot == NULL) {
        if (g != NULL)
            work_slots_drop_group(w, g);
        return NULL;
    }
    slot->group   = g;
    slot->seq     = seq;
    slot->arrived = ++w->n_arrived;
    (void)snprintf(slot->id, sizeof slot->id, "%s", id);
    il__map_add(&w->ids, name_hash(tenant, id), slot);
    put_slot(slot);
    w->n++;
    g->tenant->n++;
    return slot;
}

void
work_slots_put_first(struct slot *slot)
{
    pull_slot(slot);
    slot->next         = slot->group->first;
    slot->group->first = slot;
}

void
work_slots_try_all(struct slots *w)
{
    struct slot_tenant *t = w->turn;

    if (t == NULL)
        return;
    do {
        for (struct slot_group *g = t->groups; g != NULL; g = g->next)
            g->not_before_ns = 0;
        t = t->next;
    } while (t != w->turn);
}

void
work_slots_release(struct slots *w)
{
    while (w->turn != NULL) {
        struct slot_group *g = w->turn->groups;
        g->busy              = false;
        while (g->first->next != NULL)
            work_slots_forget(w, g->first);
        work_slots_forget(w, g->first); /* and with it the group, and perhaps the tenant */
    }
    il__map_release(&w->ids);
    il__map_release(&w->groups);
}
