/*
 * queue.c: queues and their settings in the memory engine, the dispatch of the family's ops, and
 * its part of a sweep. The rules are in src/core/queue.md, the tables in queue_internal.h.
 */
#include "store/memory/queue.h"

#include "base/arena.h"
#include "core/cursor.h"
#include "core/limits.h"
#include "core/op.h"
#include "core/queue.h"
#include "store/memory/queue_internal.h"

/* ---- queues ---------------------------------------------------------------------------------- */

/* Room for a queue in the results, with its strings; the numbers follow once it is in its final
 * state. */
static il_queue_info *
show_names(il_op *op, const struct mem_queue *q, const char *reason)
{
    il_queue_info info = {
        .tenant = il__op_strdup(op, q->tenant),
        .name   = il__op_strdup(op, q->name),
        .reason = il__op_strdup(op, reason),
    };

    if (info.tenant == NULL || info.name == NULL || info.reason == NULL)
        return NULL;
    il_queue_info *slot =
        il__arena_append(&op->mem, &op->out.queues, &op->out.n_queues, sizeof *slot);
    if (slot != NULL)
        *slot = info;
    return slot;
}

static uint32_t
count_workers(const struct mem_store *m, const struct mem_queue *q)
{
    uint32_t n = 0;

    for (const struct mem_worker *w                                  = m->queues->newest;
         w != NULL && m->now_ms - w->seen_ms < IL__WORKER_SEEN_MS; w = w->prev)
        n += w->queue == q;
    return n;
}

/* SCHEDULED jobs whose run_at has passed, up to the number that the next claim makes ready. */
static size_t
count_due(const struct mem_store *m, const struct mem_queue *q)
{
    const struct il__tree_node *node = il__tree_first(&q->later, "", "");
    size_t                      n    = 0;

    for (; node != NULL && (int64_t)node->number <= m->wall_ms && n < IL__PROMOTE_MAX; n++)
        node = il__tree_next(&q->later, node);
    return n;
}

static void
show_numbers(const struct mem_store *m, const struct mem_queue *q, il_queue_info *info)
{
    size_t  n_due  = count_due(m, q);
    int64_t oldest = IL__NEVER;

    if (q->ages.first != NULL)
        oldest = q->ages.first->at;
    if (n_due > 0)
        oldest = MIN(oldest, (int64_t)il__tree_first(&q->later, "", "")->number);
    info->paused      = q->paused;
    info->n_workers   = MIN(count_workers(m, q), IL_COUNT_MAX);
    info->opts        = q->opts;
    info->n_scheduled = q->in_state[IL_JOB_SCHEDULED].n - n_due;
    info->n_ready     = q->in_state[IL_JOB_READY].n + n_due;
    info->n_running   = q->in_state[IL_JOB_RUNNING].n;
    info->n_failed    = q->in_state[IL_JOB_FAILED].n;
    info->oldest_ms   = oldest != IL__NEVER ? MAX(m->wall_ms - oldest, 0) : 0;
    il__totals_show(&q->totals, info);
}

static const char *
reason_of(const struct mem_queue *q)
{
    return q->reason != NULL ? q->reason->text : "";
}

static void
set_queue(struct mem_store *m, il_op *op)
{
    struct mem_queue *q    = il__mem_queue_get(m, op->tenant, op->key);
    il_queue_info    *info = q != NULL ? show_names(op, q, reason_of(q)) : NULL;

    if (info == NULL) {
        op->status = IL_NOMEM;
        return;
    }
    q->made = true;
    il__queue_merge(&q->opts, &op->in.queue);
    if (q->opts.rate_n == IL_FOREVER)
        q->n_starts = 0;
    il__mem_queue_regroup(q);
    il__mem_queue_wake(m, q);
    show_numbers(m, q, info);
    op->status = IL_OK;
}

static void
pause_queue(struct mem_store *m, il_op *op)
{
    struct mem_queue          *q      = il__mem_queue_made(m, op);
    bool                       resume = (op->flags & IL_RESUME) != 0;
    const char                *text   = op->in.job.text != NULL && !resume ? op->in.job.text : "";
    struct mem_text *AUTO_TEXT reason = NULL;

    if (q == NULL) {
        op->status = IL_NOT_FOUND;
        return;
    }
    reason              = il__mem_text_new(text);
    il_queue_info *info = reason != NULL ? show_names(op, q, text) : NULL;
    if (info == NULL) {
        op->status = IL_NOMEM;
        return;
    }
    il__mem_text_unref(q->reason);
    q->reason = TAKE(reason);
    q->paused = !resume;
    if (resume)
        il__mem_queue_wake(m, q);
    show_numbers(m, q, info);
    op->status = IL_OK;
}

const struct il__tree_node *
il__mem_next_name(const struct il__tree *t, const il_op *op, const char *after)
{
    const char                 *prefix = op->in.list.prefix != NULL ? op->in.list.prefix : "";
    const struct il__tree_node *node;

    if (after != NULL && strcmp(after, prefix) >= 0)
        node = il__tree_after(t, op->tenant, after, UINT64_MAX);
    else
        node = il__tree_first(t, op->tenant, prefix);
    return node != NULL && strcmp(node->first, op->tenant) == 0 &&
                   strncmp(node->second, prefix, strlen(prefix)) == 0
               ? node
               : NULL;
}

/* The next queue by name after `after` (NULL = the first). A queue that only a schedule names has
 * not been created yet. */
static const struct mem_queue *
next_by_name(const struct mem_store *m, const il_op *op, const char *after)
{
    const struct il__tree_node *node = il__mem_next_name(&m->queues->by_name, op, after);

    while (node != NULL && !const_container_of(node, struct mem_queue, by_name)->made)
        node = il__mem_next_name(&m->queues->by_name, op, node->second);
    return node != NULL ? const_container_of(node, struct mem_queue, by_name) : NULL;
}

static void
list_queues(struct mem_store *m, il_op *op)
{
    const char *after = NULL;
    uint64_t    number;

    if (op->in.list.cursor != NULL)
        CHECK(il__cursor_parse(op->in.list.cursor, &after, &number));
    op->status                = IL_OK;
    const struct mem_queue *q = next_by_name(m, op, after);
    for (; q != NULL && op->out.n_queues < op->in.list.limit; q = next_by_name(m, op, q->name)) {
        il_queue_info *info = show_names(op, q, reason_of(q));
        if (info == NULL) {
            op->status = IL_NOMEM;
            return;
        }
        show_numbers(m, q, info);
        after = info->name;
    }
    if (q != NULL && after != NULL) {
        op->out.next = il__op_cursor(op, after, 0);
        if (op->out.next == NULL)
            op->status = IL_NOMEM;
    }
}

/* ---- the family ------------------------------------------------------------------------------ */

void
il__mem_queue_op(struct mem_store *m, il_op *op)
{
    static void (*const ops[IL_OP_COUNT])(struct mem_store *, il_op *) = {
        [IL_OP_JOB_PUSH]      = il__mem_push,
        [IL_OP_JOB_CLAIM]     = il__mem_claim,
        [IL_OP_JOB_HEARTBEAT] = il__mem_job_claimed_op,
        [IL_OP_JOB_FINISH]    = il__mem_job_claimed_op,
        [IL_OP_JOB_FAIL]      = il__mem_job_claimed_op,
        [IL_OP_JOB_SNOOZE]    = il__mem_job_claimed_op,
        [IL_OP_JOB_CANCEL]    = il__mem_job_cancel,
        [IL_OP_JOB_RETRY]     = il__mem_job_retry,
        [IL_OP_JOB_SEAL]      = il__mem_job_seal,
        [IL_OP_JOB_GET]       = il__mem_job_get,
        [IL_OP_JOB_LIST]      = il__mem_job_list,
        [IL_OP_JOB_PURGE]     = il__mem_job_purge,
        [IL_OP_QUEUE_SET]     = set_queue,
        [IL_OP_QUEUE_PAUSE]   = pause_queue,
        [IL_OP_QUEUE_LIST]    = list_queues,
        [IL_OP_CRON_SET]      = il__mem_cron_set,
        [IL_OP_CRON_REMOVE]   = il__mem_cron_remove,
        [IL_OP_CRON_LIST]     = il__mem_cron_list,
    };

    CHECK(ops[op->type] != NULL);
    ops[op->type](m, op);
}

/* ---- sweep ----------------------------------------------------------------------------------- */

static struct mem_job *
first_job(const struct il__heap *heap)
{
    return heap->first != NULL ? container_of(heap->first, struct mem_job, due) : NULL;
}

static bool
has_dead_claim(const struct mem_store *m)
{
    const struct mem_job *j = first_job(&m->queues->running);

    return j != NULL && il__job_expired(&j->row, m->now_ms);
}

static bool
has_old_job(const struct mem_store *m)
{
    const struct mem_job *j = first_job(&m->queues->ended);

    return j != NULL && j->row.purge_at_ms <= m->wall_ms;
}

static bool
has_gone_worker(const struct mem_store *m)
{
    const struct mem_worker *w = m->queues->oldest;

    return w != NULL && m->now_ms - w->seen_ms >= IL__WORKER_SEEN_MS;
}

void
il__mem_queue_sweep(struct mem_store *m, il_op *op)
{
    uint32_t limit   = op->in.list.limit;
    uint32_t n_ticks = 0;

    for (uint32_t n = 0; n < limit && has_dead_claim(m); n++) {
        il__mem_job_recover(m, first_job(&m->queues->running));
        op->out.sweep.n_jobs++;
    }
    bool ok = il__mem_tick(m, NULL, limit, &n_ticks);
    op->out.sweep.n_ticks += n_ticks;
    for (uint32_t n = 0; n < limit && has_old_job(m); n++) {
        il__mem_job_delete(m, first_job(&m->queues->ended));
        op->out.sweep.n_purged++;
    }
    for (uint32_t n = 0; n < limit && has_gone_worker(m); n++)
        il__mem_worker_free(m, m->queues->oldest);
    /* A tick that ran out of memory is left for the next sweep, not repeated in this one. */
    if (has_dead_claim(m) || has_old_job(m) || (ok && il__mem_next_tick(m, NULL) <= m->wall_ms))
        op->out.flags |= IL_OUT_MORE;
}

bool
il__mem_queue_overdue(const struct mem_store *m)
{
    return has_dead_claim(m) || has_old_job(m) || has_gone_worker(m) ||
           il__mem_next_tick(m, NULL) <= m->wall_ms;
}
