/*
 * queue_cron.c: schedules in the memory engine: their entries, and the jobs that their ticks push.
 */
#include "base/arena.h"
#include "base/hash.h"
#include "core/cursor.h"
#include "core/op.h"
#include "store/memory/queue_internal.h"

/* ---- which comes first ----------------------------------------------------------------------- */

static const struct mem_cron *
cron_of_due(const struct il__heap_node *node)
{
    return const_container_of(node, struct mem_cron, due);
}

static const struct mem_cron *
cron_of_turn(const struct il__heap_node *node)
{
    return const_container_of(node, struct mem_cron, turn);
}

static bool
is_before(const struct mem_cron *a, const struct mem_cron *b)
{
    if (a->next_ms != b->next_ms)
        return a->next_ms < b->next_ms;
    int by_tenant = strcmp(a->queue->tenant, b->queue->tenant);
    return by_tenant != 0 ? by_tenant < 0 : strcmp(a->name, b->name) < 0;
}

static bool
due_before(const struct il__heap_node *a, const struct il__heap_node *b)
{
    return is_before(cron_of_due(a), cron_of_due(b));
}

static bool
turn_before(const struct il__heap_node *a, const struct il__heap_node *b)
{
    return is_before(cron_of_turn(a), cron_of_turn(b));
}

void
il__mem_cron_init(struct il__heap *by_next, struct il__heap *of_queue)
{
    if (by_next != NULL)
        by_next->before = due_before;
    if (of_queue != NULL)
        of_queue->before = turn_before;
}

/* ---- entries --------------------------------------------------------------------------------- */

static struct mem_cron *
cron_find(struct mem_store *m, const char *tenant, const char *name)
{
    uint64_t         hash = il__mem_hash_key(m, tenant, name);
    struct il__map  *map  = &m->queues->crons;
    struct mem_cron *c;

    for (size_t i = il__map_start(map, hash); (c = il__map_next(map, hash, &i)) != NULL; i++) {
        if (strcmp(c->name, name) == 0 && strcmp(c->queue->tenant, tenant) == 0)
            return c;
    }
    return NULL;
}

static void
cron_enter(struct mem_store *m, struct mem_cron *c)
{
    il__heap_add(&m->queues->cron_heap, &c->due);
    il__heap_add(&c->queue->crons, &c->turn);
}

static void
cron_leave(struct mem_store *m, struct mem_cron *c)
{
    il__heap_remove(&m->queues->cron_heap, &c->due);
    il__heap_remove(&c->queue->crons, &c->turn);
}

void
il__mem_cron_free(struct mem_store *m, struct mem_cron *c)
{
    cron_leave(m, c);
    il__tree_remove(&m->queues->cron_names, &c->by_name);
    il__tree_remove(&c->queue->cron_names, &c->of_queue);
    il__map_remove(&m->queues->crons, c->hash, c);
    il__free(c);
}

/* A new entry, in no table yet. */
static struct mem_cron *
cron_new(struct mem_store *m, const il_op *op, struct mem_queue *q)
{
    const il_cron_in *in             = &op->in.cron;
    size_t            name_bytes     = strlen(in->name) + 1;
    size_t            schedule_bytes = strlen(in->schedule) + 1;
    struct mem_cron  *c = il__alloc(sizeof *c + name_bytes + schedule_bytes + in->data_bytes);

    if (c == NULL)
        return NULL;
    char *at = c->name;
    *c       = (struct mem_cron){
              .hash          = il__mem_hash_key(m, op->tenant, in->name),
              .queue         = q,
              .missed        = in->missed,
              .priority      = in->priority,
              .max_attempts  = in->max_attempts,
              .schedule      = at + name_bytes,
              .payload       = at + name_bytes + schedule_bytes,
              .payload_bytes = in->data_bytes,
    };
    CHECK(il__cron_parse_entry(in->schedule, &c->cron, NULL) ==
          IL_OK); /* as il__queue_check() saw */
    memcpy(at, in->name, name_bytes);
    memcpy(at + name_bytes, in->schedule, schedule_bytes);
    if (in->data_bytes > 0)
        memcpy(at + name_bytes + schedule_bytes, in->data, in->data_bytes);
    c->next_ms = il__cron_next(&c->cron, m->wall_ms);
    return c;
}

static bool
show_cron(il_op *op, const struct mem_cron *c)
{
    il_cron_info info = {
        .tenant        = il__op_strdup(op, c->queue->tenant),
        .name          = il__op_strdup(op, c->name),
        .queue         = il__op_strdup(op, c->queue->name),
        .schedule      = il__op_strdup(op, c->schedule),
        .payload       = il__op_blob(op, c->payload, c->payload_bytes),
        .payload_bytes = c->payload_bytes,
        .missed        = c->missed,
        .priority      = c->priority,
        .max_attempts  = c->max_attempts,
        .n_ticks       = c->n_ticks,
        .next_at_ms    = c->next_ms,
        .last_at_ms    = c->last_ms,
    };

    if (info.tenant == NULL || info.name == NULL || info.queue == NULL || info.schedule == NULL ||
        info.payload == NULL)
        return false;
    il_cron_info *slot = il__arena_append(&op->mem, &op->out.crons, &op->out.n_crons, sizeof *slot);
    if (slot != NULL)
        *slot = info;
    return slot != NULL;
}

void
il__mem_cron_set(struct mem_store *m, il_op *op)
{
    struct mem_queue *q   = il__mem_queue_get(m, op->tenant, op->key);
    struct mem_cron  *old = cron_find(m, op->tenant, op->in.cron.name);
    struct mem_cron  *c   = NULL;

    if (q != NULL && il__map_reserve(&m->queues->crons))
        c = cron_new(m, op, q);
    if (c != NULL && old != NULL) {
        c->n_ticks = old->n_ticks;
        c->last_ms = old->last_ms;
        if (strcmp(old->schedule, c->schedule) == 0)
            c->next_ms = old->next_ms;
    }
    if (c == NULL || !show_cron(op, c)) {
        il__free(c);
        op->status = IL_NOMEM;
        return;
    }
    if (old != NULL)
        il__mem_cron_free(m, old);
    il__map_add(&m->queues->crons, c->hash, c);
    c->by_name  = (struct il__tree_node){ .first = q->tenant, .second = c->name };
    c->of_queue = c->by_name;
    il__tree_add(&m->queues->cron_names, &c->by_name);
    il__tree_add(&q->cron_names, &c->of_queue);
    cron_enter(m, c);
    q->made = true;
    il__mem_queue_wake(m, q); /* wake those who wait for its next tick, which may have changed */
    op->status = IL_OK;
}

void
il__mem_cron_remove(struct mem_store *m, il_op *op)
{
    struct mem_cron *c = cron_find(m, op->tenant, op->in.cron.name);

    op->status = c != NULL ? IL_OK : IL_NOT_FOUND;
    if (c != NULL)
        il__mem_cron_free(m, c);
}

/* ---- listing --------------------------------------------------------------------------------- */

/* The next entry of a queue (NULL: of all) by name. */
static const struct mem_cron *
next_by_name(const struct mem_store *m, const struct mem_queue *q, const il_op *op,
             const char *after)
{
    const struct il__tree      *tree = q != NULL ? &q->cron_names : &m->queues->cron_names;
    const struct il__tree_node *node = il__mem_next_name(tree, op, after);

    if (node == NULL)
        return NULL;
    return q != NULL ? const_container_of(node, struct mem_cron, of_queue)
                     : const_container_of(node, struct mem_cron, by_name);
}

void
il__mem_cron_list(struct mem_store *m, il_op *op)
{
    const struct mem_queue *q = op->key != NULL ? il__mem_queue_find(m, op->tenant, op->key) : NULL;
    const char             *after = NULL;
    uint64_t                number;

    if (op->in.list.cursor != NULL)
        CHECK(il__cursor_parse(op->in.list.cursor, &after, &number));
    op->status = IL_OK;
    if (op->key != NULL && q == NULL)
        return;
    const struct mem_cron *c = next_by_name(m, q, op, after);
    for (; c != NULL && op->out.n_crons < op->in.list.limit; c = next_by_name(m, q, op, after)) {
        if (!show_cron(op, c)) {
            op->status = IL_NOMEM;
            return;
        }
        after = c->name;
    }
    if (c != NULL && (op->out.next = il__op_cursor(op, after, 0)) == NULL)
        op->status = IL_NOMEM;
}

/* ---- ticks ----------------------------------------------------------------------------------- */

int64_t
il__mem_next_tick(const struct mem_store *m, const struct mem_queue *q)
{
    if (q != NULL)
        return q->crons.first != NULL ? cron_of_turn(q->crons.first)->next_ms : IL__NEVER;
    const struct il__heap_node *first = m->queues->cron_heap.first;
    return first != NULL ? cron_of_due(first)->next_ms : IL__NEVER;
}

/* Push the job of a tick, unless that was done. False: no memory. */
static bool
push_tick(struct mem_store *m, struct mem_cron *c, int64_t tick_ms, uint32_t *n)
{
    char  id[IL_ID_BYTES_MAX + 1];
    il_op op = { .type = IL_OP_JOB_PUSH, .tenant = c->queue->tenant, .key = c->queue->name };

    il__cron_job_id(c->queue->tenant, c->name, tick_ms, id);
    if (il__mem_job_find(m, op.tenant, id) != NULL)
        return true;
    op.in.job = (il_job_in){
        .id           = id,
        .data         = c->payload,
        .data_bytes   = c->payload_bytes,
        .priority     = c->priority,
        .run_at_ms    = tick_ms,
        .max_attempts = c->max_attempts,
    };
    struct mem_job *j = il__mem_job_new(m, &op, c->queue);
    if (j == NULL)
        return false;
    struct il__job_env env = il__mem_job_env(m, j);
    il__job_push(&j->row, &env, &op, ++m->ticket);
    il__mem_job_link(m, j, NULL);
    il__mem_queue_wake(m, c->queue);
    c->n_ticks++;
    c->last_ms = tick_ms;
    ++*n;
    return true;
}

/* Process one due entry. *n_used: its cost in the budget, *n_pushed: the jobs it pushed. */
static bool
tick_one(struct mem_store *m, struct mem_cron *c, uint32_t budget, uint32_t *n_used,
         uint32_t *n_pushed)
{
    bool ok = true;

    *n_used = *n_pushed = 0;
    cron_leave(m, c);
    while (ok && c->next_ms <= m->wall_ms && *n_used < budget) {
        int64_t next_ms = c->next_ms;
        int64_t tick_ms = il__cron_take(&c->cron, c->missed, m->wall_ms, &next_ms);
        ok              = tick_ms == IL__NEVER || push_tick(m, c, tick_ms, n_pushed);
        if (ok)
            c->next_ms = next_ms;
        ++*n_used;
    }
    cron_enter(m, c);
    return ok;
}

bool
il__mem_tick(struct mem_store *m, struct mem_queue *q, uint32_t budget, uint32_t *ret_n)
{
    bool ok = true;

    *ret_n = 0;
    while (ok && budget > 0 && il__mem_next_tick(m, q) <= m->wall_ms) {
        struct mem_cron *c = q != NULL
                                 ? container_of(q->crons.first, struct mem_cron, turn)
                                 : container_of(m->queues->cron_heap.first, struct mem_cron, due);
        uint32_t         n_used;
        uint32_t         n_pushed;
        ok = tick_one(m, c, budget, &n_used, &n_pushed);
        budget -= n_used;
        *ret_n += n_pushed;
    }
    return ok;
}
