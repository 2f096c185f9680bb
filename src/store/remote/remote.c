/*
 * remote.c: sends batches of requests and processes their replies.
 */
#include "store/remote/remote.h"

#include "base/clock.h"
#include "base/error.h"
#include "core/limits.h"
#include "core/op.h"
#include "store/postconditions.h"

static const struct remote_budget budget = { .n_learn = 16, .n_asks = 64 };

#define REPEATS_MAX 8 /* rounds of one op that asks back; each answer advances it */
/* no reply can express that, and il__store_violation() rejects it */
#define NOT_UNDERSTOOD IL_STATUS_COUNT

static il_status
no_memory(il_error *reterr)
{
    return il__error_set(reterr, IL_NOMEM, "out of memory for a batch");
}

/* ---- one call -------------------------------------------------------------------------------- */

static void
call_release(struct remote_store *s, struct remote_call *c)
{
    for (size_t i = 0; c->replies != NULL && i < c->n; i++) {
        struct remote_reply *r = &c->replies[i];
        for (size_t k = 0; k < r->n_parts; k++)
            json_decref(r->parts[k].json);
        il__free(r->parts);
        json_decref(r->head);
        *r = (struct remote_reply){ 0 };
    }
    if (c->result != NULL)
        s->via->done(s, c);
    il__free(c->wakes);
    c->wakes = NULL;
}

static bool
add_wake(struct remote_call *c, uint32_t slot)
{
    if (!il__grow(&c->wakes, c->n_wakes, &c->wakes_capacity, sizeof *c->wakes))
        return false;
    c->wakes[c->n_wakes++] = slot;
    return true;
}

/* [tenant, name, suffix], or [] for all holders. A malformed one is ignored: it was only a hint. */
static bool
take_wakes(struct remote_call *c, const json_t *wakes)
{
    for (size_t i = 0; i < json_array_size(wakes); i++) {
        const json_t *w      = json_array_get(wakes, i);
        const char   *tenant = json_string_value(json_array_get(w, 0));
        const char   *name   = json_string_value(json_array_get(w, 1));
        const char   *suffix = json_string_value(json_array_get(w, 2));
        if (tenant != NULL && (name == NULL || suffix == NULL))
            continue;
        if (!add_wake(c, tenant == NULL ? IL__BOARD_BREAK : il__board_slot(tenant, name, suffix)))
            return false;
    }
    return true;
}

bool
il__remote_take_wakes(struct remote_call *c, const char *json, size_t n_bytes)
{
    json_t *wakes = json_loadb(json, n_bytes, 0, NULL);

    if (wakes == NULL || !take_wakes(c, wakes))
        c->failed = true;
    json_decref(wakes);
    return !c->failed;
}

static bool
add_part(struct remote_reply *r, json_t *json, struct remote_blob blob, struct remote_blob blob2)
{
    if ((r->n_parts & (r->n_parts - 1)) == 0) {
        size_t              capacity = MAX(2 * r->n_parts, 1);
        struct remote_part *grown    = il__realloc(r->parts, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        r->parts = grown;
    }
    r->parts[r->n_parts++] = (struct remote_part){ json, blob, blob2 };
    return true;
}

bool
il__remote_take_row(struct remote_call *c, size_t i, const char *json, size_t n_bytes,
                    struct remote_blob blob, struct remote_blob blob2)
{
    if (i >= c->n) {
        c->failed = true;
        return false;
    }
    struct remote_reply *r   = &c->replies[i];
    json_t              *row = r->unreadable ? NULL : json_loadb(json, n_bytes, 0, NULL);
    c->n_replies             = MAX(c->n_replies, i + 1);
    if (row == NULL) {
        r->unreadable = true;
    } else if (r->head == NULL) {
        r->head       = row;
        r->value      = blob;
        r->unreadable = !take_wakes(c, json_object_get(row, "wake"));
    } else if (!add_part(r, row, blob, blob2)) {
        json_decref(row);
        r->unreadable = true;
    }
    return true;
}

bool
il__remote_take_packed(struct remote_call *c, size_t i, const void *packed)
{
    if (i >= c->n || c->replies[i].head != NULL || c->replies[i].packed != NULL) {
        c->failed = true;
        return false;
    }
    c->replies[i].packed = packed;
    c->n_replies         = MAX(c->n_replies, i + 1);
    return true;
}

bool
il__remote_take_job(struct remote_call *c, size_t i, const struct remote_job *job, int64_t wall_ms,
                    int64_t remaining_ms)
{
    il_op *op = i < c->n ? c->requests[i].op : NULL;

    if (op == NULL || (op->type == IL_OP_JOB_CLAIM) != (c->replies[i].head != NULL)) {
        c->failed = true;
        return false;
    }
    c->replies[i].taken = true;
    if (!il__remote_show_row(op, job, remaining_ms, wall_ms) ||
        !add_wake(c, il__board_slot(op->tenant, op->out.jobs[op->out.n_jobs - 1].id, "#job")))
        c->failed = true;
    return !c->failed;
}

bool
il__remote_take_lock(struct remote_call *c, size_t i, il_op_type type, uint64_t fence,
                     int64_t remaining_ms)
{
    il_op *op = i < c->n ? c->requests[i].op : NULL;

    if (op == NULL || op->type != type || c->replies[i].taken) {
        c->failed = true;
        return false;
    }
    c->replies[i].taken  = true;
    op->status           = IL_OK;
    op->out.fence        = fence;
    op->out.remaining_ms = remaining_ms;
    return true;
}

bool
il__remote_asked(const struct remote_call *c, size_t i)
{
    return i < c->n && c->replies[i].head != NULL &&
           json_object_get(c->replies[i].head, "ask") != NULL;
}

static il_status
unreadable(const struct remote_store *s, il_error *reterr)
{
    return il__error_set(reterr, IL_STORE, "%s: unexpected reply from the store", s->via->name);
}

/* Run the requests of `c`, whose replies are allocated and empty; wake the waiters. */
static il_status
call(struct remote_store *s, struct remote_call *c, il_error *reterr)
{
    if (s->test_clock) {
        c->timed   = true;
        c->now_ms  = il__clock_now_ms(s->clock);
        c->wall_ms = s->clock->wall_ms(s->clock->cookie);
    }
    il_status st = s->via->call(s, c, reterr);
    if (st != IL_OK)
        return st;
    /* A waiter that is woken too early polls once too often; one that is not woken polls in a few
     * seconds. */
    for (size_t i = 0; i < c->n_wakes; i++)
        il__board_wake(&s->board, c->wakes[i]);
    if (c->n_wakes > 0)
        s->via->wake(s, c->wakes, c->n_wakes);
    if (c->failed || (c->n_replies == 0 && !c->bare))
        return unreadable(s, reterr);
    return IL_OK;
}

il_status
il__remote_send_alone(struct remote_store *s, const struct remote_request *r, bool reads,
                      struct remote_answer *ret, il_error *reterr)
{
    *ret = (struct remote_answer){ .s = s, .call = { .requests = r, .n = 1, .reads = reads } };
    ret->call.replies = &ret->reply;
    il_status st      = call(s, &ret->call, reterr);
    if (st == IL_OK && ret->reply.unreadable)
        st = unreadable(s, reterr);
    return st;
}

void
il__remote_answer_release(struct remote_answer *a)
{
    if (a->s == NULL)
        return;
    a->call.replies = &a->reply; /* it may have been moved */
    call_release(a->s, &a->call);
}

/* ---- a batch of ops -------------------------------------------------------------------------- */

/* The reply to this op is unusable. Those to the others count, so it is reported at the end:
 * say_broken(). */
static il_status
not_understood(il_op *op)
{
    il__op_reset(op);
    op->status = NOT_UNDERSTOOD;
    return IL_OK;
}

/* Process a reply: results, messages, and questions. *ret_repeat: the op must be sent once more. A
 * reply that makes no sense becomes the op's error. */
static il_status
finish_op(struct remote_store *s, il_op *op, struct remote_request *r,
          const struct remote_reply *reply, bool reads, struct remote_budget *left,
          bool *ret_repeat, il_error *reterr)
{
    *ret_repeat = false;
    if (reply->unreadable)
        return not_understood(op);
    if (reply->packed != NULL) /* no question, and nothing about lock order */
        return s->via->decode(s, op, reply->packed) ? IL_OK : not_understood(op);

    const char *ask = il__remote_text_or_null(reply->head, "ask");
    /* the op is not done: it has no results yet */
    if (ask != NULL && strcmp(ask, "search") != 0)
        return il__remote_answer_questions(s, op, r, reply, left, ret_repeat, reterr);
    if (!il__remote_decode(op, reply) || !il__remote_say_rank(s, op, reply->head) ||
        !il__remote_order_list(s, op, reply->head) || !il__remote_history(op, reply->head))
        return not_understood(op);
    if (reads)
        return IL_OK;
    if (ask != NULL) {
        il_status st = il__remote_answer_questions(s, op, r, reply, left, ret_repeat, reterr);
        if (st != IL_OK || *ret_repeat || op->status == IL_DEADLOCK)
            return st;
    }
    return il__remote_learn(s, op, reply, left, reterr);
}

/* Execute one request of an op and decode its reply; questions are answered. */
static il_status
apply_one(struct remote_store *s, il_op *op, struct remote_request *r, il_error *reterr)
{
    bool                 repeat = true;
    struct remote_budget left   = budget;
    il_status            st     = IL_OK;

    for (int i = 0; st == IL_OK && repeat; i++) {
        struct remote_answer AUTO_ANSWER a = { 0 };
        if (i == REPEATS_MAX)
            return il__error_set(reterr, IL_STORE, "%s: %s repeated too often", s->via->name,
                                 il_op_name(op->type));
        il__op_reset(op);
        st = il__remote_send_alone(s, r, false, &a, reterr);
        if (a.reply.unreadable)
            return not_understood(op);
        if (st == IL_OK)
            st = finish_op(s, op, r, &a.reply, false, &left, &repeat, reterr);
    }
    return st;
}

static bool
has_come(const struct remote_reply *r)
{
    return r->head != NULL || r->packed != NULL || r->unreadable;
}

/* Process the ops of an executed call; of a bare one only those with a reply, since the others are
 * done, or have not happened. */
static il_status
finish_ops(struct remote_store *s, struct remote_call *c, il_op *const *ops,
           struct remote_request *requests, il_error *reterr)
{
    struct remote_budget left = budget;

    for (size_t i = 0; i < c->n_replies; i++) {
        bool repeat;
        bool there = has_come(&c->replies[i]);
        if (!there && c->bare)
            continue;
        if (!there)
            return il__error_set(reterr, IL_STORE, "%s: missing reply", s->via->name);
        il_status st =
            finish_op(s, ops[i], &requests[i], &c->replies[i], c->reads, &left, &repeat, reterr);
        if (st == IL_OK && repeat) {
            st = apply_one(s, ops[i], &requests[i], reterr);
            /* It reported its lock order when it was new. */
            if (st == IL_OK && ops[i]->status != IL_DEADLOCK && ops[i]->status != NOT_UNDERSTOOD)
                st = il__remote_learn(s, ops[i], &c->replies[i], &left, reterr);
        }
        if (st != IL_OK)
            return st;
    }
    return IL_OK;
}

/* Call with these requests, and process their replies. In a bare call, what was not done is left
 * untouched. */
static il_status
call_ops(struct remote_store *s, struct remote_call *c, il_op *const *ops,
         struct remote_request *requests, il_error *reterr)
{
    il_status st = call(s, c, reterr);

    if (st == IL_OK)
        st = finish_ops(s, c, ops, requests, reterr);
    return st;
}

/* Run as many of n ops as fit into one call; none of them is refused or a sweep. `taken`, if it is
 * bare: which were done. */
static il_status
apply_call(struct remote_store *s, il_op *const *ops, size_t n, bool reads, bool *taken,
           size_t *ret_done, bool *ret_refused, il_error *reterr)
{
    struct remote_call     c        = { .n = n, .reads = reads, .bare = taken != NULL };
    struct remote_request *requests = il__calloc(n, sizeof *requests);
    bool                   encoded  = requests != NULL;
    il_status              st;

    c.requests = requests;
    c.replies  = il__calloc(n, sizeof *c.replies);
    for (size_t i = 0; encoded && i < n; i++) {
        bool bare = c.bare && ops[i]->type != IL_OP_JOB_CLAIM;
        bool own  = !c.bare && s->via->encode != NULL && s->via->encode(s, ops[i], &requests[i]);
        encoded =
            own ? !requests[i].json.failed : bare || il__remote_encode(s, ops[i], &requests[i]);
        requests[i].op = ops[i];
    }
    if (encoded && c.replies != NULL) {
        st           = call_ops(s, &c, ops, requests, reterr);
        *ret_refused = c.refused;
        *ret_done    = c.n_replies;
        for (size_t i = 0; taken != NULL && i < n; i++)
            taken[i] = c.replies[i].taken || has_come(&c.replies[i]);
    } else {
        st           = no_memory(reterr);
        *ret_refused = true; /* nothing was sent */
    }
    call_release(s, &c);
    for (size_t i = 0; requests != NULL && i < n; i++)
        il__remote_request_release(&requests[i]);
    il__free(requests);
    il__free(c.replies);
    return st;
}

static il_status apply_each(struct remote_store *s, il_op *const *ops, size_t n, il_error *reterr);

/*
 * The same for ops that the transport accepts as they are, all of them. Those that it left come
 * again as JSON, after the others: it leaves only ops that later ones do not depend on, and then
 * the claim after them. If the server refuses these, each is sent alone, and what was done before
 * keeps its results.
 */
static il_status
apply_bare(struct remote_store *s, il_op *const *ops, size_t n, bool *ret_refused, il_error *reterr)
{
    AUTO_FREE bool   *taken  = il__calloc(n, sizeof *taken);
    AUTO_FREE il_op **left   = il__alloc(n * sizeof *left);
    size_t            n_left = 0;
    size_t            n_done;

    if (taken == NULL || left == NULL) {
        *ret_refused = true;
        return no_memory(reterr);
    }
    il_status st = apply_call(s, ops, n, false, taken, &n_done, ret_refused, reterr);
    for (size_t i = 0; i < n; i++) {
        if (!taken[i])
            left[n_left++] = ops[i];
    }
    for (size_t i = 0; st == IL_OK && i < n_left; i += n_done) {
        st = apply_call(s, left + i, n_left - i, false, NULL, &n_done, ret_refused, reterr);
        if (st != IL_OK && *ret_refused && n > 1) {
            *ret_refused = false;
            return apply_each(s, left + i, n_left - i, reterr);
        }
    }
    return st;
}

static il_status
apply_some(struct remote_store *s, il_op *const *ops, size_t n, bool reads, size_t *ret_done,
           bool *ret_refused, il_error *reterr)
{
    if (reads || s->via->takes_ops == NULL || !s->via->takes_ops(s, ops, n))
        return apply_call(s, ops, n, reads, NULL, ret_done, ret_refused, reterr);
    *ret_done = n;
    return apply_bare(s, ops, n, ret_refused, reterr);
}

/* How many of the ops go into one call. */
static size_t
batch_of(const struct remote_store *s, il_op *const *ops, size_t n)
{
    size_t i      = 0;
    size_t weight = 0;

    while (i < n && !il__op_refused(ops[i]) && ops[i]->type != IL_OP_SWEEP) {
        weight += s->via->weight != NULL ? s->via->weight(ops[i]) : 1;
        if (i > 0 && weight > s->via->n_requests_max)
            break;
        i++;
    }
    return i;
}

/* Run all ops, or as many as their time allows: *ret_all. */
static il_status
apply_all(struct remote_store *s, il_op *const *ops, size_t n, bool reads, size_t *ret_all,
          bool *ret_refused, il_error *reterr)
{
    int64_t until_ns = il__clock_boot_ns() + IL__COMMIT_MS * IL__NS_PER_MS;
    bool    sent     = false;
    size_t  i        = 0;

    *ret_refused = false;
    while (i < n && (i == 0 || il__clock_boot_ns() < until_ns)) {
        size_t    n_done = 1;
        il_status st     = IL_OK;
        if (!il__op_refused(ops[i]) && ops[i]->type == IL_OP_SWEEP)
            st = il__remote_sweep(s, ops[i], reterr);
        else if (!il__op_refused(ops[i]))
            st = apply_some(s, ops + i, batch_of(s, ops + i, n - i), reads, &n_done, ret_refused,
                            reterr);
        if (st != IL_OK) {
            *ret_refused = *ret_refused && !sent;
            return st;
        }
        sent = true;
        i += n_done;
    }
    *ret_all = i;
    return IL_OK;
}

static void
reset_ops(il_op *const *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!il__op_refused(ops[i]))
            il__op_reset(ops[i]);
    }
}

/* The server has refused and rolled back the ops as a whole: run each alone, so that a failing one
 * does not take the others with it. */
static il_status
apply_each(struct remote_store *s, il_op *const *ops, size_t n, il_error *reterr)
{
    il__remote_forget_order(s); /* what was learned in memory may not be in the store */
    reset_ops(ops, n);
    for (size_t i = 0; i < n; i++) {
        bool     refused;
        size_t   n_one;
        il_error why = { .status = IL_OK };
        if (il__op_refused(ops[i]))
            continue;
        il_status st = apply_all(s, &ops[i], 1, false, &n_one, &refused, &why);
        if (st == IL_OK)
            continue;
        reset_ops(&ops[i], 1);
        if (!refused) {
            if (reterr != NULL)
                *reterr = why;
            return st;
        }
        (void)il__op_end(ops[i], st, why.message);
    }
    return IL_OK;
}

/*
 * A reply that could not be parsed or makes no sense: a server's mistake or a flipped bit, not a
 * bug in this program that it should abort for. The op may or may not have been executed. If it was
 * alone, the call reports it as if the reply had been lost, and its caller does what is due then.
 */
static il_status
say_broken(struct remote_store *s, il_op *const *ops, size_t n, il_error *reterr)
{
    for (size_t i = 0; i < n; i++) {
        il_op   *op = ops[i];
        il_error why;
        if (il__store_violation(op) == NULL)
            continue;
        il__remote_forget_order(s); /* what was learned in memory may not be in the store */
        il__op_reset(op);
        il__error_set(
            &why, IL_STORE,
            "%s: unexpected reply to %s%s%s; the operation may or may not have been applied",
            s->via->name, il_op_name(op->type), op->key != NULL ? " " : "",
            op->key != NULL ? op->key : "");
        if (n > 1) {
            (void)il__op_end(op, IL_STORE, why.message);
            continue;
        }
        if (reterr != NULL)
            *reterr = why;
        return IL_STORE;
    }
    return IL_OK;
}

static il_status
remote_apply(struct il__store *base, il_op *const *ops, size_t n, size_t *ret_done,
             il_error *reterr)
{
    struct remote_store *s = il__remote_from(base);
    bool                 refused;
    il_status            st = apply_all(s, ops, n, false, ret_done, &refused, reterr);

    if (st != IL_OK && refused && n > 1) {
        *ret_done = n;
        st        = apply_each(s, ops, n, reterr);
    }
    if (st == IL_OK)
        return say_broken(s, ops, *ret_done, reterr);
    il__remote_forget_order(s);
    reset_ops(ops, n);
    return st;
}

static il_status
remote_read(struct il__store *base, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    struct remote_store *s = il__remote_from(base);
    bool                 refused;
    il_status            st = apply_all(s, ops, n, true, ret_done, &refused, reterr);

    if (st == IL_OK)
        return say_broken(s, ops, *ret_done, reterr);
    reset_ops(ops, n);
    return st;
}

/* If that cannot be determined, let a sweep try. */
static bool
remote_overdue(struct il__store *base)
{
    struct remote_store               *s = il__remote_from(base);
    struct remote_answer AUTO_ANSWER   a = { 0 };
    struct remote_request AUTO_REQUEST r = { 0 };

    il__remote_begin(&r, "x_overdue");
    if (!il__remote_end(&r) || il__remote_send_alone(s, &r, true, &a, NULL) != IL_OK)
        return true;
    return il__remote_number(a.reply.head, "overdue") != 0;
}

static il_status
remote_report(struct il__store *base, const char *table, il__report_fn *each, void *cookie,
              il_error *reterr)
{
    struct remote_store *s = il__remote_from(base);

    return s->via->report(s, table, each, cookie, reterr);
}

static il_status
remote_guard_table(struct il__store *base, const struct il__table_guard *change,
                   il__table_guard_fn *each, void *cookie, il_error *reterr)
{
    struct remote_store *s = il__remote_from(base);

    return s->via->guard_table(s, change, each, cookie, reterr);
}

static il_status
remote_advisory_take(struct il__store *base, const char *key, int64_t id,
                     struct il__store_advisory **ret, il_error *reterr)
{
    struct remote_store *s = il__remote_from(base);

    return s->via->advisory_take(s, key, id, ret, reterr);
}

/* ---- opening and freeing --------------------------------------------------------------------- */

static void
remote_free(struct il__store *base)
{
    struct remote_store *s = il__remote_from(base);

    s->via->free(s);
}

bool
il__remote_init(struct remote_store *s, const struct remote_transport *via,
                const struct il__store_open *o)
{
    s->ops = (struct il__store_ops){
        .name          = via->name,
        .caps          = via->caps,
        .n_lanes       = via->n_lanes,
        .free          = remote_free,
        .apply         = remote_apply,
        .read          = remote_read,
        .overdue       = remote_overdue,
        .report        = via->report != NULL ? remote_report : NULL,
        .advisory_take = via->advisory_take != NULL ? remote_advisory_take : NULL,
        .guard_table   = via->guard_table != NULL ? remote_guard_table : NULL,
    };
    s->base       = (struct il__store){ .ops = &s->ops, .board = &s->board };
    s->via        = via;
    s->clock      = o->clock;
    s->test_clock = o->test_clock;
    s->order_n    = -1;
    il__mutex_init(&s->order_mutex, IL__MUTEX_order);
    return il__ranks_copy(&o->ranks, &s->ranks) && il__board_init_private(&s->board);
}

void
il__remote_release(struct remote_store *s)
{
    il__order_release(&s->order);
    il__mutex_destroy(&s->order_mutex);
    il__ranks_release(&s->ranks);
    il__board_release(&s->board);
}
