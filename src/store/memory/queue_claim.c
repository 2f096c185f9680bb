/*
 * queue_claim.c: claims in the memory engine. A claim takes due jobs in claiming order, as far as
 * group limits and the rate allow.
 */
#include "core/limits.h"
#include "core/op.h"
#include "core/queue.h"
#include "store/memory/queue_internal.h"

/* ---- the rate: a ring of the times of starts ------------------------------------------------- */

/* The clock of rates: setting the wall clock does not allow more. */
static int64_t
rate_now_ms(const struct mem_store *m)
{
#ifdef IL_MUTANT_rate_by_wall_clock
    return m->wall_ms;
#endif
    return m->now_ms;
}

static int64_t
start_at(const struct mem_queue *q, size_t i)
{
    return q->starts[(q->i_start + i) % q->starts_size];
}

static void
forget_starts(const struct mem_store *m, struct mem_queue *q)
{
    while (q->n_starts > 0 && start_at(q, 0) + q->opts.rate_ms <= rate_now_ms(m)) {
        q->i_start = (q->i_start + 1) % q->starts_size;
        q->n_starts--;
    }
}

/* Room for n more. */
static bool
reserve_starts(struct mem_queue *q, size_t n)
{
    size_t size = MAX(q->starts_size, 16);

    if (q->n_starts + n <= q->starts_size)
        return true;
    while (size < q->n_starts + n)
        size *= 2;
    int64_t *ring = il__calloc(size, sizeof *ring);
    if (ring == NULL)
        return false;
    for (size_t i = 0; i < q->n_starts; i++)
        ring[i] = start_at(q, i);
    il__free(q->starts);
    q->starts      = ring;
    q->starts_size = size;
    q->i_start     = 0;
    return true;
}

static void
add_start(const struct mem_store *m, struct mem_queue *q)
{
    q->starts[(q->i_start + q->n_starts) % q->starts_size] = rate_now_ms(m);
    q->n_starts++;
}

/* When the rate will allow one more. */
static int64_t
rate_wait_ms(const struct mem_store *m, const struct mem_queue *q)
{
    size_t i = q->n_starts - (size_t)q->opts.rate_n;

    return start_at(q, i) + q->opts.rate_ms - rate_now_ms(m);
}

/* ---- before a claim -------------------------------------------------------------------------- */

static void
recover_dead(struct mem_store *m, struct mem_queue *q)
{
    for (unsigned i = 0; i < IL__RECOVER_MAX && q->running.first != NULL; i++) {
        struct mem_job *j = container_of(q->running.first, struct mem_job, turn);
        if (!il__job_expired(&j->row, m->now_ms))
            break;
        il__mem_job_recover(m, j);
    }
}

static void
promote_due(struct mem_store *m, struct mem_queue *q)
{
    for (unsigned i = 0; i < IL__PROMOTE_MAX && q->later.n > 0; i++) {
        struct mem_job *j =
            container_of(il__tree_first(&q->later, "", ""), struct mem_job, by_run_at);
        if (j->row.run_at_ms > m->wall_ms)
            break;
        il__mem_job_leave(m, j);
        il__job_promote(&j->row);
        il__mem_job_enter(m, j);
    }
}

/* Is this the worker's last claim? */
static bool
is_repeated(const struct mem_store *m, const il_op *op, const struct mem_worker *w)
{
    return w != NULL && m->now_ms - w->seen_ms < IL__WORKER_SEEN_MS &&
           strcmp(w->claim_id, op->in.job.id) == 0;
}

/* The reply was lost: return it again, as far as it is still valid. */
static void
claim_again(struct mem_store *m, il_op *op, const struct mem_worker *w)
{
    struct mem_room room;

    op->out.flags |= IL_OUT_RENEWED;
    op->status           = IL_EMPTY;
    op->out.remaining_ms = IL_FOREVER;
    for (const struct mem_job *j = w->jobs.head; j != NULL; j = j->links[LINK_BY].next) {
        if (il__job_expired(&j->row, m->now_ms))
            continue;
        if (!il__mem_result_room(op, j, SHOW_PAYLOAD, 0, &room)) {
            op->out.n_jobs = 0;
            op->status     = IL_NOMEM;
            return;
        }
        il__mem_show_job(m, op, j, SHOW_PAYLOAD, &room);
        op->status = IL_OK;
    }
}

/* ---- a claim --------------------------------------------------------------------------------- */

/* The next job in claiming order; it exists. */
static struct mem_job *
first_job(const struct mem_queue *q)
{
    const struct mem_group *g = container_of(q->turns.first, struct mem_group, turn);

    return container_of(g->ready.first, struct mem_job, turn);
}

/* The next job in claiming order becomes RUNNING. False: no memory, and it is still READY. */
static bool
claim_first(struct mem_store *m, il_op *op, struct mem_queue *q, struct mem_worker *w,
            struct mem_text *name)
{
    struct mem_job    *j   = first_job(q);
    struct il__job_env env = il__mem_job_env(m, j);
    struct mem_room    room;

    if (!il__mem_result_room(op, j, SHOW_PAYLOAD, strlen(name->text), &room))
        return false;
    if (op->out.n_jobs == 1) { /* the first that this claim gives */
        il__mem_worker_note(m, w);
        memcpy(w->claim_id, op->in.job.id, strlen(op->in.job.id) + 1);
    }
    il__mem_job_leave(m, j);
    il__job_claim(&j->row, &env, op, il__fence_next(&m->fence));
    il__mem_job_enter(m, j);
    il__mem_text_unref(j->message);
    il__mem_text_unref(j->worker);
    j->message = NULL;
    j->worker  = il__mem_text_ref(name);
    j->by      = w;
    il__mem_jobs_add(&w->jobs, j, LINK_BY);
    if (q->opts.rate_n != IL_FOREVER)
        add_start(m, q);
    il__mem_show_job(m, op, j, SHOW_PAYLOAD, &room);
    il__mem_job_wake(m, j);
    return true;
}

/* Nothing was claimed: when might a job become available by itself? */
static void
answer_empty(struct mem_store *m, il_op *op, const struct mem_queue *q, bool rated)
{
    int64_t wait_ms = il__wait_until(il__mem_next_tick(m, q), m->wall_ms);

    if (q->later.n > 0)
        wait_ms =
            il__wait_min(wait_ms, il__wait_until((int64_t)il__tree_first(&q->later, "", "")->number,
                                                 m->wall_ms));
    if (rated)
        wait_ms = il__wait_min(wait_ms, rate_wait_ms(m, q));
    op->status           = IL_EMPTY;
    op->out.remaining_ms = wait_ms;
}

static void
claim_jobs(struct mem_store *m, il_op *op, struct mem_queue *q, struct mem_worker *w,
           struct mem_text *name)
{
    uint32_t limit   = op->in.job.limit;
    uint32_t n       = 0;
    uint64_t n_bytes = 0;
    bool     ok      = true;

    if (q->opts.rate_n != IL_FOREVER)
        forget_starts(m, q);
    uint32_t left = il__queue_rate_left(&q->opts, q->n_starts, limit);
    if (q->opts.rate_n != IL_FOREVER && !reserve_starts(q, left)) {
        op->status = IL_NOMEM;
        return;
    }
    while (ok && n < left && q->turns.first != NULL &&
           il__claim_fits(op, first_job(q)->payload_bytes, &n_bytes)) {
        ok = claim_first(m, op, q, w, name);
        n += ok;
    }
    if (!ok && n == 0) {
        op->status = IL_NOMEM;
        return;
    }
    size_t n_ready = q->in_state[IL_JOB_READY].n;
    if (n < limit && n_ready > 0)
        op->out.flags |= IL_OUT_LIMITED;
    op->status = IL_OK;
    if (n == 0) {
        il__mem_worker_note(m, w);
        answer_empty(m, op, q, left == 0 && n_ready > 0);
    }
}

void
il__mem_claim(struct mem_store *m, il_op *op)
{
    struct mem_queue          *q    = il__mem_queue_made(m, op);
    struct mem_text *AUTO_TEXT name = NULL;
    uint32_t                   n_ticks;

    if (q == NULL) {
        op->status = IL_NOT_FOUND;
        return;
    }
    if (il__queue_optimistic(&q->opts))
        op->out.flags |= IL_OUT_OPTIMISTIC;
    struct mem_worker *w = il__mem_worker_find(m, q, op->holder);
    if ((op->flags & IL_CLAIM_LEAVE) != 0) {
        if (w != NULL)
            il__mem_worker_free(m, w);
        op->status           = IL_EMPTY;
        op->out.remaining_ms = IL_FOREVER;
        return;
    }
    if (is_repeated(m, op, w)) {
        claim_again(m, op, w);
        return;
    }
    bool ok = il__mem_tick(m, q, IL__TICKS_MAX, &n_ticks);
    recover_dead(m, q);
    promote_due(m, q);
    w    = il__mem_worker_get(m, q, op->holder);
    name = il__mem_text_new(op->holder);
    if (!ok || w == NULL || name == NULL) {
        op->status = IL_NOMEM;
        return;
    }
    if (q->paused) {
        il__mem_worker_note(m, w);
        op->status           = IL_EMPTY;
        op->out.remaining_ms = IL_FOREVER;
        op->out.flags |= IL_OUT_PAUSED;
        return;
    }
    claim_jobs(m, op, q, w, name);
}
