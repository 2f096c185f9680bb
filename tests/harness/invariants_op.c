/*
 * invariants_op.c: checks the invariants that only the results of ops show.
 */
#include <inttypes.h>

#include "harness/invariants_internal.h"

/* A token of a key is greater than all before. */
static bool
look_at_token(struct t_watch *w, char kind, const il_op *op, char why[T_WHY_BYTES])
{
    struct t_seen *s = t_seen_find(&w->seen, kind, op->tenant, op->key);

    if (op->out.fence <= s->newest)
        return t_broken(why, "'%s': token %" PRIu64 " after %" PRIu64, op->key, op->out.fence,
                        s->newest);
    s->newest = op->out.fence;
    return true;
}

/* The value that is shown is never an older one than was shown before. */
static bool
look_at_hit(struct t_watch *w, const il_op *op, char why[T_WHY_BYTES])
{
    struct t_seen *s = t_seen_find(&w->seen, T_SEEN_CACHE, op->tenant, op->key);

    if (op->out.fence < s->seq)
        return t_broken(why, "'%s': the value of %" PRIu64 " after that of %" PRIu64, op->key,
                        op->out.fence, s->seq);
    s->seq = op->out.fence;
    return true;
}

/* Invariant 3 of queue.md: with these claims, how many lie within the rate's period? */
static bool
look_at_rate(struct t_watch *w, const il_op *op, int64_t now_ms, char why[T_WHY_BYTES])
{
    struct t_seen *s = t_seen_find(&w->seen, T_SEEN_QUEUE, op->tenant, op->key);
    int64_t        n = 0;

    if (s->limits[1] <= 0)
        return true;
    for (size_t i = 0; i < op->out.n_jobs; i++)
        t_seen_add_time(s, now_ms);
    for (size_t i = s->n_times; i-- > 0 && now_ms - s->times[i] < (int64_t)s->sum;)
        n++;
    if (n > s->limits[1])
        return t_broken(
            why, "queue %s: %" PRId64 " claims within %" PRIu64 " ms, %" PRId64 " are allowed",
            op->key, n, s->sum, s->limits[1]);
    return true;
}

static bool
look_at_claim(struct t_watch *w, const il_op *op, int64_t now_ms, char why[T_WHY_BYTES])
{
    for (size_t i = 0; i < op->out.n_jobs; i++) {
        const il_job_info *job = &op->out.jobs[i];
        if (job->state != IL_JOB_RUNNING || job->is_parent != 0 ||
            strcmp(job->queue, op->key) != 0 || strcmp(job->worker, op->holder) != 0)
            return t_broken(why, "job %s was claimed: %s, of %s, by '%s'", job->id,
                            il_job_state_name(job->state), job->queue, job->worker);
        if (i > 0 && job->token <= op->out.jobs[i - 1].token)
            return t_broken(why, "job %s was claimed with an older token than the one before",
                            job->id);
    }
    return look_at_rate(w, op, now_ms, why);
}

bool
t_watch_op(struct t_watch *w, const il_op *op, int64_t now_ms, char why[T_WHY_BYTES])
{
    bool again = (op->out.flags & IL_OUT_RENEWED) != 0;

    if (op->type == IL_OP_JOB_CLAIM && op->status == IL_OK && !again)
        return look_at_claim(w, op, now_ms, why);
    if (op->type == IL_OP_ONCE_BEGIN && op->status == IL_OK && !again)
        return look_at_token(w, T_SEEN_ONCE, op, why);
    if (op->type == IL_OP_CACHE_LOOKUP && op->status == IL_LEAD && !again)
        return look_at_token(w, T_SEEN_CACHE, op, why);
    if ((op->type == IL_OP_CACHE_LOOKUP || op->type == IL_OP_CACHE_GET) && op->status == IL_HIT)
        return look_at_hit(w, op, why);
    return true;
}
