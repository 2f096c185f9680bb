/*
 * run.c: stage, finish, cancel and log of runs in the memory engine, and their sweep. The rules are
 * in src/core/runs.md. An op reserves memory and builds its reply before it changes anything, so a
 * failed op leaves everything unchanged.
 */
#include "store/memory/run.h"

#include "core/lease.h"
#include "core/limits.h"
#include "core/op.h"

/* Expire the key of a run; returns it, or NULL if it has no holder or waiter. The caller drops it
 * if it is idle. */
static struct mem_key *
expire_key(struct mem_store *m, const struct mem_run *r)
{
    struct mem_key *k =
        il__mem_key_find(m, il__mem_hash_key(m, r->tenant, r->key), r->tenant, r->key);

    if (k != NULL)
        il__mem_expire(m, k, NULL);
    return k;
}

/* ---- the log --------------------------------------------------------------------------------- */

/* Reserve room for n more bytes, of which the last IL_LOG_BYTES_MAX will be kept. */
static bool
log_reserve(struct mem_log *log, size_t n)
{
    uint64_t wanted   = MIN(log->n_bytes + n, (uint64_t)IL_LOG_BYTES_MAX);
    size_t   capacity = MAX(log->capacity, 256);

    if (n == 0 || wanted <= log->capacity)
        return true;
    while (capacity < wanted)
        capacity *= 2;
    unsigned char *grown = il__realloc(log->data, capacity);
    if (grown == NULL)
        return false;
    log->data     = grown;
    log->capacity = capacity;
    return true;
}

/* There is room. A capacity below the maximum was never filled, so growing moved nothing. */
static void
log_append(struct mem_log *log, const void *data, size_t n)
{
    const unsigned char *p = data;

    while (n > 0) {
        size_t at   = (size_t)(log->n_bytes % log->capacity);
        size_t part = MIN(n, log->capacity - at);
        memcpy(log->data + at, p, part);
        log->n_bytes += part;
        p += part;
        n -= part;
    }
}

static void
read_log(struct mem_store *m, il_op *op, const struct mem_run *r)
{
    const struct mem_log *log = &r->log;
    uint64_t first = log->n_bytes > IL_LOG_BYTES_MAX ? log->n_bytes - IL_LOG_BYTES_MAX : 0;
    uint64_t from  = MAX(op->in.run.offset, first);
    size_t   n =
        from < log->n_bytes ? (size_t)MIN(log->n_bytes - from, (uint64_t)IL__LOG_READ_BYTES) : 0;

    if (il__mem_run_show(m, op, r) == NULL)
        return;
    char *text = il__op_alloc(op, n + 1);
    if (text == NULL) {
        op->status = IL_NOMEM;
        return;
    }
    for (size_t i = 0; i < n;) {
        size_t at   = (size_t)((from + i) % log->capacity);
        size_t part = MIN(n - i, log->capacity - at);
        memcpy(text + i, log->data + at, part);
        i += part;
    }
    text[n]             = '\0';
    op->out.value       = text;
    op->out.value_bytes = n;
    op->out.offset      = from;
    op->status          = IL_OK;
}

/* ---- stage, finish, cancel ------------------------------------------------------------------- */

static bool
is_current(const il_op *op, const struct mem_run *r)
{
#ifdef IL_MUTANT_run_fence_ignored
    return r->state == IL_RUN_RUNNING;
#endif
    return r->state == IL_RUN_RUNNING && r->fence == op->fence &&
           strcmp(r->holder, op->holder) == 0;
}

/* Is it a stage or finish by the run's own holder, and which part of its log is new? If not, sets
 * the op's reply. */
static bool
may_write(struct mem_store *m, il_op *op, const struct mem_run *r, struct il__log_part *ret)
{
    bool current = is_current(op, r);

    if (current && il__run_log_part(op, r->log.n_bytes, ret))
        return true;
    if (il__mem_run_show(m, op, r) == NULL)
        return false;
    if (current)
        il__run_answer_gap(op);
    else
        il__run_answer_not_current(op, r->finished);
    return false;
}

static void
stage(struct mem_store *m, il_op *op, struct mem_run *r)
{
    const il_run_in    *in = &op->in.run;
    struct mem_run_look l  = il__mem_run_look(m, r);
    struct il__log_part log;
    char               *text;

    if (!may_write(m, op, r, &log))
        return;
    if (in->stage != NULL)
        l.info.stage = in->stage;
    if (in->progress >= 0)
        l.info.progress = in->progress;
    l.info.log_bytes += log.n_bytes;
    l.info.updated_at_ms = m->wall_ms;
    text                 = il__strdup(l.info.stage);
    if (text == NULL || !log_reserve(&r->log, log.n_bytes) ||
        il__mem_run_show_look(m, op, &l) == NULL) {
        il__free(text);
        op->status = IL_NOMEM;
        return;
    }
    il__free(r->stage);
    r->stage    = text;
    r->progress = l.info.progress;
    log_append(&r->log, log.data, log.n_bytes);
    il__mem_run_changed(m, r);
    op->status = IL_OK;
    if (r->cancelled)
        il__run_tell_stop(op, r->error);
}

/* End the hold of a run that has ended in this op, and hand the key to the next waiter. */
static void
leave(struct mem_store *m, struct mem_hold *h, enum il__lease_event event)
{
    struct mem_key *k = h->key;

    il__mem_hold_end(m, h, il__lease_step(h->state, event));
    il__mem_offer_next(m, k, NULL);
}

static void
finish(struct mem_store *m, il_op *op, struct mem_run *r)
{
    const il_run_in    *in    = &op->in.run;
    enum il__run_event  event = il__run_finish_event(in->state);
    struct mem_run_look l     = il__mem_run_look(m, r);
    struct il__log_part log;

    if (!may_write(m, op, r, &log))
        return;
    char *text           = il__strdup(in->error != NULL ? in->error : "");
    l.info.state         = il__run_end(r->state, event, r->cancelled, text, &l.error);
    l.info.ended_at_ms   = m->wall_ms;
    l.info.updated_at_ms = m->wall_ms;
    l.info.log_bytes += log.n_bytes;
    if (text == NULL || !log_reserve(&r->log, log.n_bytes) ||
        il__mem_run_show_look(m, op, &l) == NULL) {
        il__free(text);
        op->status = IL_NOMEM;
        return;
    }
    struct mem_hold *h = r->hold;
    log_append(&r->log, log.data, log.n_bytes);
    r->finished = true;
    il__mem_run_end(m, r, event, text);
    leave(m, h, IL__EV_RELEASE);
    op->status = IL_OK;
}

/* End the hold of a pending run that is cancelled; it was not confirmed, so it is not
 * remembered. */
enum il__lease_event
il__mem_run_leave_event(const struct mem_hold *h)
{
    return h->state == IL_LEASE_WAITING ? IL__EV_LEAVE : IL__EV_BREAK_NOW;
}

static void
cancel(struct mem_store *m, il_op *op, struct mem_run *r)
{
    struct mem_run_look l    = il__mem_run_look(m, r);
    char               *text = il__strdup(op->in.run.error);
    struct mem_hold    *h    = r->hold;

    if (text != NULL && r->state == IL_RUN_PENDING) {
        l.info.state       = il__run_end(r->state, IL__RUN_EV_CANCEL, false, text, &l.error);
        l.info.ended_at_ms = l.info.updated_at_ms = m->wall_ms;
    } else if (text != NULL && r->state == IL_RUN_RUNNING && !r->cancelled) {
        l.info.cancelled     = 1;
        l.error              = (struct il__run_error){ "", text, "" };
        l.info.updated_at_ms = m->wall_ms;
    }
    if (text == NULL || il__mem_run_show_look(m, op, &l) == NULL) {
        il__free(text);
        op->status = IL_NOMEM;
        return;
    }
    op->status = IL_OK;
    if (r->state == IL_RUN_RUNNING) {
        il__mem_run_stop(m, r, (struct il__run_error){ "", text, "" }, text);
    } else if (r->state == IL_RUN_PENDING) {
        il__mem_run_end(m, r, IL__RUN_EV_CANCEL, text);
        if (h != NULL) {
            il__board_wake(&m->board, il__board_slot(r->tenant, r->key, h->holder));
            leave(m, h, il__mem_run_leave_event(h));
        }
    } else {
        il__free(text);
    }
}

/* ---- the ops --------------------------------------------------------------------------------- */

/* An op that changes a run, named by its id. */
static void
change(struct mem_store *m, il_op *op, struct mem_run *r)
{
    struct mem_key *k = expire_key(m, r);

    if (op->type == IL_OP_RUN_STAGE)
        stage(m, op, r);
    else if (op->type == IL_OP_RUN_FINISH)
        finish(m, op, r);
    else
        cancel(m, op, r);
    if (k != NULL)
        il__mem_key_drop_if_idle(m, k);
}

void
il__mem_run_op(struct mem_store *m, il_op *op)
{
    if (op->type == IL_OP_RUN_START) {
        il__mem_run_start(m, op);
        return;
    }
    if (op->type == IL_OP_RUN_LIST) {
        il__mem_run_list(m, op);
        return;
    }
    struct mem_run *r = il__mem_run_find(m, op->tenant, op->in.run.id);
    if (r == NULL)
        op->status = IL_NOT_FOUND;
    else if (op->type == IL_OP_RUN_GET)
        il__mem_run_get(m, op, r);
    else if (op->type == IL_OP_RUN_LOG)
        read_log(m, op, r);
    else
        change(m, op, r);
}

void
il__mem_run_sweep(struct mem_store *m, il_op *op)
{
    for (uint32_t n = 0; n < op->in.list.limit && il__mem_run_rate_drop(m); n++)
        ; /* they do not count as purged: only results do */
    for (uint32_t n = 0; n < op->in.list.limit && il__mem_run_purge(m); n++)
        op->out.sweep.n_purged++;
    if (il__mem_run_overdue(m))
        op->out.flags |= IL_OUT_MORE;
}
