/*
 * run_start.c: starts runs in the SQLite engine. The decision table is in src/core/runs.md. A start
 * is an acquire of the key by the run's holder, preceded by a decision about the live runs of that
 * key.
 *
 * Race-free because all of it happens inside one BEGIN IMMEDIATE transaction: of two concurrent
 * starts, the second sees the run of the first.
 */
#include "core/key.h"
#include "core/lease.h"
#include "core/messages.h"
#include "core/op.h"
#include "store/sqlite/run.h"

/* Show a run beside the results of the acquire, whose fence stays. */
static bool
show_beside(struct sq_store *s, il_op *op, const char *id)
{
    uint64_t      fence = op->out.fence;
    struct sq_run r;
    bool          found;

    if (!il__sq_run_find(&s->conn, &s->scratch, op->tenant, id, &r, &found))
        return false;
    CHECK(found);
    if (!il__sq_run_show(&s->conn, &s->state, op, &r))
        return false;
    op->out.fence = fence;
    return true;
}

/* The same for a run that was created or started in this op, and that nothing else has touched:
 * nothing need be read. `position`: among the pending runs of its key, or 0. */
static bool
show_own(struct sq_store *s, il_op *op, const struct sq_run *r, uint32_t position)
{
    uint64_t fence = op->out.fence;

    if (!il__sq_run_show_at(&s->conn, &s->state, op, r, position))
        return false;
    op->out.fence = fence;
    return true;
}

/* Its lease, granted in this op. */
static struct il__run_hold
granted(const struct sq_store *s, int64_t ttl_ms)
{
    return (struct il__run_hold){
        .state = IL_LEASE_HELD, .ttl_ms = ttl_ms, .due_ms = s->state.now_ms + ttl_ms, .reason = ""
    };
}

static bool
answer_with(struct sq_store *s, il_op *op, il_status status, const struct sq_run *r)
{
    op->status = status;
    return il__sq_run_show(&s->conn, &s->state, op, r);
}

/* HELD, with the conflicting lease and its run, if it has one. */
static bool
answer_held(struct sq_store *s, il_op *op, const struct sq_key *k, const struct sq_run *in_the_way)
{
    if (in_the_way != NULL && !il__sq_run_show(&s->conn, &s->state, op, in_the_way))
        return false;
    return il__sq_answer_held(s, op, k);
}

/* May this holder request the key for a run? If not, sets the op's reply. */
static bool
may_want(struct sq_store *s, il_op *op, const struct sq_key *k, bool *ret_may)
{
    const struct sq_hold   *own   = il__sq_find_holder(&k->leases, op->holder);
    const struct il__ended *ended = il__sq_ended_find(s, op->tenant, op->key, op->holder);
    struct sq_hold         *wait;

    *ret_may = false;
    if (!il__sq_waiters_find(s, k, op->holder, &wait))
        return false;
    if (own != NULL && own->state == IL_LEASE_CLOSING) {
        il__answer_closing(op, own->reason);
    } else if (own != NULL) {
        il__op_end(op, IL_MISMATCH, IL__SAY_HAS_OTHERWISE);
    } else if (ended != NULL) {
        il__answer_lost(op, ended, s->state.now_ms);
    } else if (wait != NULL) {
        il__op_end(op, IL_MISMATCH, IL__SAY_WAITS_OTHERWISE);
    } else {
        il_op lock = il__run_acquire(op);
        bool  ok   = il__sq_rank(s, &lock);
        il__run_acquired(op, &lock);
        *ret_may = op->status == IL_OK;
        return ok;
    }
    return true;
}

/* ---- a run that exists ----------------------------------------------------------------------- */

/* The holder repeats the start of a run that it executes or waits for. */
static bool
repeat(struct sq_store *s, il_op *op, const struct sq_run *r, struct sq_key *k)
{
    il_op           lock = il__run_acquire(op);
    struct sq_hold *own;

    if (!il__sq_waiters_find(s, k, op->holder, &own))
        return false;
    if (own == NULL)
        own = il__sq_find_holder(&k->leases, op->holder);
    if (own == NULL)
        return il__sq_corrupt(&s->conn); /* a live run without a lease or waiter */
    bool ok = il__sq_acquire_own(s, &lock, k, own);
    il__run_acquired(op, &lock);
    if (op->status == IL_LOST)
        op->out.fence = r->info.fence;
    return ok && show_beside(s, op, r->info.id);
}

/* A slot is RUNNING from now on. */
static bool
begin_slot(struct sq_store *s, il_op *op, struct sq_run *r, struct sq_key *k)
{
    il_op lock = il__run_acquire(op);

    lock.in.lock.meta = r->info.meta;
    k->run            = r->info.seq;
    bool ok           = il__sq_learn(s, &lock) && il__sq_grant(s, &lock, k);
    il__run_acquired(op, &lock);
    r->info.holder = op->holder;
    r->info.ttl_ms = op->in.run.ttl_ms;
    r->hold        = granted(s, r->info.ttl_ms);
    return ok && il__sq_run_begin(s, r, op->out.fence) && show_own(s, op, r, 0);
}

static struct sq_run *
running_or_oldest(const struct sq_live *live)
{
    for (size_t i = 0; i < live->n; i++) {
        if (live->items[i].info.state == IL_RUN_RUNNING)
            return &live->items[i];
    }
    return &live->items[0];
}

static bool
start_slot(struct sq_store *s, il_op *op, struct sq_run *r, struct sq_key *k,
           const struct sq_live *live)
{
    bool may;

    if (!may_want(s, op, k, &may))
        return false;
    if (!may)
        return true;
    bool is_free;
    if (!il__sq_is_free(s, k, &is_free))
        return false;
    CHECK(live->n > 0); /* the slot at least */
    const struct sq_run *in_the_way = running_or_oldest(live);
    bool                 is_first   = in_the_way->info.seq == r->info.seq;
    if (is_free && is_first)
        return begin_slot(s, op, r, k);
    if (!answer_held(s, op, k, is_first ? NULL : in_the_way))
        return false;
    if (is_free)
        il__op_end(op, IL_HELD, IL__SAY_OLDER_PENDING);
    return true;
}

static bool
start_known(struct sq_store *s, il_op *op, struct sq_run *r, struct sq_key *k,
            const struct sq_live *live)
{
    bool slot    = (op->flags & IL_RUN_SLOT) != 0;
    bool is_slot = r->info.state == IL_RUN_PENDING && r->hold.state == IL_LEASE_NONE;

    if (il__run_ended(r->info.state)) {
        if (!il__sq_run_show(&s->conn, &s->state, op, r))
            return false;
        il__run_refuse(op, IL_STATE);
        return true;
    }
    if (is_slot && slot) {
        op->out.flags |= IL_OUT_RENEWED;
        return answer_with(s, op, IL_OK, r);
    }
    if (is_slot)
        return start_slot(s, op, r, k, live);
    if (slot || strcmp(r->info.holder, op->holder) != 0)
        return answer_with(s, op, IL_DUPLICATE, r);
    return repeat(s, op, r, k);
}

/* ---- a new run ------------------------------------------------------------------------------- */

static const char *
or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static struct sq_run
run_of_op(struct sq_store *s, const il_op *op)
{
    const il_run_in *in   = &op->in.run;
    bool             slot = (op->flags & IL_RUN_SLOT) != 0;

    return (struct sq_run){
        .info    = { .tenant        = op->tenant,
                     .id            = in->id,
                     .key           = op->key,
                     .holder        = slot ? "" : op->holder,
                     .trigger       = or_empty(in->trigger),
                     .by            = or_empty(in->by),
                     .meta          = or_empty(in->meta),
                     .stage         = "",
                     .seq           = ++s->state.ticket,
                     .ttl_ms        = in->ttl_ms,
                     .progress      = -1,
                     .created_at_ms = s->state.wall_ms,
                     .updated_at_ms = s->state.wall_ms },
        .error   = IL__RUN_NO_ERROR,
        .keep_ms = in->keep_ms,
    };
}

/* End the pending runs of the key, which the new run replaces, and ask the running one to stop. */
static bool
replace_others(struct sq_store *s, const il_op *op, struct sq_key *k, const struct sq_live *live)
{
    il_policy policy = op->in.run.policy;

    for (size_t i = 0; i < live->n && policy >= IL_POLICY_REPLACE_PENDING; i++) {
        struct sq_run *r = &live->items[i];
        if (r->info.state == IL_RUN_PENDING) {
            if (!il__sq_run_end(s, r, IL__RUN_EV_REPLACE, op->in.run.id) ||
                !il__sq_run_leave(s, k, r))
                return false;
        } else if (policy == IL_POLICY_CANCEL_RUNNING) {
            if (!il__sq_run_stop(s, r, il__run_error_replaced(op->in.run.id)))
                return false;
        }
    }
    return il__sq_offer_next(s, k, NULL);
}

/* The new run takes the key or queues for it; then the runs that it replaces end, and its turn may
 * have come. */
static bool
place(struct sq_store *s, il_op *op, struct sq_key *k, const struct sq_live *live)
{
    struct sq_run r    = run_of_op(s, op);
    il_op         lock = il__run_acquire(op);
    bool          is_free;

    if (!il__sq_is_free(s, k, &is_free))
        return false;
    k->run       = r.info.seq;
    bool queues  = !is_free;
    bool ok      = queues ? il__sq_enqueue(s, &lock, k, &r.ticket)
                          : il__sq_learn(s, &lock) && il__sq_grant(s, &lock, k);
    r.info.state = il__run_step(IL_RUN_NONE, queues ? IL__RUN_EV_QUEUE : IL__RUN_EV_START, false);
    r.info.fence = lock.out.fence;
    if (!queues)
        r.info.started_at_ms = s->state.wall_ms;
    ok = ok && il__sq_run_add(s, &r) && replace_others(s, op, k, live) &&
         (!queues || il__sq_enqueued(s, &lock, k, r.ticket));
    il__run_acquired(op, &lock);
    if (!ok || queues || live->n > 0)
        return ok && show_beside(s, op, r.info.id);
    r.hold = granted(s, r.info.ttl_ms);
    return show_own(s, op, &r, 0);
}

static bool
begin(struct sq_store *s, il_op *op, struct sq_key *k, const struct sq_live *live)
{
    if ((op->flags & IL_RUN_SLOT) == 0)
        return place(s, op, k, live);
    struct sq_run r = run_of_op(s, op);
    r.info.state    = il__run_step(IL_RUN_NONE, IL__RUN_EV_QUEUE, false);
    op->status      = IL_OK;
    if (!il__sq_run_add(s, &r) || !replace_others(s, op, k, live))
        return false;
    return live->n > 0 ? show_beside(s, op, r.info.id) : show_own(s, op, &r, 1);
}

/* Does a statement that counts runs of the class of the op's key find `max` of them? Its parameters
 * are bound, except the class and the limit. */
static bool
reaches(struct sq_store *s, const il_op *op, sqlite3_stmt *count, uint32_t max, bool *ret)
{
    struct sq_conn *c     = &s->conn;
    int             bytes = (int)il__key_class_bytes(op->key);

    if (sqlite3_bind_text(count, 2, op->key, bytes, SQLITE_STATIC) != SQLITE_OK)
        return il__sq_no_memory(c);
    if (!il__sq_bind_text(c, count, 1, op->tenant) || !il__sq_bind_int(c, count, 3, max))
        return false;
    if (il__sq_step(c, count) != SQLITE_ROW)
        return false;
    *ret = il__run_reaches((uint64_t)sqlite3_column_int64(count, 0), max);
    return il__sq_stmt_run(c, count);
}

static bool
too_many_live(struct sq_store *s, const il_op *op, bool *ret)
{
    struct sq_conn *c     = &s->conn;
    sqlite3_stmt   *count = il__sq_use(c, SQ_run_count_live);

    return il__sq_bind_int(c, count, 4, s->state.now_ms) &&
           il__sq_bind_text(c, count, 5, op->key) &&
           il__sq_bind_int(c, count, 6, (int64_t)il__run_replaces(op->in.run.policy)) &&
           reaches(s, op, count, op->in.run.live_max, ret);
}

static bool
too_many_today(struct sq_store *s, const il_op *op, bool *ret)
{
    struct sq_conn *c     = &s->conn;
    sqlite3_stmt   *count = il__sq_use(c, SQ_run_count_day);

    return il__sq_bind_int(c, count, 4, il__run_midnight_ms(s->state.wall_ms)) &&
           reaches(s, op, count, op->in.run.day_max, ret);
}

/* A new run, unless a limit of the tenant is reached. */
static bool
begin_within_limits(struct sq_store *s, il_op *op, struct sq_key *k, const struct sq_live *live)
{
    bool reached = false;

    if (op->in.run.live_max != 0 && !too_many_live(s, op, &reached))
        return false;
    if (reached) {
        il__run_answer_live_limit(op);
        return true;
    }
    if (op->in.run.day_max != 0 && !too_many_today(s, op, &reached))
        return false;
    if (reached) {
        il__run_answer_day_limit(op);
        return true;
    }
    return begin(s, op, k, live);
}

/* DUPLICATE, with the run; counts a start that joins. */
static bool
answer_duplicate(struct sq_store *s, il_op *op, struct sq_run *r)
{
    bool joins = op->in.run.policy == IL_POLICY_JOIN;

    if (joins && !il__sq_run_joined(s, r))
        return false;
    if (!joins)
        op->out.flags |= IL_OUT_SKIPPED;
    return answer_with(s, op, IL_DUPLICATE, r);
}

static bool
start_new(struct sq_store *s, il_op *op, struct sq_key *k, const struct sq_live *live)
{
    il_policy policy = op->in.run.policy;
    bool      slot   = (op->flags & IL_RUN_SLOT) != 0;
    bool      is_free;

    if (!il__sq_is_free(s, k, &is_free))
        return false;
    if (live->n == 0) {
        if (is_free || (policy >= IL_POLICY_QUEUE && !slot))
            return begin_within_limits(s, op, k, live);
        return answer_held(s, op, k, NULL);
    }
    if (policy == IL_POLICY_JOIN || policy == IL_POLICY_SKIP)
        return answer_duplicate(s, op, running_or_oldest(live));
    if (policy == IL_POLICY_REJECT)
        return answer_held(s, op, k, running_or_oldest(live));
    if (policy == IL_POLICY_QUEUE && live->n_pending >= op->in.run.queue_max) {
        il__run_answer_limit(op, live->n_pending);
        return true;
    }
    return begin_within_limits(s, op, k, live);
}

/* Is a rate exhausted? Then sets the op's reply. */
static bool
is_too_often(struct sq_store *s, il_op *op, bool *ret)
{
    struct sq_conn *c     = &s->conn;
    int             bytes = (int)il__key_class_bytes(op->key);

    for (enum il__rate_window w = IL__RATE_MINUTE; w < IL__RATE_COUNT && !*ret; w++) {
        struct il__rate r = il__run_rate(op, w, s->state.now_ms);
        if (r.max == 0)
            continue;
        sqlite3_stmt *sum = il__sq_use(c, SQ_rate_sum);
        if (sqlite3_bind_text(sum, 2, op->key, bytes, SQLITE_STATIC) != SQLITE_OK)
            return il__sq_no_memory(c);
        if (!il__sq_bind_text(c, sum, 1, op->tenant) || !il__sq_bind_int(c, sum, 3, r.span_ms) ||
            !il__sq_bind_int(c, sum, 4, il__rate_after(&r)) || il__sq_step(c, sum) != SQLITE_ROW)
            return false;
        *ret           = il__run_reaches((uint64_t)sqlite3_column_int64(sum, 0), r.max);
        int64_t oldest = sqlite3_column_int64(sum, 1);
        if (!il__sq_stmt_run(c, sum))
            return false;
        if (*ret)
            il__run_answer_rate(op, w, il__rate_wait_ms(&r, oldest, s->state.now_ms));
    }
    return true;
}

static bool
count_start(struct sq_store *s, const il_op *op)
{
    struct sq_conn *c     = &s->conn;
    int             bytes = (int)il__key_class_bytes(op->key);

    for (enum il__rate_window w = IL__RATE_MINUTE; w < IL__RATE_COUNT; w++) {
        struct il__rate r = il__run_rate(op, w, s->state.now_ms);
        if (r.max == 0)
            continue;
        sqlite3_stmt *add = il__sq_use(c, SQ_rate_add);
        if (sqlite3_bind_text(add, 2, op->key, bytes, SQLITE_STATIC) != SQLITE_OK)
            return il__sq_no_memory(c);
        if (!il__sq_bind_text(c, add, 1, op->tenant) || !il__sq_bind_int(c, add, 3, r.span_ms) ||
            !il__sq_bind_int(c, add, 4, r.slot % IL__RATE_SLOTS) ||
            !il__sq_bind_int(c, add, 5, r.slot) || !il__sq_stmt_run(c, add))
            return false;
    }
    return true;
}

/* Checked and counted in one BEGIN IMMEDIATE transaction, so that of two starts the second sees the
 * first. */
static bool
start_at_rate(struct sq_store *s, il_op *op, struct sq_key *k, const struct sq_live *live)
{
    bool rated   = op->in.run.minute_max != 0 || op->in.run.hour_max != 0;
    bool reached = false;

    if (rated && !is_too_often(s, op, &reached))
        return false;
    if (reached)
        return true;
    return start_new(s, op, k, live) && (!rated || op->status == IL_LIMIT || count_start(s, op));
}

bool
il__sq_run_start(struct sq_store *s, il_op *op)
{
    struct sq_conn *c      = &s->conn;
    il_sweep_out    counts = { 0 };
    struct sq_key   k      = { .tenant = op->tenant, .key = op->key };
    struct sq_run   r;
    struct sq_live  live;
    bool            found;
    bool            may = true;

    if (!il__sq_run_find(c, &s->scratch, op->tenant, op->in.run.id, &r, &found))
        return false;
    if (found && strcmp(r.info.key, op->key) != 0) {
        if (!il__sq_run_show(c, &s->state, op, &r))
            return false;
        il__run_answer_other_key(op);
        return true;
    }
    if (!il__sq_key_load(s, &k) || !il__sq_expire(s, &k, &counts) ||
        !il__sq_run_live(s, k.tenant, k.key, &live))
        return false;
    /* then it may have ended just now */
    if (found && counts.n_expired + counts.n_dropped > 0 &&
        !il__sq_run_find(c, &s->scratch, op->tenant, op->in.run.id, &r, &found))
        return false;
    if (found)
        return start_known(s, op, &r, &k, &live);
    if ((op->flags & IL_RUN_SLOT) == 0 && !may_want(s, op, &k, &may))
        return false;
    return !may || start_at_rate(s, op, &k, &live);
}
