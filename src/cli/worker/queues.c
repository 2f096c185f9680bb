/*
 * queues.c: the queues of a worker: which one it looks into next, and what it tells the store about
 * itself.
 *
 * The choice is a smooth weighted round robin: each look adds its weight to every queue's credit,
 * takes the queue with the greatest credit, and subtracts the sum of the weights from it. So 3:1 is
 * a a b a, not a a a b. Queues that were empty are left out until a job was found elsewhere or the
 * worker has waited: an empty queue costs the others nothing.
 */
#include "base/error.h"
#include "base/parse.h"
#include "cli/worker/task.h"

struct il__worker_queue *
il__worker_next_queue(struct il__worker *w)
{
    struct il__worker_queue *best = NULL;
    int64_t                  sum  = 0;

    for (size_t i = 0; i < w->n_queues; i++) {
        struct il__worker_queue *q = &w->queues[i];
        if (q->empty)
            continue;
        q->credit += q->weight;
        sum += q->weight;
        if (best == NULL || q->credit > best->credit)
            best = q;
    }
#ifdef IL_MUTANT_weights_are_ignored
    for (size_t i = 0; i < w->n_queues && best != NULL; i++) {
        if (!w->queues[i].empty)
            return &w->queues[i];
    }
#endif
    if (best != NULL)
        best->credit -= sum;
    return best;
}

void
il__worker_look_again(struct il__worker *w)
{
    for (size_t i = 0; i < w->n_queues; i++)
        w->queues[i].empty = false;
}

/* Does the queue exist, and what is its lease? */
static il_status
open_queue(struct il__worker *w, struct il__worker_queue *q, il_error *reterr)
{
    const struct il__worker_opts *o  = w->opts;
    il_op                         op = { .type = IL_OP_QUEUE_LIST };

    op.in.list.prefix = q->name;
    op.in.list.limit  = 1;
    if (o->create)
        op = (il_op){ .type = IL_OP_QUEUE_SET, .key = q->name };
    il_status st    = il_apply(w->store, &op, 1, reterr);
    bool      found = st == IL_OK && op.status == IL_OK && op.out.n_queues > 0 &&
                 strcmp(op.out.queues[0].name, q->name) == 0;
    if (st == IL_OK && op.status != IL_OK)
        st = il__error_set(reterr, op.status, "queue work: %s",
                           op.out.detail != NULL ? op.out.detail : il_status_text(op.status));
    else if (st == IL_OK && !found)
        st =
            il__error_set(reterr, IL_NOT_FOUND,
                          "queue work: no such queue: '%.80s'; use --create to create it", q->name);
    if (st == IL_OK)
        q->lease_ms = o->lease_ms != 0 ? o->lease_ms : op.out.queues[0].opts.lease_ms;
    il_op_release(&op);
    return st;
}

il_status
il__worker_open_queues(struct il__worker *w, il_error *reterr)
{
    const struct il__worker_opts *o = w->opts;
    char                          grace[IL__DURATION_TEXT_BYTES];
    char                          lease[IL__DURATION_TEXT_BYTES];

    w->lease_ms = INT64_MAX;
    for (size_t i = 0; i < w->n_queues; i++) {
        il_status st = open_queue(w, &w->queues[i], reterr);
        if (st != IL_OK)
            return st;
        w->lease_ms = MIN(w->lease_ms, w->queues[i].lease_ms);
    }
    w->grace_ms = MIN(o->grace_ms, w->lease_ms / 3);
    if (!o->strict || o->grace_ms <= w->lease_ms / 3)
        return IL_OK;
    return il__error_set(
        reterr, IL_INVAL, "queue work: --grace %s is more than a third of the lease of %s",
        il__duration_text(o->grace_ms, grace), il__duration_text(w->lease_ms, lease));
}

/* A store whose functions are older than us does not know of leaving, and may have given a job. */
static void
give_back(struct il__worker *w, const il_op *claim)
{
    for (size_t i = 0; i < claim->out.n_jobs; i++) {
        il_op op     = { .type = IL_OP_JOB_SNOOZE, .fence = claim->out.jobs[i].token };
        op.in.job.id = claim->out.jobs[i].id;
        IGNORE(il_apply(w->store, &op, 1, NULL)); /* else its claim expires */
        il_op_release(&op);
    }
}

void
il__worker_leave(struct il__worker *w)
{
#ifdef IL_MUTANT_worker_stays
    return;
#endif
    for (size_t i = 0; i < w->n_queues; i++) {
        il_op op = { .type   = IL_OP_JOB_CLAIM,
                     .flags  = IL_CLAIM_LEAVE,
                     .key    = w->queues[i].name,
                     .holder = w->name };
        char  id[37];
        op.in.job.id = il_uuid(id) == IL_OK ? id : w->name;
        IGNORE(il_apply(w->store, &op, 1, NULL));
        give_back(w, &op);
        il_op_release(&op);
    }
}
