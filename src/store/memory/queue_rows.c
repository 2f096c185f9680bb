/*
 * queue_rows.c: the jobs of the memory engine and their groups: finds, creates, moves and deletes
 * them. core/job.c decides the next state of a job; this file puts it into the matching containers.
 */
#include "base/hash.h"
#include "core/queue.h"
#include "store/memory/queue_internal.h"

/* ---- what comes first ------------------------------------------------------------------------ */

static const struct mem_job *
job_of_turn(const struct il__heap_node *node)
{
    return const_container_of(node, struct mem_job, turn);
}

static const struct mem_job *
job_of_due(const struct il__heap_node *node)
{
    return const_container_of(node, struct mem_job, due);
}

static bool
first_by(int64_t a_ms, int64_t b_ms, const struct mem_job *a, const struct mem_job *b)
{
    return a_ms != b_ms ? a_ms < b_ms : a->row.seq < b->row.seq;
}

static bool
ready_before(const struct il__heap_node *a, const struct il__heap_node *b)
{
    return il__job_before(&job_of_turn(a)->row, &job_of_turn(b)->row);
}

static bool
expires_before(const struct il__heap_node *a, const struct il__heap_node *b)
{
    const struct mem_job *x = job_of_turn(a);
    const struct mem_job *y = job_of_turn(b);

    return first_by(x->row.expires_ms, y->row.expires_ms, x, y);
}

static bool
all_expires_before(const struct il__heap_node *a, const struct il__heap_node *b)
{
    const struct mem_job *x = job_of_due(a);
    const struct mem_job *y = job_of_due(b);

    return first_by(x->row.expires_ms, y->row.expires_ms, x, y);
}

static bool
purge_before(const struct il__heap_node *a, const struct il__heap_node *b)
{
    const struct mem_job *x = job_of_due(a);
    const struct mem_job *y = job_of_due(b);

    return first_by(x->row.purge_at_ms, y->row.purge_at_ms, x, y);
}

/* A group's turn is that of its first job. */
static bool
turn_before(const struct il__heap_node *a, const struct il__heap_node *b)
{
    const struct mem_group *x = const_container_of(a, struct mem_group, turn);
    const struct mem_group *y = const_container_of(b, struct mem_group, turn);

    return ready_before(x->ready.first, y->ready.first);
}

void
il__mem_queue_order(struct mem_queue *q)
{
    q->turns.before   = turn_before;
    q->running.before = expires_before;
}

void
il__mem_queues_order(struct mem_queues *all)
{
    all->running.before = all_expires_before;
    all->ended.before   = purge_before;
}

/* ---- groups ---------------------------------------------------------------------------------- */

struct mem_group *
il__mem_group_new(struct mem_queue *q, const char *name)
{
    size_t            n_bytes = strlen(name) + 1;
    struct mem_group *g       = il__alloc(sizeof *g + n_bytes);

    if (g == NULL)
        return NULL;
    *g = (struct mem_group){ .queue   = q,
                             .limited = name[0] != '\0',
                             .ready   = { .before = ready_before } };
    memcpy(g->name, name, n_bytes);
    return g;
}

/* If the group has a job and room for one more, it has a place in the order of turns. */
static void
group_turn(struct mem_group *g)
{
    struct mem_queue *q = g->queue;

    if (g->in_turns)
        il__heap_remove(&q->turns, &g->turn);
    g->in_turns =
        g->ready.first != NULL && (!g->limited || il__queue_group_free(&q->opts, g->running.n));
    if (g->in_turns)
        il__heap_add(&q->turns, &g->turn);
}

void
il__mem_queue_regroup(struct mem_queue *q)
{
    for (struct mem_group *g = q->groups; g != NULL; g = g->next)
        group_turn(g);
}

static struct mem_group *
group_get(struct mem_store *m, struct mem_queue *q, const char *name)
{
    struct il__map   *map = &m->queues->groups;
    struct mem_group *g;

    if (name == NULL)
        return q->no_group;
    uint64_t hash = il__hash_mix(il__hash_bytes(name, strlen(name)), q->hash);
    for (size_t i = il__map_start(map, hash); (g = il__map_next(map, hash, &i)) != NULL; i++) {
        if (g->queue == q && strcmp(g->name, name) == 0)
            return g;
    }
    g = il__map_reserve(map) ? il__mem_group_new(q, name) : NULL;
    if (g == NULL)
        return NULL;
    g->hash = hash;
    il__map_add(map, hash, g);
    g->next = q->groups;
    if (g->next != NULL)
        g->next->prev = g;
    q->groups = g;
    return g;
}

static void
group_drop_if_idle(struct mem_store *m, struct mem_group *g)
{
    if (!g->limited || g->n_jobs > 0)
        return;
    if (g->prev != NULL)
        g->prev->next = g->next;
    else
        g->queue->groups = g->next;
    if (g->next != NULL)
        g->next->prev = g->prev;
    il__map_remove(&m->queues->groups, g->hash, g);
    il__free(g);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

struct mem_job *
il__mem_job_find(struct mem_store *m, const char *tenant, const char *id)
{
    uint64_t        hash = il__mem_hash_key(m, tenant, id);
    struct il__map *map  = &m->queues->jobs;
    struct mem_job *j;

    for (size_t i = il__map_start(map, hash); (j = il__map_next(map, hash, &i)) != NULL; i++) {
        if (strcmp(j->id, id) == 0 && strcmp(j->queue->tenant, tenant) == 0)
            return j;
    }
    return NULL;
}

struct mem_job *
il__mem_job_new(struct mem_store *m, const il_op *op, struct mem_queue *q)
{
    const il_job_in *in           = &op->in.job;
    const char      *unique       = in->unique_key != NULL ? in->unique_key : "";
    const char      *parent       = in->parent != NULL ? in->parent : "";
    bool             is_parent    = (op->flags & IL_PUSH_PARENT) != 0;
    size_t           id_bytes     = strlen(in->id) + 1;
    size_t           unique_bytes = strlen(unique) + 1;
    size_t           parent_bytes = strlen(parent) + 1;
    size_t           lists_bytes  = is_parent ? N_CHILD_LISTS * sizeof(struct mem_jobs) : 0;
    size_t           room_bytes   = is_parent ? IL__CHILDREN_TEXT_BYTES : 0;
    struct mem_job  *j;

    if (!il__map_reserve(&m->queues->jobs) || !il__map_reserve(&m->queues->uniques))
        return NULL;
    struct mem_group *g = group_get(m, q, in->group);
    if (g == NULL)
        return NULL;
    j = il__alloc(sizeof *j + lists_bytes + room_bytes + id_bytes + unique_bytes + parent_bytes +
                  in->data_bytes);
    if (j == NULL) {
        group_drop_if_idle(m, g);
        return NULL;
    }
    char *at = j->data;
    *j       = (struct mem_job){
              .hash = il__mem_hash_key(m, op->tenant, in->id), .queue = q, .group = g, .error = ""
    };
    if (is_parent) {
        j->children = (struct mem_jobs *)(void *)at;
        memset(j->children, 0, lists_bytes);
        at += lists_bytes;
        j->error_room = at;
        at += room_bytes;
    }
    j->id            = il__put(&at, in->id, id_bytes);
    j->unique_key    = il__put(&at, unique, unique_bytes);
    j->parent_id     = il__put(&at, parent, parent_bytes);
    j->payload       = il__put(&at, in->data, in->data_bytes);
    j->payload_bytes = in->data_bytes;
    j->unique_hash   = il__mem_unique_hash(q, unique);
    g->n_jobs++;
    return j;
}

_Static_assert(offsetof(struct mem_job, data) % sizeof(void *) == 0, "data begins with pointers");

void
il__mem_job_drop(struct mem_store *m, struct mem_job *j)
{
    j->group->n_jobs--;
    group_drop_if_idle(m, j->group);
    il__mem_text_unref(j->worker);
    il__mem_text_unref(j->message);
    il__mem_text_unref(j->error_text);
    il__free(j->result);
    il__free(j);
}

void
il__mem_job_link(struct mem_store *m, struct mem_job *j, struct mem_job *parent)
{
    j->queue->made = true;
    j->parent      = parent;
    il__map_add(&m->queues->jobs, j->hash, j);
    j->by_seq = (struct il__tree_node){ .first = "", .second = "", .number = j->row.seq };
    il__mem_unique_take(m, j);
    il__mem_job_enter(m, j);
}

/* The list of its parent that a child is in. */
static struct mem_jobs *
siblings(const struct mem_job *j)
{
    if (!il__job_ended(j->row.state))
        return &j->parent->children[CHILD_LIVE];
    return &j->parent->children[j->row.state == IL_JOB_COMPLETED ? CHILD_COMPLETED : CHILD_FAILED];
}

void
il__mem_job_leave(struct mem_store *m, struct mem_job *j)
{
    struct mem_queue *q = j->queue;

    j->had_ended = il__job_ended(j->row.state);
    il__tree_remove(&q->in_state[j->row.state], &j->by_seq);
    if (j->parent != NULL)
        il__mem_jobs_remove(siblings(j), j, LINK_CHILD);
    if (j->row.state == IL_JOB_SCHEDULED) {
        il__tree_remove(&q->later, &j->by_run_at);
    } else if (j->row.state == IL_JOB_READY) {
        il__heap_remove(&q->ages, &j->age);
        il__heap_remove(&j->group->ready, &j->turn);
        group_turn(j->group);
    } else if (j->row.state == IL_JOB_RUNNING && !j->row.is_parent) {
        il__heap_remove(&q->running, &j->turn);
        il__heap_remove(&m->queues->running, &j->due);
        il__mem_jobs_remove(&j->group->running, j, LINK_GROUP);
        group_turn(j->group);
    } else if (il__job_ended(j->row.state)) {
        il__heap_remove(&m->queues->ended, &j->due);
    }
}

void
il__mem_job_enter(struct mem_store *m, struct mem_job *j)
{
    struct mem_queue *q = j->queue;

    il__tree_add(&q->in_state[j->row.state], &j->by_seq);
    if (j->parent != NULL)
        il__mem_jobs_add(siblings(j), j, LINK_CHILD);
    if (j->by != NULL && j->row.state != IL_JOB_RUNNING) {
        il__mem_jobs_remove(&j->by->jobs, j, LINK_BY);
        j->by = NULL;
    }
    if (j->row.state == IL_JOB_SCHEDULED) {
        j->by_run_at = (struct il__tree_node){
            .first = "", .second = "", .number = (uint64_t)j->row.run_at_ms, .tie = j->row.seq
        };
        il__tree_add(&q->later, &j->by_run_at);
    } else if (j->row.state == IL_JOB_READY) {
        j->age.at = j->row.run_at_ms;
        il__heap_add(&q->ages, &j->age);
        il__heap_add(&j->group->ready, &j->turn);
        group_turn(j->group);
    } else if (j->row.state == IL_JOB_RUNNING && !j->row.is_parent) {
        il__heap_add(&q->running, &j->turn);
        il__heap_add(&m->queues->running, &j->due);
        il__mem_jobs_add(&j->group->running, j, LINK_GROUP);
        group_turn(j->group);
    } else if (il__job_ended(j->row.state)) {
        il__heap_add(&m->queues->ended, &j->due);
        /* Decided once, when the job ends: setting the wall clock later must not matter. */
        if (!j->had_ended && !il__job_keeps_key(&j->row, m->wall_ms))
            il__mem_unique_leave(m, j);
    }
}

void
il__mem_job_delete(struct mem_store *m, struct mem_job *j)
{
    for (unsigned i = 0; j->children != NULL && i < N_CHILD_LISTS; i++) {
        for (struct mem_job *c = j->children[i].head; c != NULL; c = c->links[LINK_CHILD].next)
            c->parent = NULL;
    }
    il__mem_job_leave(m, j);
    il__mem_unique_leave(m, j);
    il__map_remove(&m->queues->jobs, j->hash, j);
    il__mem_job_drop(m, j);
}

void
il__mem_job_error(struct mem_job *j, const char *error, struct mem_text *owner)
{
    if (error == NULL)
        return;
    if (owner != NULL)
        il__mem_text_ref(owner);
    il__mem_text_unref(j->error_text);
    j->error_text = owner;
    j->error      = error;
}

void
il__mem_job_wake(struct mem_store *m, const struct mem_job *j)
{
    il__board_wake(&m->board, il__board_slot(j->queue->tenant, j->id, IL__WAKE_JOB));
}

struct il__job_env
il__mem_job_env(const struct mem_store *m, const struct mem_job *j)
{
    return (struct il__job_env){
        .opts    = &j->queue->opts,
        .totals  = &j->queue->totals,
        .now_ms  = m->now_ms,
        .wall_ms = m->wall_ms,
        .kept    = j->parent != NULL && !il__job_ended(j->parent->row.state),
    };
}

struct il__children
il__mem_job_children(const struct mem_job *j)
{
    const struct mem_jobs *lists = j->children;

    if (lists == NULL)
        return (struct il__children){ 0 };
    return (struct il__children){
        .n           = lists[CHILD_LIVE].n + lists[CHILD_COMPLETED].n + lists[CHILD_FAILED].n,
        .n_completed = lists[CHILD_COMPLETED].n,
        .n_failed    = lists[CHILD_FAILED].n,
    };
}
