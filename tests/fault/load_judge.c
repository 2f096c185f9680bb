/*
 * load_judge.c: compares what was acknowledged to the workers of load.c with the store.
 */
#include "fault/load_internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "fault/integrity.h"
#include "harness/invariants.h"

struct grant {
    char     key[48];
    uint64_t fence;
    int64_t  held_ns;      /* acknowledged */
    int64_t  releasing_ns; /* 0 = not sent */
    int64_t  released_ns;  /* 0 = not acknowledged */
};

struct grants {
    struct grant *items;
    size_t        n;
    size_t        capacity;
    /* What is no lock. */
    struct load_fact *facts;
    size_t            n_facts;
    size_t            facts_capacity;
};

static struct grant *
add(struct grants *g)
{
    if (g->n == g->capacity) {
        g->capacity = MAX(g->capacity * 2, 4096);
        g->items    = realloc(g->items, g->capacity * sizeof *g->items);
        CHECK(g->items != NULL);
    }
    g->items[g->n] = (struct grant){ 0 };
    return &g->items[g->n++];
}

/* The newest with this fence, among those of the log being read: they are near the end. */
static struct grant *
find(struct grants *g, size_t from, uint64_t fence)
{
    for (size_t i = g->n; i > from; i--) {
        if (g->items[i - 1].fence == fence)
            return &g->items[i - 1];
    }
    T_FAIL("a release without a grant: fence %" PRIu64, fence);
}

static void
make_room(struct grants *g)
{
    if (g->n_facts < g->facts_capacity)
        return;
    g->facts_capacity = MAX(g->facts_capacity * 2, 4096);
    g->facts          = realloc(g->facts, g->facts_capacity * sizeof *g->facts);
    CHECK(g->facts != NULL);
}

/* A last line that is not complete was being written when the worker was killed: it does not
 * count. */
static void
read_log(struct grants *g, char *text)
{
    size_t from = g->n;

    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char     what;
        char     key[48];
        uint64_t fence;
        int64_t  ns;
        *end = '\0';
        if (sscanf(line, "%c %47s %*s %" SCNu64 " %" SCNd64, &what, key, &fence, &ns) != 4)
            T_FAIL("a log line '%s'", line);
        make_room(g);
        if (load_learn(g->facts, &g->n_facts, what, key, fence))
            continue;
        if (what == 'H') {
            struct grant *grant = add(g);
            (void)snprintf(grant->key, sizeof grant->key, "%s", key);
            grant->fence   = fence;
            grant->held_ns = ns;
        } else if (what == 'r') {
            find(g, from, fence)->releasing_ns = ns;
        } else {
            find(g, from, fence)->released_ns = ns;
        }
    }
}

static int
compare(const void *a, const void *b)
{
    const struct grant *x = a;
    const struct grant *y = b;
    int                 c = strcmp(x->key, y->key);

    return c != 0 ? c : (x->fence > y->fence) - (x->fence < y->fence);
}

/* Sorted by key and fence: one after the other, never two at once. */
static void
judge_order(const struct grants *g)
{
    for (size_t i = 1; i < g->n; i++) {
        const struct grant *a = &g->items[i - 1];
        const struct grant *b = &g->items[i];
        if (strcmp(a->key, b->key) != 0)
            continue;
        if (a->fence == b->fence)
            T_FAIL("%s: fence %" PRIu64 " was granted twice", a->key, a->fence);
        if (a->releasing_ns == 0)
            T_FAIL("%s: %" PRIu64 " was never released, and %" PRIu64 " was granted", a->key,
                   a->fence, b->fence);
        if (a->releasing_ns > b->held_ns)
            T_FAIL("%s: %" PRIu64 " and %" PRIu64 " were held at once", a->key, a->fence, b->fence);
    }
}

static bool
is_live(il *h, const struct grant *grant)
{
    il_error  err = { 0 };
    il_status st  = il_check_fence(h, grant->key, grant->fence, &err);

    if (st != IL_OK && st != IL_STALE)
        T_FAIL("check_fence: %s", err.message);
    return st == IL_OK;
}

static void
judge_store(const struct grants *g, il *h)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct grant *grant = &g->items[i];
        if (grant->releasing_ns == 0 && !is_live(h, grant))
            T_FAIL("%s: the acknowledged fence %" PRIu64 " is lost", grant->key, grant->fence);
        if (grant->released_ns != 0 && is_live(h, grant))
            T_FAIL("%s: the acknowledged release of %" PRIu64 " is lost", grant->key, grant->fence);
    }
}

size_t
load_judge(struct load *l)
{
    struct grants  g   = { 0 };
    struct t_watch w   = { 0 };
    il            *h   = NULL;
    il_error       err = { 0 };
    char           path[T_PATH_BYTES];
    char           why[T_WHY_BYTES];

    for (unsigned i = 0; i < l->n_logs; i++) {
        t_path(path, "%s/log-%u", l->dir, i);
        if (!t_file_exists(path))
            continue; /* killed before it began */
        char *text = t_file_read(path, NULL);
        read_log(&g, text);
        free(text);
    }
    qsort(g.items, g.n, sizeof *g.items, compare);
    T_TRUE(l->db[0] == '\0' || db_is_whole(l->db));
    judge_order(&g);
    if (il_open(l->url, NULL, &h, &err) != IL_OK)
        T_FAIL("%s", err.message);
    judge_store(&g, h);
    load_judge_facts(h, g.facts, g.n_facts);
    if (!t_watch_look(&w, h, "default", false, why))
        T_FAIL("%s", why);
    t_watch_release(&w);
    il_close(h);
    free(g.items);
    free(g.facts);
    return g.n;
}
