/*
 * overview.c: GET /overview: counts the tenant's objects and lists leases that expire soon. Lists
 * are counted up to COUNT_MAX, so that the cost is bounded however many locks there are.
 */
#include "http/handler.h"

#define COUNT_MAX 1000
#define EXPIRING_MAX 20 /* leases that are named, and as many runs */
#define PAGES_MAX 20 /* of one listing: a page may be short, or even empty, and have a next one */

enum kind {
    LOCKS,
    WAITERS,
    RUNS,
    QUEUES,
    KINDS
};

struct asking {
    struct http_overview shown;
    il_op                ops[KINDS]; /* of the listings that are not complete */
    enum kind            kinds[KINDS];
    size_t               n;
    unsigned             n_pages;
};

static void
add(struct http_few *few, uint64_t n)
{
    few->n += n;
    if (few->n > COUNT_MAX) {
        few->n = COUNT_MAX;
        few->is |= HTTP_IS_MORE;
    }
}

/* Less than a fifth of its TTL is left: holders renew long before. The lock of a classic client of
 * Redis may have no end. */
static bool
is_expiring(int64_t ttl_ms, int64_t remaining_ms)
{
    return remaining_ms != IL_FOREVER && remaining_ms < ttl_ms / 5;
}

static const char *
copy(struct http_request *r, const char *text)
{
    size_t n   = strlen(text) + 1;
    char  *ret = http_alloc(r, n);

    return ret != NULL ? memcpy(ret, text, n) : "";
}

/* The texts are of an op that is released before the answer is written. */
static void
name_expiring(struct http_request *r, struct http_expiring *list, size_t *n,
              struct http_expiring one)
{
#ifdef IL_MUTANT_expiring_not_named
    return;
#endif
    if (list == NULL || *n == EXPIRING_MAX)
        return;
    one.key      = copy(r, one.key);
    one.holder   = copy(r, one.holder);
    one.run      = one.run != NULL ? copy(r, one.run) : NULL;
    list[(*n)++] = one;
}

static void
take_leases(struct http_request *r, struct http_overview *o, const il_op *op)
{
    add(&o->locks, op->out.n_items);
    for (size_t i = 0; i < op->out.n_items; i++) {
        const il_lease_info *l = &op->out.items[i];
        if (l->state != IL_LEASE_HELD || !is_expiring(l->ttl_ms, l->remaining_ms))
            continue;
        add(&o->expiring, 1);
        name_expiring(r, o->leases_expiring, &o->n_leases_expiring,
                      (struct http_expiring){ .key          = l->key,
                                              .holder       = l->holder,
                                              .ttl_ms       = l->ttl_ms,
                                              .remaining_ms = l->remaining_ms });
    }
}

static void
take_runs(struct http_request *r, struct http_overview *o, const il_op *op)
{
    add(&o->runs, op->out.n_runs);
    for (size_t i = 0; i < op->out.n_runs; i++) {
        const il_run_info *run = &op->out.runs[i];
        if (is_expiring(run->ttl_ms, run->remaining_ms))
            name_expiring(r, o->runs_expiring, &o->n_runs_expiring,
                          (struct http_expiring){ .key          = run->key,
                                                  .holder       = run->holder,
                                                  .run          = run->id,
                                                  .ttl_ms       = run->ttl_ms,
                                                  .remaining_ms = run->remaining_ms });
    }
}

static void
take_queues(struct http_overview *o, const il_op *op)
{
    add(&o->queues, op->out.n_queues);
    for (size_t i = 0; i < op->out.n_queues; i++) {
        const il_queue_info *q = &op->out.queues[i];
        add(&o->scheduled, q->n_scheduled);
        add(&o->ready, q->n_ready);
        add(&o->running, q->n_running);
        add(&o->failed, q->n_failed);
    }
}

/* Returns the count that decides whether another page is read. */
static struct http_few *
take(struct http_request *r, struct http_overview *o, enum kind kind, const il_op *op)
{
    switch (kind) {
    case LOCKS:
        take_leases(r, o, op);
        return &o->locks;
    case WAITERS:
        add(&o->waiters, op->out.n_items);
        return &o->waiters;
    case RUNS:
        take_runs(r, o, op);
        return &o->runs;
    case QUEUES:
    case KINDS:
    default:
        take_queues(o, op);
        return &o->queues;
    }
}

/* Keep the listings that need another page. False: out of memory. */
static bool
turn_pages(struct http_request *r, struct asking *a)
{
    size_t n = 0;

    for (size_t i = 0; i < a->n; i++) {
        struct http_few *few    = take(r, &a->shown, a->kinds[i], &a->ops[i]);
        const char      *next   = a->ops[i].out.next;
        bool             more   = next != NULL && few->n < COUNT_MAX && a->n_pages < PAGES_MAX;
        char            *cursor = more ? http_alloc(r, strlen(next) + 1) : NULL;
        if (more && cursor == NULL)
            return false;
        if (more)
            memcpy(cursor, next, strlen(next) + 1);
        else if (next != NULL)
            few->is |= HTTP_IS_MORE;
        il_op_release(&a->ops[i]);
        if (!more)
            continue;
        a->ops[n]                = a->ops[i];
        a->ops[n].in.list.cursor = cursor;
        a->kinds[n++]            = a->kinds[i];
    }
    a->n = n;
    return true;
}

static void
counted(struct http_request *r)
{
    struct asking        *a = r->state;
    struct http_overview *o = &a->shown;

    for (size_t i = 0; i < a->n; i++) {
        if (a->ops[i].status != IL_OK) {
            http_fail_op(r, &a->ops[i], NULL);
            return;
        }
    }
    a->n_pages++;
    if (!turn_pages(r, a)) {
        http_fail_nomem(r);
        return;
    }
    if (a->n > 0) {
        http_do_ops(r, a->ops, a->n, 0, counted);
        return;
    }
    /* what is counted of a part of the rows only */
    o->expiring.is |= o->locks.is;
    o->scheduled.is |= o->queues.is;
    o->ready.is |= o->queues.is;
    o->running.is |= o->queues.is;
    o->failed.is |= o->queues.is;
    http_say(r, 200, &http_out_overview, o);
}

void
http_overview_get(struct http_request *r)
{
    static const struct {
        il_op_type type;
        uint32_t   flags, states;
    } rows[KINDS] = {
        [LOCKS]   = { IL_OP_LIST, 0, 0 },
        [WAITERS] = { IL_OP_LIST, IL_LIST_WAITERS, 0 },
        [RUNS]    = { IL_OP_RUN_LIST, 0, 1U << IL_RUN_RUNNING },
        [QUEUES]  = { IL_OP_QUEUE_LIST, 0, 0 },
    };
    struct asking *a = http_calloc(r, sizeof *a);

    if (a == NULL)
        return;
    *a = (struct asking){
        .n                     = KINDS,
        .shown.leases_expiring = http_alloc(r, EXPIRING_MAX * sizeof(struct http_expiring)),
        .shown.runs_expiring   = http_alloc(r, EXPIRING_MAX * sizeof(struct http_expiring)),
    };
    for (size_t i = 0; i < KINDS; i++) {
        a->kinds[i] = (enum kind)i;
        a->ops[i]   = (il_op){ .type    = rows[i].type,
                               .flags   = rows[i].flags,
                               .in.list = { .limit = COUNT_MAX, .states = rows[i].states } };
    }
    r->state = a;
    http_do_ops(r, a->ops, a->n, 0, counted);
}
