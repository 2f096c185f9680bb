/*
 * queue_tables.c: queues, unique keys and workers of the memory engine, and the strings and lists
 * of its jobs.
 *
 * Callers reserve memory before they change anything, so a failed op leaves everything unchanged.
 */
#include "base/hash.h"
#include "core/limits.h"
#include "core/queue.h"
#include "store/memory/queue_internal.h"

/* ---- texts and lists ------------------------------------------------------------------------- */

struct mem_text *
il__mem_text_new(const char *text)
{
    size_t           n_bytes = strlen(text) + 1;
    struct mem_text *t       = il__alloc(sizeof *t + n_bytes);

    if (t != NULL) {
        t->n_refs = 1;
        memcpy(t->text, text, n_bytes);
    }
    return t;
}

struct mem_text *
il__mem_text_ref(struct mem_text *t)
{
    t->n_refs++;
    return t;
}

void
il__mem_text_unref(struct mem_text *t)
{
    if (t != NULL && --t->n_refs == 0)
        il__free(t);
}

void
il__mem_jobs_add(struct mem_jobs *list, struct mem_job *j, enum mem_link link)
{
    j->links[link].prev = list->tail;
    j->links[link].next = NULL;
    if (list->tail != NULL)
        list->tail->links[link].next = j;
    else
        list->head = j;
    list->tail = j;
    list->n++;
}

void
il__mem_jobs_remove(struct mem_jobs *list, struct mem_job *j, enum mem_link link)
{
    struct mem_job *prev = j->links[link].prev;
    struct mem_job *next = j->links[link].next;

    CHECK(list->n > 0);
    if (prev != NULL)
        prev->links[link].next = next;
    else
        list->head = next;
    if (next != NULL)
        next->links[link].prev = prev;
    else
        list->tail = prev;
    list->n--;
}

/* ---- queues ---------------------------------------------------------------------------------- */

struct mem_queue *
il__mem_queue_find(struct mem_store *m, const char *tenant, const char *name)
{
    uint64_t          hash = il__mem_hash_key(m, tenant, name);
    struct il__map   *map  = &m->queues->queues;
    struct mem_queue *q;

    for (size_t i = il__map_start(map, hash); (q = il__map_next(map, hash, &i)) != NULL; i++) {
        if (strcmp(q->name, name) == 0 && strcmp(q->tenant, tenant) == 0)
            return q;
    }
    return NULL;
}

struct mem_queue *
il__mem_queue_made(struct mem_store *m, const il_op *op)
{
    struct mem_queue *q = il__mem_queue_find(m, op->tenant, op->key);

    return q != NULL && q->made ? q : NULL;
}

struct mem_queue *
il__mem_queue_get(struct mem_store *m, const char *tenant, const char *name)
{
    struct mem_queues *all          = m->queues;
    struct mem_queue  *q            = il__mem_queue_find(m, tenant, name);
    size_t             tenant_bytes = strlen(tenant) + 1;
    size_t             name_bytes   = strlen(name) + 1;

    if (q != NULL)
        return q;
    q = il__map_reserve(&all->queues) ? il__alloc(sizeof *q + tenant_bytes + name_bytes) : NULL;
    if (q == NULL)
        return NULL;
    *q = (struct mem_queue){
        .hash = il__mem_hash_key(m, tenant, name),
        .next = all->all,
        .opts = il__queue_defaults(),
        .name = q->tenant + tenant_bytes,
    };
    il__mem_queue_order(q);
    il__mem_cron_init(NULL, &q->crons);
    memcpy(q->tenant, tenant, tenant_bytes);
    memcpy(q->tenant + tenant_bytes, name, name_bytes);
    q->no_group = il__mem_group_new(q, "");
    if (q->no_group == NULL) {
        il__free(q);
        return NULL;
    }
    il__map_add(&all->queues, q->hash, q);
    q->by_name = (struct il__tree_node){ .first = q->tenant, .second = q->name };
    il__tree_add(&all->by_name, &q->by_name);
    all->all = q;
    return q;
}

void
il__mem_queue_wake(struct mem_store *m, const struct mem_queue *q)
{
    il__board_wake(&m->board, il__board_slot(q->tenant, q->name, IL__WAKE_QUEUE));
}

/* ---- unique keys ----------------------------------------------------------------------------- */

uint64_t
il__mem_unique_hash(const struct mem_queue *q, const char *key)
{
    return il__hash_mix(il__hash_bytes(key, strlen(key)), q->hash);
}

struct mem_job *
il__mem_unique_find(struct mem_store *m, const struct mem_queue *q, const char *key)
{
    uint64_t        hash = il__mem_unique_hash(q, key);
    struct il__map *map  = &m->queues->uniques;
    struct mem_job *j;

    for (size_t i = il__map_start(map, hash); (j = il__map_next(map, hash, &i)) != NULL; i++) {
        if (j->queue == q && strcmp(j->unique_key, key) == 0)
            return j;
    }
    return NULL;
}

void
il__mem_unique_take(struct mem_store *m, struct mem_job *j)
{
    struct mem_job *other =
        j->unique_key[0] != '\0' ? il__mem_unique_find(m, j->queue, j->unique_key) : j;

    if (other == j)
        return;
    if (other != NULL) {
        other->has_key = false;
        il__map_replace(&m->queues->uniques, j->unique_hash, other, j);
    } else {
        il__map_add(&m->queues->uniques, j->unique_hash, j);
    }
    j->has_key = true;
}

void
il__mem_unique_leave(struct mem_store *m, struct mem_job *j)
{
    if (j->has_key)
        il__map_remove(&m->queues->uniques, j->unique_hash, j);
    j->has_key = false;
}

/* ---- workers --------------------------------------------------------------------------------- */

static uint64_t
worker_hash(const struct mem_queue *q, const char *name)
{
    return il__hash_mix(il__hash_bytes(name, strlen(name)), q->hash);
}

struct mem_worker *
il__mem_worker_find(struct mem_store *m, const struct mem_queue *q, const char *name)
{
    uint64_t           hash = worker_hash(q, name);
    struct il__map    *map  = &m->queues->workers;
    struct mem_worker *w;

    for (size_t i = il__map_start(map, hash); (w = il__map_next(map, hash, &i)) != NULL; i++) {
        if (w->queue == q && strcmp(w->name, name) == 0)
            return w;
    }
    return NULL;
}

static void
worker_link(struct mem_queues *all, struct mem_worker *w, struct mem_worker *after)
{
    w->prev = after;
    w->next = after != NULL ? after->next : all->oldest;
    if (w->prev != NULL)
        w->prev->next = w;
    else
        all->oldest = w;
    if (w->next != NULL)
        w->next->prev = w;
    else
        all->newest = w;
}

static void
worker_unlink(struct mem_queues *all, struct mem_worker *w)
{
    if (w->prev != NULL)
        w->prev->next = w->next;
    else
        all->oldest = w->next;
    if (w->next != NULL)
        w->next->prev = w->prev;
    else
        all->newest = w->prev;
}

struct mem_worker *
il__mem_worker_get(struct mem_store *m, struct mem_queue *q, const char *name)
{
    struct mem_queues *all     = m->queues;
    struct mem_worker *w       = il__mem_worker_find(m, q, name);
    size_t             n_bytes = strlen(name) + 1;

    if (w != NULL)
        return w;
    w = il__map_reserve(&all->workers) ? il__alloc(sizeof *w + n_bytes) : NULL;
    if (w == NULL)
        return NULL;
    *w = (struct mem_worker){ .hash    = worker_hash(q, name),
                              .queue   = q,
                              .seen_ms = m->now_ms - IL__WORKER_SEEN_MS };
    memcpy(w->name, name, n_bytes);
    il__map_add(&all->workers, w->hash, w);
    worker_link(all, w, NULL); /* the oldest, until its claim is noted */
    return w;
}

static void
worker_forget_jobs(struct mem_worker *w)
{
    while (w->jobs.head != NULL) {
        struct mem_job *j = w->jobs.head;
        il__mem_jobs_remove(&w->jobs, j, LINK_BY);
        j->by = NULL;
    }
}

void
il__mem_worker_note(struct mem_store *m, struct mem_worker *w)
{
    worker_forget_jobs(w);
    w->claim_id[0] = '\0';
    w->seen_ms     = m->now_ms;
    worker_unlink(m->queues, w);
    worker_link(m->queues, w, m->queues->newest);
}

void
il__mem_worker_free(struct mem_store *m, struct mem_worker *w)
{
    worker_forget_jobs(w);
    worker_unlink(m->queues, w);
    il__map_remove(&m->queues->workers, w->hash, w);
    il__free(w);
}

/* ---- all of it ------------------------------------------------------------------------------- */

bool
il__mem_queue_init(struct mem_store *m)
{
    struct mem_queues *all = il__calloc(1, sizeof *all);

    m->queues = all;
    if (all == NULL)
        return false;
    il__mem_queues_order(all);
    il__mem_cron_init(&all->cron_heap, NULL);
    return true;
}

static void
free_queue(struct mem_store *m, struct mem_queue *q)
{
    for (unsigned i = 0; i < IL_JOB_STATE_COUNT; i++) {
        while (q->in_state[i].root != NULL)
            il__mem_job_delete(m, container_of(q->in_state[i].root, struct mem_job, by_seq));
    }
    CHECK(q->groups == NULL);
    il__mem_text_unref(q->reason);
    il__free(q->starts);
    il__free(q->no_group);
    il__free(q);
}

void
il__mem_queue_release(struct mem_store *m)
{
    struct mem_queues *all = m->queues;

    if (all == NULL)
        return;
    while (all->cron_heap.first != NULL)
        il__mem_cron_free(m, container_of(all->cron_heap.first, struct mem_cron, due));
    while (all->oldest != NULL)
        il__mem_worker_free(m, all->oldest);
    while (all->all != NULL) {
        struct mem_queue *q = all->all;
        all->all            = q->next;
        free_queue(m, q);
    }
    il__map_release(&all->queues);
    il__map_release(&all->jobs);
    il__map_release(&all->groups);
    il__map_release(&all->uniques);
    il__map_release(&all->workers);
    il__map_release(&all->crons);
    il__free(all);
    m->queues = NULL;
}
