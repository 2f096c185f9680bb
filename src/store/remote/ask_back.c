/*
 * ask_back.c: answers the questions that verbs ask back because the logic is in the core:
 * deadlocks, and the ticks of schedules.
 *
 * Why a search separate from the op is enough: a cycle of waits does not break up by itself, except
 * by a timeout, a break or an expiry, which end it anyway. The waiter that closes the cycle
 * searches after its own commit, so it sees the whole cycle, whatever others are doing at the same
 * time. Two concurrent searches find the same youngest waiter, and only a waiter that is still
 * waiting gets a verdict.
 */
#include <inttypes.h>

#include "base/error.h"
#include "core/cron.h"
#include "core/deadlock.h"
#include "core/lease.h"
#include "core/limits.h"
#include "core/op.h"
#include "store/remote/remote.h"

il_status
il__remote_ask_sure(struct remote_store *s, const struct remote_request *r, bool reads,
                    struct remote_answer *ret, il_error *reterr)
{
    il_status st = il__remote_send_alone(s, r, reads, ret, reterr);

    if (st != IL_OK || il__remote_number(ret->reply.head, "status") == IL_OK)
        return st;
    return il__error_set(reterr, IL_CORRUPT, "%s", il__remote_text(ret->reply.head, "detail"));
}

/* ---- the deadlock search --------------------------------------------------------------------- */

#define AHEAD_MAX 64 /* units or queues per request */

struct search {
    struct remote_store  *s;
    const char           *tenant;
    il_error             *reterr;
    il_status             status; /* of the call that failed */
    json_t               *ahead;  /* already requested, by name of the unit or key */
    struct remote_budget *left;
};

static void
search_release(struct search *search)
{
    json_decref(search->ahead);
}

static bool
no_memory(struct search *search)
{
    search->status =
        il__error_set(search->reterr, IL_NOMEM, "out of memory for the deadlock search");
    return false;
}

static bool
ask(struct search *search, struct remote_request *r, struct remote_answer *a)
{
    if (!il__remote_end(r))
        return no_memory(search);
    if (search->left->n_asks == 0)
        return false;
    search->left->n_asks--;
    search->status = il__remote_ask_sure(search->s, r, true, a, search->reterr);
    return search->status == IL_OK;
}

/* Like waits_of() or queue_of() for several names: a list of their replies. */
static bool
ask_ahead(struct search *search, enum il__deadlock_part part, const char *const *names, size_t n)
{
    struct remote_request AUTO_REQUEST r = { 0 };
    struct remote_answer AUTO_ANSWER   a = { 0 };

    il__remote_begin(&r, part == IL__DEADLOCK_WAITS ? "x_waits" : "x_queue");
    il__remote_put_text(&r, "tenant", search->tenant);
    il__remote_put_texts(&r, part == IL__DEADLOCK_WAITS ? "roots" : "keys", names, n);
    if (!ask(search, &r, &a))
        return false;
    json_t *many = json_object_get(a.reply.head, "many");
    for (size_t i = 0; i < n && i < json_array_size(many); i++) {
        if (json_object_set_nocheck(search->ahead, names[i], json_array_get(many, i)) != 0)
            return no_memory(search);
    }
    return true;
}

static bool
expect(void *cookie, enum il__deadlock_part part, const char *const *names, size_t n)
{
    struct search *search = cookie;

    if (search->ahead == NULL)
        search->ahead = json_object();
    if (search->ahead == NULL || json_object_clear(search->ahead) != 0)
        return no_memory(search);
    for (size_t i = 0; i < n; i += AHEAD_MAX) {
        if (!ask_ahead(search, part, names + i, MIN(n - i, AHEAD_MAX)))
            return false;
    }
    return true;
}

static void
add_wanted(const json_t *keys, struct il__deadlock *d)
{
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const char *key = json_string_value(json_array_get(keys, i));
        if (key != NULL)
            il__deadlock_add_wanted(d, key);
    }
}

static bool
waits_of(void *cookie, const char *root, size_t root_bytes, struct il__deadlock *d)
{
    struct search                     *search = cookie;
    struct remote_request AUTO_REQUEST r      = { 0 };
    struct remote_answer AUTO_ANSWER   a      = { 0 };
    const json_t                      *ahead  = json_object_get(search->ahead, root);

    if (ahead != NULL) {
        add_wanted(json_object_get(ahead, "keys"), d);
        return true;
    }
    il__remote_begin(&r, "x_waits");
    il__remote_put_text(&r, "tenant", search->tenant);
    il__remote_put_bytes(&r, "root", root, root_bytes);
    if (!ask(search, &r, &a))
        return false;
    add_wanted(json_object_get(a.reply.head, "keys"), d);
    return true;
}

static int64_t
number_at(const json_t *array, size_t i)
{
    return il__remote_number_of(json_array_get(array, i));
}

static bool
is_mode(int64_t mode, int64_t permits)
{
    return mode >= 0 && mode < IL_MODE_COUNT && permits >= 0 && permits <= IL_PERMITS_MAX &&
           (mode == IL_MODE_PERMIT) == (permits > 0);
}

/* The last element of a row of x_queue: whether the holder's unit also waits for another key;
 * omitted if unknown. */
static void
add_elsewhere(const json_t *row, size_t i, const char *holder, struct il__deadlock *d)
{
    if (json_array_size(row) > i && number_at(row, i) == 0)
        il__deadlock_waits_nowhere_else(d, holder);
}

/* [holder, mode, permits, state, due_ms, settle_ms, elsewhere]; a lease that has ended, or will end
 * by itself, does not block forever. */
static void
add_lease(const json_t *lease, int64_t now_ms, struct il__deadlock *d)
{
    const char *holder = json_string_value(json_array_get(lease, 0));

    if (holder == NULL || !il__remote_is_state(number_at(lease, 3)) ||
        !is_mode(number_at(lease, 1), number_at(lease, 2)) ||
        !il__lease_lasts(now_ms, number_at(lease, 5), (il_lease_state)number_at(lease, 3),
                         number_at(lease, 4)))
        return;
    il__deadlock_add_lease(d, holder, (il_mode)number_at(lease, 1), (uint32_t)number_at(lease, 2));
    add_elsewhere(lease, 6, holder, d);
}

static void
add_queue(const json_t *queue, struct il__deadlock *d)
{
    const json_t *leases = json_object_get(queue, "leases");
    const json_t *waits  = json_object_get(queue, "waits");
    int64_t       now_ms = il__remote_number(queue, "now_ms");

    for (size_t i = 0; i < json_array_size(leases); i++)
        add_lease(json_array_get(leases, i), now_ms, d);
    for (size_t i = 0; i < json_array_size(waits); i++) {
        const json_t *w = json_array_get(waits, i); /* [ticket, holder, mode, permits, elsewhere] */
        const char   *holder = json_string_value(json_array_get(w, 1));
        if (holder == NULL || number_at(w, 0) <= 0 || !is_mode(number_at(w, 2), number_at(w, 3)))
            continue;
        il__deadlock_add_wait(d, (uint64_t)number_at(w, 0), holder, (il_mode)number_at(w, 2),
                              (uint32_t)number_at(w, 3));
        add_elsewhere(w, 4, holder, d);
    }
}

static bool
queue_of(void *cookie, const char *key, struct il__deadlock *d)
{
    struct search                     *search = cookie;
    struct remote_request AUTO_REQUEST r      = { 0 };
    struct remote_answer AUTO_ANSWER   a      = { 0 };
    const json_t                      *ahead  = json_object_get(search->ahead, key);

    if (ahead != NULL) {
        add_queue(ahead, d);
        return true;
    }
    il__remote_begin(&r, "x_queue");
    il__remote_put_text(&r, "tenant", search->tenant);
    il__remote_put_text(&r, "key", key);
    if (!ask(search, &r, &a))
        return false;
    add_queue(a.reply.head, d);
    return true;
}

/* Give the victim its verdict, if it still waits. */
static il_status
cancel(struct remote_store *s, const char *tenant, uint64_t ticket, const char *verdict,
       bool *ret_found, il_error *reterr)
{
    struct remote_request AUTO_REQUEST r = { 0 };
    struct remote_answer AUTO_ANSWER   a = { 0 };

    il__remote_begin(&r, "x_verdict");
    il__remote_put_text(&r, "tenant", tenant);
    il__remote_put_number(&r, "ticket", (int64_t)ticket);
    il__remote_put_text(&r, "text", verdict);
    if (!il__remote_end(&r))
        return il__error_set(reterr, IL_NOMEM, "out of memory for breaking a deadlock");
    il_status st = il__remote_ask_sure(s, &r, false, &a, reterr);
    *ret_found   = st == IL_OK && il__remote_number(a.reply.head, "found") != 0;
    return st;
}

il_status
il__remote_search(struct remote_store *s, const char *tenant, const char *const *holders, size_t n,
                  struct remote_budget *left, uint64_t *ret_victim, struct il__buf *why,
                  bool *ret_found, il_error *reterr)
{
    struct search AUTO(search_release)
        search = { .s = s, .tenant = tenant, .reterr = reterr, .left = left };
    const struct il__deadlock_source source = {
        .waits_of = waits_of, .queue_of = queue_of, .expect = expect, .cookie = &search
    };

    *ret_found   = false;
    il_status st = il__deadlock_find(&source, holders, n, ret_victim, why);
    if (st == IL_STORE)
        return search.status; /* OK: gave up; the next sweep continues */
    if (st != IL_DEADLOCK)
        return IL_OK; /* none, or no memory for the search: the next sweep searches again */
    return cancel(s, tenant, *ret_victim, il__buf_str(why), ret_found, reterr);
}

/* The op's own waiter was the youngest: it is removed, and so is its run, which is shown. */
static il_status
tell_cycle(struct remote_store *s, il_op *op, const char *why, il_error *reterr)
{
    struct remote_request AUTO_REQUEST r = { 0 };
    struct remote_answer AUTO_ANSWER   a = { 0 };

    il__op_reset(op);
    il__remote_begin(&r, op->type == IL_OP_RUN_START ? "run_get" : "x_take");
    il__remote_put_text(&r, "tenant", op->tenant);
    if (op->type == IL_OP_RUN_START) {
        il__remote_put_text(&r, "id", op->in.run.id);
    } else {
        il__remote_put_text(&r, "key", op->key);
        il__remote_put_text(&r, "holder", op->holder);
    }
    if (!il__remote_end(&r))
        return il__error_set(reterr, IL_NOMEM, "out of memory for breaking a deadlock");
    il_status st = il__remote_send_alone(s, &r, false, &a, reterr);
    if (st != IL_OK)
        return st;
    if (op->type == IL_OP_RUN_START && !il__remote_decode_runs(op, a.reply.head))
        return il__error_set(reterr, IL_NOMEM, "out of memory for a run");
    op->out.fence = 0;
    il__op_end(op, IL_DEADLOCK, why);
    return IL_OK;
}

static il_status
answer_search(struct remote_store *s, il_op *op, struct remote_budget *left, bool *ret_repeat,
              il_error *reterr)
{
    struct il__buf AUTO_BUF why    = { .n_bytes_max = 4096 };
    uint64_t                victim = 0;
    bool                    found  = false;
    const char             *holder = op->holder;

    il_status st =
        il__remote_search(s, op->tenant, &holder, 1, left, &victim, &why, &found, reterr);
    if (st != IL_OK || !found)
        return st;
    if (victim == op->out.ticket)
        return tell_cycle(s, op, il__buf_str(&why), reterr);
    *ret_repeat = true; /* another was cancelled, perhaps of this key: its turn may have come */
    return IL_OK;
}

/* ---- schedules ------------------------------------------------------------------------------- */

/* Add a field to a finished request. */
static bool
put_more(struct remote_request *r, const char *name, int64_t number)
{
    CHECK(r->json.n_bytes > 0);
    r->json.n_bytes--; /* the bracket */
    il__remote_put_number(r, name, number);
    return il__remote_end(r);
}

static il_status
answer_next(const il_op *op, struct remote_request *r, const struct remote_reply *reply,
            il_error *reterr)
{
    struct il__cron cron;

    /* as il__queue_check() saw */
    CHECK(il__cron_parse_entry(op->in.cron.schedule, &cron, NULL) == IL_OK);
    int64_t next_ms = il__cron_next(&cron, il__remote_number(reply->head, "wall_ms"));
    if (!put_more(r, "next_ms", next_ms))
        return il__error_set(reterr, IL_NOMEM, "out of memory for a schedule");
    return IL_OK;
}

/* The ticks of one due entry, as fields of an x_tick. Returns their cost in the budget. */
static uint32_t
put_ticks(struct remote_request *r, const json_t *row, int64_t wall_ms, uint32_t budget,
          bool *ret_more)
{
    struct il__cron cron;
    char            id[IL_ID_BYTES_MAX + 1];
    const char     *schedule = il__remote_text(row, "schedule");
    int64_t         next_ms  = il__remote_number(row, "next_at_ms");
    uint32_t        n_used   = 0;
    bool            any      = false;

    il__remote_put_text(r, "schedule", schedule);
    il__remote_put_number(r, "was_ms", next_ms);
    il__buf_adds(&r->json, ",\"ticks\":[");
    if (!il__cron_restore(schedule, &cron)) { /* a damaged row: it never ticks again */
        next_ms = IL__TICK_NEVER;
        n_used  = 1;
    }
    while (next_ms <= wall_ms && n_used < budget) {
        int64_t tick_ms =
            il__cron_take(&cron, (il_missed)il__remote_number(row, "missed"), wall_ms, &next_ms);
        n_used++;
        if (tick_ms == IL__NEVER)
            continue;
        il__cron_job_id(il__remote_text(row, "tenant"), il__remote_text(row, "name"), tick_ms, id);
        il__buf_addf(&r->json, "%s[%" PRId64 ",\"%s\"]", any ? "," : "", tick_ms, id);
        any = true;
    }
    il__buf_addc(&r->json, ']');
    il__remote_put_number(r, "next_ms", MIN(next_ms, IL__TICK_NEVER));
    *ret_more = next_ms <= wall_ms;
    return n_used;
}

il_status
il__remote_tick(struct remote_store *s, const struct remote_reply *reply, uint32_t budget,
                uint32_t *ret_pushed, bool *ret_more, il_error *reterr)
{
    int64_t wall_ms = il__remote_number(reply->head, "wall_ms");

    *ret_pushed = 0;
    *ret_more   = false;
    for (size_t i = 0; i < reply->n_parts; i++) {
        struct remote_request AUTO_REQUEST r   = { 0 };
        struct remote_answer AUTO_ANSWER   a   = { 0 };
        const json_t                      *row = reply->parts[i].json;
        if (budget == 0) {
            *ret_more = true;
            return IL_OK;
        }
        il__remote_begin(&r, "x_tick");
        il__remote_put_text(&r, "tenant", il__remote_text(row, "tenant"));
        il__remote_put_text(&r, "key", il__remote_text(row, "queue"));
        il__remote_put_text(&r, "name", il__remote_text(row, "name"));
        budget -= put_ticks(&r, row, wall_ms, budget, ret_more);
        if (!il__remote_end(&r))
            return il__error_set(reterr, IL_NOMEM, "out of memory for a schedule");
        il_status st = il__remote_send_alone(s, &r, false, &a, reterr);
        if (st != IL_OK)
            return st;
        *ret_pushed += (uint32_t)il__remote_number(a.reply.head, "pushed");
    }
    return IL_OK;
}

/* ---- which ----------------------------------------------------------------------------------- */

il_status
il__remote_answer_questions(struct remote_store *s, il_op *op, struct remote_request *r,
                            const struct remote_reply *reply, struct remote_budget *left,
                            bool *ret_repeat, il_error *reterr)
{
    const char *what = il__remote_text(reply->head, "ask");
    uint32_t    n_pushed;
    bool        more;
    il_status   st;

    *ret_repeat = false;
    if (strcmp(what, "search") == 0)
        return answer_search(s, op, left, ret_repeat, reterr);
    if (strcmp(what, "next") == 0) {
        st = answer_next(op, r, reply, reterr);
    } else if (strcmp(what, "tick") == 0) {
        st = il__remote_tick(s, reply, IL__TICKS_MAX, &n_pushed, &more, reterr);
        if (st == IL_OK && !put_more(r, "ticked", 1))
            st = il__error_set(reterr, IL_NOMEM, "out of memory for a claim");
    } else {
        return il__error_set(reterr, IL_STORE, "%s: unknown request '%s' from the store",
                             s->via->name, what);
    }
    *ret_repeat = st == IL_OK;
    return st;
}
