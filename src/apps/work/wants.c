/*
 * wants.c: the slots that wait for execution in this process, by tenant and subject; wants.h is the
 * contract.
 */
#include "apps/work/wants.h"

#include <stdio.h>

#include "base/hash.h"
#include "runtime/fair.h"

#define WANTS_MAX 65536

static uint64_t
name_hash(const char *tenant, const char *name)
{
    return il__hash_mix(il__hash_bytes(tenant, strlen(tenant)), il__hash_bytes(name, strlen(name)));
}

struct want *
wants_find(struct wants *w, const char *tenant, const char *id)
{
    uint64_t hash = name_hash(tenant, id);

    for (size_t i = il__map_start(&w->ids, hash);; i++) {
        struct want *want = il__map_next(&w->ids, hash, &i);
        if (want == NULL ||
            (strcmp(want->id, id) == 0 && strcmp(want->group->tenant->name, tenant) == 0))
            return want;
    }
}

struct want_group *
wants_group(struct wants *w, const char *tenant, const char *name)
{
    uint64_t hash = name_hash(tenant, name);

    for (size_t i = il__map_start(&w->groups, hash);; i++) {
        struct want_group *g = il__map_next(&w->groups, hash, &i);
        if (g == NULL || (strcmp(g->name, name) == 0 && strcmp(g->tenant->name, tenant) == 0))
            return g;
    }
}

struct want_tenant *
wants_tenant(struct wants *w, const char *name)
{
    struct want_tenant *t = w->turn;

    if (t == NULL)
        return NULL;
    do {
        if (strcmp(t->name, name) == 0)
            return t;
        t = t->next;
    } while (t != w->turn);
    return NULL;
}

static struct want_tenant *
need_tenant(struct wants *w, const char *name)
{
    struct want_tenant *t = wants_tenant(w, name);

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
drop_tenant(struct wants *w, struct want_tenant *t)
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
wants_drop_group(struct wants *w, struct want_group *g)
{
    if (g->first != NULL || g->busy)
        return;
    struct want_group **p = &g->tenant->groups;
    while (*p != g)
        p = &(*p)->next;
    *p = g->next;
    il__map_remove(&w->groups, name_hash(g->tenant->name, g->name), g);
    drop_tenant(w, g->tenant);
    il__free(g);
}

static struct want_group *
need_group(struct wants *w, const char *tenant, const char *name)
{
    struct want_group *g = wants_group(w, tenant, name);

    if (g != NULL)
        return g;
    struct want_tenant *t = need_tenant(w, tenant);
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
want_comes_before(const struct want *a, const struct want *b)
{
    if (a->seq != 0 && b->seq != 0)
        return a->seq < b->seq;
    if (a->seq != b->seq)
        return a->seq != 0;
    return a->arrived < b->arrived;
}

static void
put_want(struct want *want)
{
    struct want **p = &want->group->first;

    while (*p != NULL && want_comes_before(*p, want))
        p = &(*p)->next;
    want->next = *p;
    *p         = want;
}

static void
pull_want(const struct want *want)
{
    struct want **p = &want->group->first;

    while (*p != want)
        p = &(*p)->next;
    *p = want->next;
}

void
wants_forget(struct wants *w, struct want *want)
{
    struct want_group *g = want->group;

    pull_want(want);
    il__map_remove(&w->ids, name_hash(g->tenant->name, want->id), want);
    w->n--;
    g->tenant->n--;
    il__free(want);
    wants_drop_group(w, g);
}

struct want *
wants_note(struct wants *w, const char *tenant, const char *name, const char *id, uint64_t seq)
{
    struct want *want = wants_find(w, tenant, id);

    if (want != NULL) {
        if (seq != 0 && want->seq == 0) {
            pull_want(want);
            want->seq = seq;
            put_want(want);
        }
        return want;
    }
    const struct want_tenant *t = wants_tenant(w, tenant);
    if (!il__fair_may_take(t != NULL ? t->n : 0, WANTS_MAX - w->n) || !il__map_reserve(&w->ids))
        return NULL;
    struct want_group *g = need_group(w, tenant, name);
    want                 = g != NULL ? il__calloc(1, sizeof *want) : NULL;
    if (want == NULL) {
        if (g != NULL)
            wants_drop_group(w, g);
        return NULL;
    }
    want->group   = g;
    want->seq     = seq;
    want->arrived = ++w->n_arrived;
    (void)snprintf(want->id, sizeof want->id, "%s", id);
    il__map_add(&w->ids, name_hash(tenant, id), want);
    put_want(want);
    w->n++;
    g->tenant->n++;
    return want;
}

void
wants_put_first(struct want *want)
{
    pull_want(want);
    want->next         = want->group->first;
    want->group->first = want;
}

void
wants_try_all(struct wants *w)
{
    struct want_tenant *t = w->turn;

    if (t == NULL)
        return;
    do {
        for (struct want_group *g = t->groups; g != NULL; g = g->next)
            g->not_before_ns = 0;
        t = t->next;
    } while (t != w->turn);
}

void
wants_release(struct wants *w)
{
    while (w->turn != NULL) {
        struct want_group *g = w->turn->groups;
        g->busy              = false;
        while (g->first->next != NULL)
            wants_forget(w, g->first);
        wants_forget(w, g->first); /* and with it the group, and perhaps the tenant */
    }
    il__map_release(&w->ids);
    il__map_release(&w->groups);
}
