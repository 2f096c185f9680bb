/*
 * run.c: stage, finish and cancel of runs in the SQLite engine, and their sweep. The rules are in
 * src/core/runs.md.
 *
 * Each op finds its run, expires the run's key, decides and writes inside the batch's BEGIN
 * IMMEDIATE transaction. That admits only one writer, so what was read is still true when the op
 * acts on it.
 */
#include "store/sqlite/run.h"

#include "base/arena.h"
#include "core/lease.h"
#include "core/op.h"

/* ---- stage, finish, cancel ------------------------------------------------------------------- */

static bool
is_current(const il_op *op, const struct sq_run *r)
{
#ifdef IL_MUTANT_run_fence_ignored
    return r->info.state == IL_RUN_RUNNING;
#endif
    return r->info.state == IL_RUN_RUNNING && r->info.fence == op->fence &&
           strcmp(r->info.holder, op->holder) == 0;
}

/* Is it a stage or finish by the run's own holder, and which part of its log is new? If not, sets
 * the op's reply. */
static bool
may_write(struct sq_store *s, il_op *op, const struct sq_run *r, struct il__log_part *ret,
          bool *ret_may)
{
    bool current = is_current(op, r);

    *ret_may = current && il__run_log_part(op, r->info.log_bytes, ret);
    if (*ret_may)
        return true;
    if (!il__sq_run_show(&s->conn, &s->state, op, r))
        return false;
    if (current)
        il__run_answer_gap(op);
    else
        il__run_answer_not_current(op, r->finished);
    return true;
}

static bool
stage(struct sq_store *s, il_op *op, struct sq_run *r)
{
    const il_run_in    *in = &op->in.run;
    struct il__log_part log;
    bool                may;

    if (!may_write(s, op, r, &log, &may))
        return false;
    if (!may)
        return true;
    if (in->stage != NULL)
        r->info.stage = in->stage;
    if (in->progress >= 0)
        r->info.progress = in->progress;
    if (!il__sq_run_log_append(s, r, &log) || !il__sq_run_change(s, r) ||
        !il__sq_run_show(&s->conn, &s->state, op, r))
        return false;
    op->status = IL_OK;
    if (r->info.cancelled)
        il__run_tell_stop(op, r->error);
    return true;
}

/* The lease of a key with this fence, or the waiter with this ticket; NULL in a damaged file. */
static struct sq_hold *
find_number(const struct sq_holds *holds, uint64_t number)
{
    for (size_t i = 0; i < holds->n; i++) {
        if (!holds->items[i].gone && holds->items[i].number == number)
            return &holds->items[i];
    }
    return NULL;
}

/* End the lease of a run that has ended, and hand the key to the next waiter. */
static bool
release(struct sq_store *s, struct sq_key *k, uint64_t fence)
{
    struct sq_hold *h = find_number(&k->leases, fence);

    if (h == NULL)
        return true;
    h->run = 0;
    return il__sq_lease_end(s, k, h, il__lease_step(h->state, IL__EV_RELEASE)) &&
           il__sq_offer_next(s, k, NULL);
}

static bool
finish(struct sq_store *s, il_op *op, struct sq_run *r, struct sq_key *k)
{
    const il_run_in    *in    = &op->in.run;
    enum il__run_event  event = il__run_finish_event(in->state);
    struct il__log_part log;
    bool                may;

    if (!may_write(s, op, r, &log, &may))
        return false;
    if (!may)
        return true;
    r->finished = true;
    op->status  = IL_OK;
    return il__sq_run_log_append(s, r, &log) && il__sq_run_end(s, r, event, in->error) &&
           il__sq_run_show(&s->conn, &s->state, op, r) && release(s, k, r->info.fence);
}

/* An unconfirmed offer: its end is not remembered. */
bool
il__sq_run_leave(struct sq_store *s, struct sq_key *k, const struct sq_run *r)
{
    struct sq_hold *w = NULL;

    if (r->info.holder[0] != '\0' && !il__sq_waiters_find(s, k, r->info.holder, &w))
        return false;
    if (w != NULL && w->run == r->info.seq)
        return il__sq_wake(s, il__board_slot(k->tenant, k->key, w->holder)) &&
               il__sq_waiter_end(s, k, w);
    for (size_t i = 0; i < k->leases.n; i++) {
        struct sq_hold *h = &k->leases.items[i];
        if (h->gone || h->run != r->info.seq)
            continue;
        h->run = 0;
        return il__sq_wake(s, il__board_slot(k->tenant, k->key, h->holder)) &&
               il__sq_lease_end(s, k, h, il__lease_step(h->state, IL__EV_BREAK_NOW));
    }
    return true; /* a slot */
}

static bool
cancel(struct sq_store *s, il_op *op, struct sq_run *r, struct sq_key *k)
{
    const char *reason = op->in.run.error;
    bool        ok     = true;

    if (r->info.state == IL_RUN_RUNNING)
        ok = il__sq_run_stop(s, r, (struct il__run_error){ "", reason, "" });
    else if (r->info.state == IL_RUN_PENDING)
        ok = il__sq_run_end(s, r, IL__RUN_EV_CANCEL, reason) && il__sq_run_leave(s, k, r) &&
             il__sq_offer_next(s, k, NULL);
    op->status = IL_OK;
    return ok && il__sq_run_show(&s->conn, &s->state, op, r);
}

/* ---- the ops --------------------------------------------------------------------------------- */

/* An op that changes a run, named by its id. */
static bool
change(struct sq_store *s, il_op *op)
{
    struct sq_conn *c      = &s->conn;
    il_sweep_out    counts = { 0 };
    struct sq_run   r;
    bool            found;

    if (!il__sq_run_find(c, &s->scratch, op->tenant, op->in.run.id, &r, &found))
        return false;
    op->status = IL_NOT_FOUND;
    if (!found)
        return true;
    struct sq_key k = { .tenant = op->tenant, .key = r.info.key };
    if (!il__sq_key_load(s, &k) || !il__sq_expire(s, &k, &counts))
        return false;
    if (counts.n_expired + counts.n_dropped > 0 && /* then it may have ended just now */
        !il__sq_run_find(c, &s->scratch, op->tenant, op->in.run.id, &r, &found))
        return false;
    if (op->type == IL_OP_RUN_STAGE)
        return stage(s, op, &r);
    return op->type == IL_OP_RUN_FINISH ? finish(s, op, &r, &k) : cancel(s, op, &r, &k);
}

bool
il__sq_run_op(struct sq_store *s, il_op *op)
{
    if (!il__op_writes(op->type))
        return il__sq_run_read(&s->conn, &s->state, &s->scratch, op);
    return op->type == IL_OP_RUN_START ? il__sq_run_start(s, op) : change(s, op);
}

/* ---- the sweep ------------------------------------------------------------------------------- */

static bool
remove_run(struct sq_store *s, uint64_t seq)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_run_remove);

    return il__sq_bind_int(c, stmt, 1, (int64_t)seq) && il__sq_stmt_run(c, stmt) &&
           il__sq_run_log_remove(s, seq);
}

/* The next run past its retention; *ret_seq is 0 if there is none. */
static bool
next_due(struct sq_store *s, uint64_t *ret_seq)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_run_due);

    *ret_seq = 0;
    if (!il__sq_bind_int(c, row, 1, s->state.wall_ms) || !il__sq_bind_int(c, row, 2, 1))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    *ret_seq = (uint64_t)sqlite3_column_int64(row, 0);
    return il__sq_stmt_run(c, row);
}

/* Delete slots of rates that are in no window. They do not count as purged: only results do. */
static bool
sweep_rates(struct sq_store *s, uint32_t limit)
{
    struct sq_conn *c = &s->conn;

#ifdef IL_MUTANT_rates_kept
    limit = 0;
#endif
    for (enum il__rate_window w = IL__RATE_MINUTE; w < IL__RATE_COUNT; w++) {
        sqlite3_stmt *stmt = il__sq_use(c, SQ_rate_purge);
        if (!il__sq_bind_int(c, stmt, 1, il__rate_span_ms(w)) ||
            !il__sq_bind_int(c, stmt, 2, il__rate_old(w, s->state.now_ms)) ||
            !il__sq_bind_int(c, stmt, 3, limit) || !il__sq_stmt_run(c, stmt))
            return false;
    }
    return true;
}

bool
il__sq_run_sweep(struct sq_store *s, il_op *op)
{
    uint64_t seq;

    if (!sweep_rates(s, op->in.list.limit))
        return false;
    for (uint32_t n = 0;; n++) {
        if (!next_due(s, &seq))
            return false;
        if (seq == 0)
            return true;
        if (n == op->in.list.limit) {
            op->out.flags |= IL_OUT_MORE;
            return true;
        }
        if (!remove_run(s, seq))
            return false;
        op->out.sweep.n_purged++;
    }
}

bool
il__sq_run_overdue(struct sq_conn *c, const struct sq_state *st, bool *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_run_overdue);

    if (!il__sq_bind_int(c, row, 1, st->wall_ms) || !il__sq_ask(c, row, ret))
        return false;
    for (enum il__rate_window w = IL__RATE_MINUTE; w < IL__RATE_COUNT && !*ret; w++) {
        row = il__sq_use(c, SQ_rate_overdue);
        if (!il__sq_bind_int(c, row, 1, il__rate_span_ms(w)) ||
            !il__sq_bind_int(c, row, 2, il__rate_old(w, st->now_ms)) || !il__sq_ask(c, row, ret))
            return false;
    }
    return true;
}
