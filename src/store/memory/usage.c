/*
 * usage.c: adds up what a tenant stores, one page of rows at a time; see core/usage.h. Cached
 * values and idempotency keys are counted in cache.c and once.c.
 */
#include "core/usage.h"

#include "core/op.h"
#include "store/memory/cache.h"
#include "store/memory/once.h"
#include "store/memory/queue_internal.h"
#include "store/memory/run.h"

/* ---- jobs ------------------------------------------------------------------------------------ */

#define SEQ_BITS 53 /* the state of a job is above, its seq below */

/* The next job of a queue after the place's number: by state, then by seq. */
static const struct mem_job *
next_job(const struct mem_queue *q, const struct il__usage_place *place)
{
    uint64_t state = place->number >> SEQ_BITS;
    uint64_t seq   = place->number & ((UINT64_C(1) << SEQ_BITS) - 1);

    for (; state < IL_JOB_STATE_COUNT; state++, seq = 0) {
        const struct il__tree_node *node = il__tree_after(&q->in_state[state], "", "", seq);
        if (node != NULL)
            return const_container_of(node, struct mem_job, by_seq);
    }
    return NULL;
}

/* The queue of the place, or the first one after it. */
static const struct mem_queue *
next_queue(const struct mem_store *m, const char *tenant, struct il__usage_place *place)
{
    const struct il__tree_node *node = il__tree_first(&m->queues->by_name, tenant, place->name);

    if (node == NULL || strcmp(node->first, tenant) != 0)
        return NULL;
    const struct mem_queue *q = const_container_of(node, struct mem_queue, by_name);
    if (strcmp(q->name, place->name) != 0)
        place->number = 0;
    place->name = q->name;
    return q;
}

/* A queue counts as one visited row, because a tenant may have many empty ones. */
static uint32_t
jobs_usage(const struct mem_store *m, il_op *op, struct il__usage_place *place, uint32_t n)
{
    const struct mem_queue *q = next_queue(m, op->tenant, place);
    uint32_t                i = 0;

    if (q == NULL)
        return 0;
    while (i < n) {
        const struct mem_job *j = next_job(q, place);
        i++;
        if (j != NULL) {
            place->number = (uint64_t)j->row.state << SEQ_BITS | j->row.seq;
            op->out.usage.n_rows++;
            op->out.usage.n_bytes += strlen(j->id) + j->payload_bytes + j->result_bytes;
            continue;
        }
        const struct il__tree_node *node = il__tree_next(&m->queues->by_name, &q->by_name);
        if (node == NULL || strcmp(node->first, op->tenant) != 0)
            return i - 1;
        q      = const_container_of(node, struct mem_queue, by_name);
        *place = (struct il__usage_place){ .kind = place->kind, .name = q->name };
    }
    return i;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* By state, then by seq. The place's name is one digit, the state; its number is the seq. */
static uint32_t
runs_usage(const struct mem_store *m, il_op *op, struct il__usage_place *place, uint32_t n)
{
    static const char *const names[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" };
    int                      state   = place->name[0] >= '0' ? place->name[0] - '0' : 0;
    uint32_t                 i       = 0;

    _Static_assert(IL_RUN_STATE_COUNT <= ARRAY_LEN(names), "a state is a digit");
    while (state < IL_RUN_STATE_COUNT && i < n) {
        const struct il__tree_node *node =
            il__tree_after(&m->runs->in_state[state], op->tenant, "", place->number);
        if (node == NULL || strcmp(node->first, op->tenant) != 0) {
            state++;
            place->number = 0;
            continue;
        }
        const struct mem_run *r = const_container_of(node, struct mem_run, by_state);
        place->name             = names[state];
        place->number           = r->seq;
        op->out.usage.n_rows++;
        op->out.usage.n_bytes += strlen(r->id) + strlen(r->meta) +
                                 MIN(r->log.n_bytes, IL_LOG_BYTES_MAX) +
                                 (r->text != NULL ? strlen(r->text) : 0);
        i++;
    }
    return i;
}

/* ---- schedules ---------------------------------------------------------------------- */

static uint32_t
crons_usage(const struct mem_store *m, il_op *op, struct il__usage_place *place, uint32_t n)
{
    uint32_t i = 0;

    for (; i < n; i++) {
        const struct il__tree_node *node =
            il__tree_after(&m->queues->cron_names, op->tenant, place->name, 0);
        if (node == NULL || strcmp(node->first, op->tenant) != 0)
            break;
        const struct mem_cron *c = const_container_of(node, struct mem_cron, by_name);
        place->name              = c->name;
        op->out.usage.n_rows++;
        op->out.usage.n_bytes += strlen(c->name) + strlen(c->schedule) + c->payload_bytes;
    }
    return i;
}

/* ---- all of them ----------------------------------------------------------------------------- */

void
il__mem_usage(struct mem_store *m, il_op *op)
{
    static uint32_t (*const kinds[IL__USAGE_KINDS])(const struct mem_store *, il_op *,
                                                    struct il__usage_place *, uint32_t) = {
        [IL__USAGE_CACHE] = il__mem_cache_usage, [IL__USAGE_ONCE] = il__mem_once_usage,
        [IL__USAGE_JOBS] = jobs_usage,           [IL__USAGE_RUNS] = runs_usage,
        [IL__USAGE_CRONS] = crons_usage,
    };
    struct il__usage_place place = il__usage_place(op);
    uint32_t               left  = op->in.list.limit;

    op->status = IL_OK;
    for (; place.kind < IL__USAGE_KINDS;
         place = (struct il__usage_place){ .kind = place.kind + 1, .name = "" }) {
        left -= kinds[place.kind](m, op, &place, left);
        if (left > 0)
            continue;
        if (!il__usage_next(op, &place)) {
            il__op_reset(op);
            op->status = IL_NOMEM;
        }
        return;
    }
}
