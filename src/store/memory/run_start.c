/*
 * run_start.c: starts runs in the memory engine. The decision table is in src/core/runs.md. A start
 * is an acquire of the key by the run's holder, preceded by a decision about the live runs of that
 * key.
 */
#include "core/lease.h"
#include "core/messages.h"
#include "core/op.h"
#include "store/memory/run.h"

/* The numbers of a run whose reply was built before the run changed. */
static void
show_again(const struct mem_store *m, il_op *op, const struct mem_run *r)
{
    struct mem_run_look    l     = il__mem_run_look(m, r);
    const struct mem_hold *h     = r->hold;
    il_run_info           *shown = (il_run_info *)(uintptr_t)&op->out.runs[op->out.n_runs - 1];

    shown->state         = l.info.state;
    shown->position      = l.info.position;
    shown->fence         = l.info.state == IL_RUN_PENDING ? 0 : l.info.fence;
    shown->ttl_ms        = h != NULL ? h->ttl_ms : r->ttl_ms;
    shown->remaining_ms  = h != NULL && r->state == IL_RUN_RUNNING ? h->due.at - m->now_ms : 0;
    shown->started_at_ms = l.info.started_at_ms;
    shown->ended_at_ms   = l.info.ended_at_ms;
    shown->updated_at_ms = l.info.updated_at_ms;
}

/* ---- a run that exists ----------------------------------------------------------------------- */

/* The holder repeats the start of a run that it executes or waits for. */
static void
repeat(struct mem_store *m, il_op *op, struct mem_run *r)
{
    if (il__mem_run_show(m, op, r) == NULL)
        return;
    op->out.fence = 0;
    il_op lock    = il__run_acquire(op);
    il__mem_acquire_own(m, &lock, r->hold);
    il__run_acquired(op, &lock);
    if (op->status == IL_LOST)
        op->out.fence = r->fence;
    show_again(m, op, r);
}

/* HELD, with the conflicting lease and its run, if it has one. */
static void
answer_held(struct mem_store *m, il_op *op, struct mem_key *k, const struct mem_run *in_the_way)
{
    if (in_the_way != NULL && il__mem_run_show(m, op, in_the_way) == NULL)
        return;
    il__mem_answer_held(m, op, k);
}

/* May this holder request the key for a run? If not, sets the op's reply. */
static bool
may_want(struct mem_store *m, il_op *op, struct mem_key *k, const struct mem_names *names)
{
    const struct mem_hold  *own   = il__mem_find_holder(m, k, &k->leases, op->holder);
    const struct il__ended *ended = il__mem_find_ended(m, names);

    if (own != NULL && own->state == IL_LEASE_CLOSING) {
        il__answer_closing(op, own->verdict);
    } else if (own != NULL) {
        il__op_end(op, IL_MISMATCH, IL__SAY_HAS_OTHERWISE);
    } else if (ended != NULL) {
        il__answer_lost(op, ended, m->now_ms);
    } else if (il__mem_find_holder(m, k, &k->waiters, op->holder) != NULL) {
        il__op_end(op, IL_MISMATCH, IL__SAY_WAITS_OTHERWISE);
    } else {
        il_op lock = il__run_acquire(op);
        bool  ok   = il__mem_rank_ok(m, &lock, names);
        il__run_acquired(op, &lock);
        return ok;
    }
    return false;
}

static bool
is_free(const struct mem_key *k)
{
    return k->leases.n == 0 && !il__mem_has_queue(k);
}

/* Start a slot (it becomes RUNNING), if everything it needs is available. */
static void
begin_slot(struct mem_store *m, il_op *op, struct mem_run *r, struct mem_key *k,
           const struct mem_names *names)
{
    struct mem_run_look l      = il__mem_run_look(m, r);
    char               *holder = il__strdup(op->holder);
    struct mem_hold    *h      = NULL;

    l.info.holder = op->holder;
    if (holder != NULL && il__mem_run_show_look(m, op, &l) != NULL) {
        il_op lock        = il__run_acquire(op);
        lock.in.lock.meta = r->meta;
        h                 = il__mem_grant(m, &lock, k, names);
        il__run_acquired(op, &lock);
    }
    if (h == NULL) {
        il__free(holder);
        op->status = IL_NOMEM;
        return;
    }
    r->holder = holder;
    r->ttl_ms = op->in.run.ttl_ms;
    r->hold   = h;
    h->run    = r;
    il__mem_run_begin(m, r);
    show_again(m, op, r);
}

static struct mem_run *
running_or_oldest(const struct mem_run_key *live)
{
    struct mem_run *r = live->oldest;

    while (r != NULL && r->state != IL_RUN_RUNNING)
        r = r->next;
    return r != NULL ? r : live->oldest;
}

static void
start_slot(struct mem_store *m, il_op *op, struct mem_run *r, struct mem_key *k)
{
    struct mem_names names = il__mem_names(m, op);

    if (!may_want(m, op, k, &names))
        return;
    const struct mem_run *in_the_way = running_or_oldest(r->of_key);
    if (is_free(k) && in_the_way == r) {
        begin_slot(m, op, r, k, &names);
        return;
    }
    answer_held(m, op, k, in_the_way != r ? in_the_way : NULL);
    if (is_free(k) && op->status == IL_HELD)
        il__op_end(op, IL_HELD, IL__SAY_OLDER_PENDING);
}

static void
start_known(struct mem_store *m, il_op *op, struct mem_run *r, struct mem_key *k)
{
    bool slot    = (op->flags & IL_RUN_SLOT) != 0;
    bool is_slot = r->state == IL_RUN_PENDING && r->hold == NULL;

    if (il__run_ended(r->state)) {
        if (il__mem_run_show(m, op, r) != NULL)
            il__run_refuse(op, IL_STATE);
    } else if (is_slot && slot) {
        if (il__mem_run_show(m, op, r) != NULL)
            op->status = IL_OK;
        op->out.flags |= IL_OUT_RENEWED;
    } else if (is_slot) {
        start_slot(m, op, r, k);
    } else if (slot || strcmp(r->holder, op->holder) != 0) {
        if (il__mem_run_show(m, op, r) != NULL)
            op->status = IL_DUPLICATE;
    } else {
        repeat(m, op, r);
    }
}

/* ---- a new run ------------------------------------------------------------------------------- */

/* A pending run was replaced. True: it had a waiter or an offer, so the key goes to the next
 * waiter. */
static bool
end_pending(struct mem_store *m, struct mem_run *r)
{
    struct mem_hold *h = r->hold;

    il__mem_run_end(m, r, IL__RUN_EV_REPLACE, NULL);
    if (h == NULL)
        return false;
    il__board_wake(&m->board, il__board_slot(r->tenant, r->key, h->holder));
    il__mem_hold_end(m, h, il__lease_step(h->state, il__mem_run_leave_event(h)));
    return true;
}

/* End the pending runs of the key that are older than the new run, and ask the running one to
 * stop. */
static bool
replace_others(struct mem_store *m, const il_op *op, const struct mem_run *by)
{
    bool            ended = false;
    struct mem_run *next;

    if (op->in.run.policy < IL_POLICY_REPLACE_PENDING)
        return false;
    for (struct mem_run *r = by->of_key->oldest; r != by; r = next) {
        bool pending = r->state == IL_RUN_PENDING;
        next         = r->next;
        if (!pending && (r->cancelled || op->in.run.policy != IL_POLICY_CANCEL_RUNNING))
            continue;
        memcpy(r->replaced_by, by->id, strlen(by->id) + 1);
        if (pending)
            ended = end_pending(m, r) || ended;
        else
            il__mem_run_stop(m, r, il__run_error_replaced(r->replaced_by), NULL);
    }
    return ended;
}

/* The new run takes the key or queues for it; then the runs that it replaces end, and its turn may
 * have come. */
static void
place(struct mem_store *m, il_op *op, struct mem_run *r, struct mem_key *k,
      const struct mem_names *names)
{
    il_op lock   = il__run_acquire(op);
    bool  queues = !is_free(k);

    lock.out.fence = 0;
    r->hold = queues ? il__mem_enqueue(m, &lock, k, names) : il__mem_grant(m, &lock, k, names);
    if (r->hold == NULL) {
        il__run_acquired(op, &lock);
        il__mem_run_drop(r);
        return;
    }
    il__mem_run_add(m, r, queues ? IL__RUN_EV_QUEUE : IL__RUN_EV_START);
    if (replace_others(m, op, r))
        il__mem_offer_next(m, k, NULL);
    if (queues)
        il__mem_enqueued(m, &lock, r->hold, names);
    il__run_acquired(op, &lock);
    show_again(m, op, r);
    if (op->status == IL_DEADLOCK && op->out.detail != NULL)
        ((il_run_info *)(uintptr_t)&op->out.runs[op->out.n_runs - 1])->error = op->out.detail;
}

static void
begin(struct mem_store *m, il_op *op, struct mem_key *k, const struct mem_names *names)
{
    struct mem_run *r = il__mem_run_new(m, op);

    if (r == NULL) {
        op->status = IL_NOMEM;
    } else if (il__mem_run_show(m, op, r) == NULL) {
        il__mem_run_drop(r);
    } else if ((op->flags & IL_RUN_SLOT) == 0) {
        place(m, op, r, k, names);
    } else {
        il__mem_run_add(m, r, IL__RUN_EV_QUEUE);
        if (replace_others(m, op, r))
            il__mem_offer_next(m, k, NULL);
        op->status = IL_OK;
        show_again(m, op, r);
    }
}

/* Has the tenant live_max live runs of the class, not counting those that this one replaces?
 * Overdue runs are not live. */
static bool
too_many_live(const struct mem_store *m, const il_op *op, const struct mem_run_class *class)
{
    il_run_state replaced = il__run_replaces(op->in.run.policy);
    uint32_t     n        = 0;

    for (const struct mem_run *r = class->live; r != NULL && n < op->in.run.live_max;
         r                       = r->class_next) {
        struct mem_run_look l     = il__mem_run_look(m, r);
        il_run_state        state = il__run_state_at(r->state, r->cancelled, &l.hold, m->now_ms);
        n += !il__run_ended(state) && !(r->state <= replaced && strcmp(r->key, op->key) == 0);
    }
    return il__run_reaches(n, op->in.run.live_max);
}

/* Has the tenant created day_max runs of the class today? */
static bool
too_many_today(const struct mem_store *m, const il_op *op, const struct mem_run_class *class)
{
    int64_t  midnight_ms = il__run_midnight_ms(m->wall_ms);
    uint32_t n           = 0;

    for (const struct mem_run *r                                                = class->last;
         r != NULL && r->created_ms >= midnight_ms && n < op->in.run.day_max; r = r->made_before)
        n++;
    return il__run_reaches(n, op->in.run.day_max);
}

/* A new run, unless a limit of the tenant is reached. */
static void
begin_within_limits(struct mem_store *m, il_op *op, struct mem_key *k,
                    const struct mem_names *names)
{
    const struct mem_run_class *class = il__mem_run_class_find(m, op);

    if (class != NULL && op->in.run.live_max != 0 && too_many_live(m, op, class))
        il__run_answer_live_limit(op);
    else if (class != NULL && op->in.run.day_max != 0 && too_many_today(m, op, class))
        il__run_answer_day_limit(op);
    else
        begin(m, op, k, names);
}

/* DUPLICATE, with the run; counts a start that joins. */
static void
answer_duplicate(struct mem_store *m, il_op *op, struct mem_run *r)
{
    bool                joins = op->in.run.policy == IL_POLICY_JOIN;
    struct mem_run_look l     = il__mem_run_look(m, r);

    l.info.n_joined += joins;
    if (il__mem_run_show_look(m, op, &l) == NULL)
        return;
    r->n_joined += joins;
    op->status = IL_DUPLICATE;
    if (!joins)
        op->out.flags |= IL_OUT_SKIPPED;
}

static void
start_new(struct mem_store *m, il_op *op, struct mem_key *k, uint64_t hash,
          const struct mem_names *names)
{
    const struct mem_run_key *live   = il__mem_run_key_find(m, hash, op);
    il_policy                 policy = op->in.run.policy;
    bool                      slot   = (op->flags & IL_RUN_SLOT) != 0;

    if (live == NULL) {
        if (is_free(k) || (policy >= IL_POLICY_QUEUE && !slot))
            begin_within_limits(m, op, k, names);
        else
            answer_held(m, op, k, NULL);
    } else if (policy == IL_POLICY_JOIN || policy == IL_POLICY_SKIP) {
        answer_duplicate(m, op, running_or_oldest(live));
    } else if (policy == IL_POLICY_REJECT) {
        answer_held(m, op, k, running_or_oldest(live));
    } else if (policy == IL_POLICY_QUEUE && live->n_pending >= op->in.run.queue_max) {
        il__run_answer_limit(op, live->n_pending);
    } else {
        begin_within_limits(m, op, k, names);
    }
}

/* Is a rate exhausted? Then sets the op's reply. */
static bool
is_too_often(const struct mem_store *m, il_op *op, const struct mem_rate *rate)
{
    for (enum il__rate_window w = IL__RATE_MINUTE; w < IL__RATE_COUNT; w++) {
        struct il__rate r      = il__run_rate(op, w, m->now_ms);
        uint64_t        n      = 0;
        int64_t         oldest = r.slot;
        for (size_t i = 0; r.max != 0 && i < IL__RATE_SLOTS; i++) {
            if (rate->slots[w][i] <= il__rate_after(&r) || rate->n[w][i] == 0)
                continue;
            n += rate->n[w][i];
            oldest = MIN(oldest, rate->slots[w][i]);
        }
        if (r.max != 0 && il__run_reaches(n, r.max)) {
            il__run_answer_rate(op, w, il__rate_wait_ms(&r, oldest, m->now_ms));
            return true;
        }
    }
    return false;
}

static void
count_start(const struct mem_store *m, const il_op *op, struct mem_rate *rate)
{
    for (enum il__rate_window w = IL__RATE_MINUTE; w < IL__RATE_COUNT; w++) {
        struct il__rate r     = il__run_rate(op, w, m->now_ms);
        size_t          place = (size_t)(r.slot % IL__RATE_SLOTS);
        if (r.max == 0)
            continue;
        rate->n[w][place]     = rate->slots[w][place] == r.slot ? rate->n[w][place] + 1 : 1;
        rate->slots[w][place] = r.slot;
    }
}

static void
start_at_rate(struct mem_store *m, il_op *op, struct mem_key *k, uint64_t hash,
              const struct mem_names *names)
{
    bool             rated = op->in.run.minute_max != 0 || op->in.run.hour_max != 0;
    struct mem_rate *rate  = rated ? il__mem_run_rate(m, op) : NULL;

    if (rated && rate == NULL) {
        op->status = IL_NOMEM;
        return;
    }
    if (rated && is_too_often(m, op, rate))
        return;
    start_new(m, op, k, hash, names);
    if (rated && op->status != IL_LIMIT)
        count_start(m, op, rate);
}

void
il__mem_run_start(struct mem_store *m, il_op *op)
{
    struct mem_run  *r     = il__mem_run_find(m, op->tenant, op->in.run.id);
    struct mem_names names = { 0 };

    if (r != NULL && strcmp(r->key, op->key) != 0) {
        if (il__mem_run_show(m, op, r) != NULL)
            il__run_answer_other_key(op);
        return;
    }
    uint64_t        hash = il__mem_hash_op(m, op);
    struct mem_key *k    = il__mem_key_find(m, hash, op->tenant, op->key);
    if (k != NULL) {
        il__mem_expire(m, k, NULL);
    } else {
        k = il__mem_key_add(m, hash, op);
        if (k == NULL) {
            op->status = IL_NOMEM;
            return;
        }
    }
    if (r != NULL) {
        start_known(m, op, r, k);
    } else if ((op->flags & IL_RUN_SLOT) != 0) {
        start_at_rate(m, op, k, hash, &names);
    } else {
        names = il__mem_names(m, op);
        if (may_want(m, op, k, &names))
            start_at_rate(m, op, k, hash, &names);
    }
    il__mem_key_drop_if_idle(m, k);
}
