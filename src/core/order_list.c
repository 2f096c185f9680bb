/*
 * order_list.c: lists the learned lock order of a tenant, and finds the edges that lie on a cycle.
 *
 * An edge lies on a cycle if both its classes belong to one strongly connected component of the
 * graph of learned edges and declared ranks. The components are found with Tarjan's algorithm,
 * without recursion, since a path may visit thousands of classes.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "core/key.h"
#include "core/op.h"
#include "core/order.h"

#define CURSOR_BYTES_MAX (2 * IL_KEY_BYTES_MAX + 1) /* FIRST:THEN; a class has no ':' */

/* Classes are nodes, numbered by their names; arcs are learned edges and declared ranks. */
struct graph {
    const struct il__order_edge **edges; /* of the tenant, ordered by their classes */
    size_t                        n_edges;
    const char                  **classes;
    uint32_t                      n_classes;
    uint32_t                     *begin; /* of the arcs of a class in `to`, and their end */
    uint32_t                     *to;
    uint32_t                     *component; /* of a class, from 1; 0: not known yet */
    void                         *mem;       /* of all these arrays */
};

/* ---- the graph ------------------------------------------------------------------------------- */

static int
compare_edges(const void *a, const void *b)
{
    const struct il__order_edge *const *x = a;
    const struct il__order_edge *const *y = b;
    int                                 c = strcmp((*x)->first, (*y)->first);

    return c != 0 ? c : strcmp((*x)->then, (*y)->then);
}

static int
compare_names(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;

    return strcmp(*x, *y);
}

/* Without elements, a valid pointer all the same. Zeroed. */
static void *
new_array(struct graph *g, size_t n, size_t item_bytes)
{
    void *items = il__arena_alloc(&g->mem, MAX(n, 1) * item_bytes);

    if (items != NULL)
        memset(items, 0, MAX(n, 1) * item_bytes);
    return items;
}

static bool
collect_edges(struct graph *g, const struct il__order *o, const char *tenant)
{
    g->edges = new_array(g, o->n, sizeof *g->edges);
    if (g->edges == NULL)
        return false;
    for (size_t i = 0; i < o->n; i++) {
        if (strcmp(o->edges[i].tenant, tenant) == 0)
            g->edges[g->n_edges++] = &o->edges[i];
    }
    qsort(g->edges, g->n_edges, sizeof *g->edges, compare_edges);
    return true;
}

static bool
collect_classes(struct graph *g, const struct il__ranks *ranks)
{
    size_t n = 0;

    g->classes = new_array(g, 2 * g->n_edges + ranks->n, sizeof *g->classes);
    if (g->classes == NULL)
        return false;
    for (size_t i = 0; i < g->n_edges; i++) {
        g->classes[n++] = g->edges[i]->first;
        g->classes[n++] = g->edges[i]->then;
    }
    for (size_t i = 0; i < ranks->n; i++)
        g->classes[n++] = ranks->classes[i];
    qsort(g->classes, n, sizeof *g->classes, compare_names);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(g->classes[i], g->classes[g->n_classes - 1]) != 0)
            g->classes[g->n_classes++] = g->classes[i];
    }
    return true;
}

static uint32_t
number_of(const struct graph *g, const char *class)
{
    const char **at = bsearch(&class, g->classes, g->n_classes, sizeof *g->classes, compare_names);

    CHECK(at != NULL);
    return (uint32_t)(at - g->classes);
}

/* The i-th arc: the edges, then each rank to the next one. */
static void
arc(const struct graph *g, const struct il__ranks *ranks, size_t i, uint32_t *ret_from,
    uint32_t *ret_to)
{
    bool   is_edge = i < g->n_edges;
    size_t rank    = is_edge ? 0 : i - g->n_edges;

    *ret_from = number_of(g, is_edge ? g->edges[i]->first : ranks->classes[rank]);
    *ret_to   = number_of(g, is_edge ? g->edges[i]->then : ranks->classes[rank + 1]);
}

/* The arcs of each class, one class after the other. */
static bool
collect_arcs(struct graph *g, const struct il__ranks *ranks)
{
    size_t    n    = g->n_edges + (ranks->n > 0 ? ranks->n - 1 : 0);
    uint32_t *fill = new_array(g, g->n_classes, sizeof *fill);
    uint32_t  from;
    uint32_t  to;

    g->begin     = new_array(g, g->n_classes + 1, sizeof *g->begin);
    g->to        = new_array(g, n, sizeof *g->to);
    g->component = new_array(g, g->n_classes, sizeof *g->component);
    if (fill == NULL || g->begin == NULL || g->to == NULL || g->component == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        arc(g, ranks, i, &from, &to);
        g->begin[from + 1]++;
    }
    for (uint32_t v = 0; v < g->n_classes; v++) {
        g->begin[v + 1] += g->begin[v];
        fill[v] = g->begin[v];
    }
    for (size_t i = 0; i < n; i++) {
        arc(g, ranks, i, &from, &to);
        g->to[fill[from]++] = to;
    }
    return true;
}

/* ---- cycles ---------------------------------------------------------------------------------- */

struct tarjan {
    struct graph *g;
    uint32_t     *number; /* of a class: when it was entered, from 1; 0: not yet */
    uint32_t     *low;    /* the smallest number that it can reach among open classes */
    uint32_t     *next;   /* its next arc */
    uint32_t     *path;   /* from the root to the current class */
    uint32_t     *open;   /* entered, and its component is not known yet */
    uint32_t      n_entered, n_path, n_open, n_components;
};

static void
enter(struct tarjan *t, uint32_t v)
{
    t->number[v] = t->low[v] = ++t->n_entered;
    t->next[v]               = t->g->begin[v];
    t->path[t->n_path++]     = v;
    t->open[t->n_open++]     = v;
}

/* All arcs of the last class of the path have been followed. */
static void
leave(struct tarjan *t)
{
    uint32_t v = t->path[--t->n_path];
    uint32_t w;

    if (t->n_path > 0) {
        uint32_t *low = &t->low[t->path[t->n_path - 1]];
        *low          = MIN(*low, t->low[v]);
    }
    if (t->low[v] != t->number[v])
        return;
    t->n_components++;
    do {
        w                  = t->open[--t->n_open];
        t->g->component[w] = t->n_components;
    } while (w != v);
}

static void
walk(struct tarjan *t, uint32_t root)
{
    enter(t, root);
    while (t->n_path > 0) {
        uint32_t v = t->path[t->n_path - 1];
        if (t->next[v] == t->g->begin[v + 1]) {
            leave(t);
            continue;
        }
        uint32_t w = t->g->to[t->next[v]++];
        if (t->number[w] == 0)
            enter(t, w);
        else if (t->g->component[w] == 0)
            t->low[v] = MIN(t->low[v], t->number[w]);
    }
}

static bool
find_components(struct graph *g)
{
    size_t        n = g->n_classes;
    struct tarjan t = { .g      = g,
                        .number = new_array(g, n, sizeof *t.number),
                        .low    = new_array(g, n, sizeof *t.low),
                        .next   = new_array(g, n, sizeof *t.next),
                        .path   = new_array(g, n, sizeof *t.path),
                        .open   = new_array(g, n, sizeof *t.open) };

    if (t.number == NULL || t.low == NULL || t.next == NULL || t.path == NULL || t.open == NULL)
        return false;
    for (uint32_t v = 0; v < g->n_classes; v++) {
        if (t.number[v] == 0)
            walk(&t, v);
    }
    CHECK(t.n_open == 0);
    return true;
}

/* ---- the page -------------------------------------------------------------------------------- */

il_status
il__order_list_check(il_op *op, il_error *reterr)
{
    const il_list_in *in = &op->in.list;

    if (il__op_check_limit(op, IL_PAGE_ITEMS_DEFAULT, reterr) != IL_OK ||
        il__check_optional("prefix", in->prefix, IL_KEY_BYTES_MAX, false, reterr) != IL_OK)
        return IL_INVAL;
    if (in->cursor == NULL)
        return IL_OK;
    const char *colon = strchr(in->cursor, ':');
    /* A class may be empty: that of a key which begins with ':'. */
    if (colon == NULL || strchr(colon + 1, ':') != NULL ||
        il__check_text("cursor", in->cursor, 1, CURSOR_BYTES_MAX, false, NULL) != IL_OK)
        return il__error_set(reterr, IL_INVAL, "invalid cursor");
    return IL_OK;
}

static bool
is_after(const struct il__order_edge *e, const char *cursor)
{
    size_t n = il__key_class_bytes(cursor);
    int    c = strncmp(e->first, cursor, n);

    if (c == 0 && e->first[n] != '\0')
        c = 1;
    return c > 0 || (c == 0 && strcmp(e->then, cursor + n + 1) > 0);
}

/* Do the keys of the class that have a ':' all begin with the prefix? */
static bool
is_covered(const char *class, const char *prefix)
{
    size_t n = strlen(class);
    size_t m = strlen(prefix);

    return strncmp(prefix, class, MIN(n, m)) == 0 && (m <= n || strcmp(prefix + n, ":") == 0);
}

static bool
is_asked(const struct il__order_edge *e, const il_list_in *in)
{
    return (in->cursor == NULL || is_after(e, in->cursor)) &&
           (in->prefix == NULL ||
            (is_covered(e->first, in->prefix) && is_covered(e->then, in->prefix)));
}

static uint32_t
flags_of(const struct graph *g, const struct il__ranks *ranks, const struct il__order_edge *e)
{
    size_t   first = il__order_rank(ranks, e->first);
    size_t   then  = il__order_rank(ranks, e->then);
    uint32_t flags = first != 0 && first < then ? IL_EDGE_DECLARED : 0;

    if (g->component[number_of(g, e->first)] == g->component[number_of(g, e->then)])
        flags |= IL_EDGE_INVERTED;
    return flags;
}

static bool
add_edge(il_op *op, const struct il__order_edge *e, uint32_t flags)
{
    il_edge_info copy = { .tenant     = il__op_strdup(op, e->tenant),
                          .from       = il__op_strdup(op, e->first),
                          .to         = il__op_strdup(op, e->then),
                          .from_place = il__op_strdup(op, e->first_place),
                          .to_place   = il__op_strdup(op, e->then_place),
                          .flags      = flags };

    if (copy.tenant == NULL || copy.from == NULL || copy.to == NULL || copy.from_place == NULL ||
        copy.to_place == NULL)
        return false;
    il_edge_info *slot = il__arena_append(&op->mem, &op->out.edges, &op->out.n_edges, sizeof *slot);
    if (slot != NULL)
        *slot = copy;
    return slot != NULL;
}

static bool
set_next(il_op *op)
{
    const il_edge_info     *last   = &op->out.edges[op->out.n_edges - 1];
    AUTO_BUF struct il__buf cursor = { .n_bytes_max = CURSOR_BYTES_MAX };

    il__buf_addf(&cursor, "%s:%s", last->from, last->to);
    if (!cursor.failed)
        op->out.next = il__op_strdup(op, il__buf_str(&cursor));
    return op->out.next != NULL;
}

/* False: out of memory. */
static bool
add_page(const struct graph *g, const struct il__ranks *ranks, il_op *op)
{
    for (size_t i = 0; i < g->n_edges; i++) {
        const struct il__order_edge *e = g->edges[i];
        if (!is_asked(e, &op->in.list))
            continue;
        if (op->out.n_edges == op->in.list.limit)
            return set_next(op);
        if (!add_edge(op, e, flags_of(g, ranks, e)))
            return false;
    }
    return true;
}

void
il__order_list(const struct il__order *o, const struct il__ranks *ranks, il_op *op)
{
    struct graph g = { 0 };

    op->status = IL_OK;
    if (!collect_edges(&g, o, op->tenant) || !collect_classes(&g, ranks) ||
        !collect_arcs(&g, ranks) || !find_components(&g) || !add_page(&g, ranks, op)) {
        il__op_reset(op);
        op->status = IL_NOMEM;
    }
    il__arena_free(&g.mem);
}
