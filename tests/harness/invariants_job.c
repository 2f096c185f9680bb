/*
 * invariants_job.c: checks the invariants of src/core/queue.md, as far as listings show them.
 */
#include <inttypes.h>

#include "harness/invariants_internal.h"

#define PAGES_MAX 200

struct jobs { /* of one tenant; a test looks thousands of times, mostly at few */
    il_op               pages[PAGES_MAX];
    size_t              n_pages;
    const il_job_info **items;
    size_t              n;
    size_t              n_max;
};

static bool
is_live(const il_job_info *job)
{
    return job->state == IL_JOB_SCHEDULED || job->state == IL_JOB_READY ||
           job->state == IL_JOB_RUNNING;
}

/* ---- one job --------------------------------------------------------------------------------- */

static bool
look_at_job(const il_job_info *job, char why[T_WHY_BYTES])
{
    bool running = job->state == IL_JOB_RUNNING;

    if (job->state == IL_JOB_NONE || job->state >= IL_JOB_STATE_COUNT || job->seq == 0)
        return t_broken(why, "job %s is in state %d", job->id, (int)job->state);
    if (job->attempt > job->max_attempts)
        return t_broken(why, "job %s: attempt %u of %u", job->id, job->attempt, job->max_attempts);
    if (running && job->is_parent == 0 &&
        (job->attempt == 0 || job->token == 0 || job->worker[0] == '\0'))
        return t_broken(why, "job %s is RUNNING: attempt %u, token %" PRIu64 ", worker '%s'",
                        job->id, job->attempt, job->token, job->worker);
    if (job->is_parent != 0 && (job->token != 0 || job->state == IL_JOB_READY))
        return t_broken(why, "parent %s is %s with token %" PRIu64, job->id,
                        il_job_state_name(job->state), job->token);
    if (is_live(job) != (job->completed_at_ms == 0))
        return t_broken(why, "job %s is %s, completed at %" PRId64, job->id,
                        il_job_state_name(job->state), job->completed_at_ms);
    if (!running && job->remaining_ms != 0)
        return t_broken(why, "job %s is %s with %" PRId64 " ms left", job->id,
                        il_job_state_name(job->state), job->remaining_ms);
    return true;
}

/* Invariants 1 and 6: tokens grow, and what was completed stays so. */
static bool
look_at_past(struct t_watch *w, const il_job_info *job, char why[T_WHY_BYTES])
{
    struct t_seen *s   = t_seen_find(&w->seen, T_SEEN_JOB, job->tenant, job->id);
    uint64_t       sum = 0;

    if (job->seq < s->seq)
        return t_broken(why, "job %s has an older place than before", job->id);
    if (job->seq > s->seq) { /* the one before was purged */
        s->seq    = job->seq;
        s->newest = 0;
        s->sum    = 0;
    }
    if (job->token < s->newest)
        return t_broken(why, "job %s: token %" PRIu64 " after %" PRIu64, job->id, job->token,
                        s->newest);
    s->newest = job->token;
    if (job->state == IL_JOB_COMPLETED)
        sum =
            t_sum_number(t_sum_number(t_sum_number(1, job->token), (uint64_t)job->completed_at_ms),
                         job->attempt);
    if (s->sum != 0 && s->sum != sum)
        return t_broken(why, "job %s was completed, and has changed to %s", job->id,
                        il_job_state_name(job->state));
    s->sum = sum;
    return true;
}

/* ---- jobs beside each other ------------------------------------------------------------------ */

static int
by_token(const void *a, const void *b)
{
    const il_job_info *x = *(const il_job_info *const *)a;
    const il_job_info *y = *(const il_job_info *const *)b;

    return (x->token > y->token) - (x->token < y->token);
}

/* Invariant 1: no attempt has the token of another one. Sorts. */
static bool
look_at_tokens(struct jobs *jobs, char why[T_WHY_BYTES])
{
    if (jobs->n == 0)
        return true;
    qsort(jobs->items, jobs->n, sizeof jobs->items[0], by_token);
    for (size_t i = 1; i < jobs->n; i++) {
        if (jobs->items[i]->token != 0 && jobs->items[i]->token == jobs->items[i - 1]->token)
            return t_broken(why, "jobs %s and %s have one token", jobs->items[i]->id,
                            jobs->items[i - 1]->id);
    }
    return true;
}

/* Invariant 4. */
static bool
look_at_unique(const struct jobs *jobs, const il_job_info *job, char why[T_WHY_BYTES])
{
    for (size_t i = 0; i < jobs->n && is_live(job); i++) {
        const il_job_info *it = jobs->items[i];
        if (it != job && is_live(it) && strcmp(it->unique_key, job->unique_key) == 0 &&
            strcmp(it->queue, job->queue) == 0)
            return t_broken(why, "jobs %s and %s are both live with unique key %s", it->id, job->id,
                            job->unique_key);
    }
    return true;
}

/* Invariant 2: more than the limit may run only if it was lowered, and then no more are added. */
static bool
look_at_group(struct t_watch *w, const struct jobs *jobs, const il_job_info *job,
              char why[T_WHY_BYTES])
{
    char    name[IL_QUEUE_BYTES_MAX + IL_KEY_BYTES_MAX + 2];
    int64_t n = 0;

    for (size_t i = 0; i < jobs->n; i++) {
        const il_job_info *it = jobs->items[i];
        n += it->state == IL_JOB_RUNNING && it->is_parent == 0 &&
             strcmp(it->group, job->group) == 0 && strcmp(it->queue, job->queue) == 0;
    }
    const struct t_seen *queue    = t_seen_find(&w->seen, T_SEEN_QUEUE, job->tenant, job->queue);
    int64_t              limit    = queue->limits[0];
    int64_t              n_before = 0;
    (void)snprintf(name, sizeof name, "%s %s", job->queue, job->group);
    struct t_seen *group = t_seen_find(&w->seen, T_SEEN_GROUP, job->tenant, name);
    n_before             = (int64_t)group->newest;
    group->newest        = (uint64_t)n;
    if (limit > 0 && n > limit && n > n_before)
        return t_broken(
            why, "group %s of %s: %" PRId64 " are running, %" PRId64 " before, limit %" PRId64,
            job->group, job->queue, n, n_before, limit);
    return true;
}

/* Invariant 5. Children are younger than the parent: one of the same id may have been there before.
 * A failed child may be retried after its parent has ended, a completed one cannot. */
static bool
look_at_parent(const struct jobs *jobs, const il_job_info *parent, char why[T_WHY_BYTES])
{
    unsigned n = 0, n_completed = 0, n_failed = 0;

    for (size_t i = 0; i < jobs->n; i++) {
        const il_job_info *it = jobs->items[i];
        if (it->seq < parent->seq || strcmp(it->parent, parent->id) != 0)
            continue;
        n++;
        n_completed += it->state == IL_JOB_COMPLETED;
        n_failed += it->state == IL_JOB_FAILED || it->state == IL_JOB_CANCELLED;
    }
    if (n != parent->n_children || n_completed != parent->n_children_completed ||
        n_failed != parent->n_children_failed)
        return t_broken(why, "parent %s says %u/%u/%u, its children are %u/%u/%u", parent->id,
                        parent->n_children, parent->n_children_completed, parent->n_children_failed,
                        n, n_completed, n_failed);
    if (parent->state == IL_JOB_COMPLETED && n_completed < n)
        return t_broken(why, "parent %s is COMPLETED with %u of %u children", parent->id,
                        n_completed, n);
    return true;
}

static bool
look_at_all(struct t_watch *w, struct jobs *jobs, char why[T_WHY_BYTES])
{
    if (!look_at_tokens(jobs, why))
        return false;
    for (size_t i = 0; i < jobs->n; i++) {
        const il_job_info *job = jobs->items[i];
        if (!look_at_job(job, why) || !look_at_past(w, job, why) ||
            (job->unique_key[0] != '\0' && !look_at_unique(jobs, job, why)) ||
            (job->group[0] != '\0' && !look_at_group(w, jobs, job, why)) ||
            (job->is_parent != 0 && !look_at_parent(jobs, job, why)))
            return false;
    }
    return true;
}

/* ---- queues ---------------------------------------------------------------------------------- */

/* What its rows say is what they are; its settings are what the next looks are measured by. */
static bool
look_at_queue(struct t_watch *w, const struct jobs *jobs, size_t i_first, const il_queue_info *q,
              char why[T_WHY_BYTES])
{
    struct t_seen *s                     = t_seen_find(&w->seen, T_SEEN_QUEUE, q->tenant, q->name);
    uint64_t       n[IL_JOB_STATE_COUNT] = { 0 };

    for (size_t i = i_first; i < jobs->n; i++)
        n[jobs->items[i]->state % IL_JOB_STATE_COUNT]++;
    if (n[IL_JOB_SCHEDULED] != q->n_scheduled || n[IL_JOB_READY] != q->n_ready ||
        n[IL_JOB_RUNNING] != q->n_running || n[IL_JOB_FAILED] != q->n_failed)
        return t_broken(why,
                        "queue %s says %" PRIu64 "/%" PRIu64 "/%" PRIu64 "/%" PRIu64
                        ", its jobs are %" PRIu64 "/%" PRIu64 "/%" PRIu64 "/%" PRIu64,
                        q->name, q->n_scheduled, q->n_ready, q->n_running, q->n_failed,
                        n[IL_JOB_SCHEDULED], n[IL_JOB_READY], n[IL_JOB_RUNNING], n[IL_JOB_FAILED]);
    int64_t limit = q->opts.group_limit;
    /* One that was lowered, or set, since the last look may have been used in full before. */
    s->limits[0] = s->limits[0] <= 0 || limit <= 0 ? -1 : MAX(limit, s->limits[0]);
    if (s->limits[1] != q->opts.rate_n)
        s->n_times = 0;
    s->limits[1] = q->opts.rate_n;
    s->sum       = (uint64_t)q->opts.rate_ms;
    return true;
}

/* The settings as they are now, for the next look. */
static void
keep_limit(struct t_watch *w, const il_queue_info *q)
{
    t_seen_find(&w->seen, T_SEEN_QUEUE, q->tenant, q->name)->limits[0] = q->opts.group_limit;
}

static void
add_job(struct jobs *jobs, const il_job_info *job)
{
    if (jobs->n == jobs->n_max) {
        jobs->n_max = MAX(2 * jobs->n_max, 64);
        jobs->items = realloc(jobs->items, jobs->n_max * sizeof(const il_job_info *));
        CHECK(jobs->items != NULL);
    }
    jobs->items[jobs->n++] = job;
}

static bool
list_jobs(il *h, struct jobs *jobs, const il_queue_info *q, char why[T_WHY_BYTES])
{
    const char *cursor = NULL;
    uint64_t    before = UINT64_MAX;

    do {
        if (jobs->n_pages == PAGES_MAX)
            return t_broken(why, "queue %s: too many jobs for this test", q->name);
        il_op *op          = &jobs->pages[jobs->n_pages++];
        *op                = (il_op){ .type = IL_OP_JOB_LIST, .tenant = q->tenant, .key = q->name };
        op->in.list.limit  = IL_PAGE_ITEMS_MAX;
        op->in.list.cursor = cursor;
        if (!t_watch_page(h, op, why))
            return false;
        for (size_t i = 0; i < op->out.n_jobs; i++) {
            if (op->out.jobs[i].seq >= before)
                return t_broken(why, "job %s stands in the wrong place", op->out.jobs[i].id);
            before = op->out.jobs[i].seq;
            add_job(jobs, &op->out.jobs[i]);
        }
        cursor = op->out.next;
    } while (cursor != NULL);
    return true;
}

bool
t_watch_jobs(struct t_watch *w, il *h, const char *tenant, char why[T_WHY_BYTES])
{
    il_op        queues = { .type = IL_OP_QUEUE_LIST, .tenant = tenant };
    struct jobs *jobs   = calloc(1, sizeof *jobs);

    CHECK(jobs != NULL);
    queues.in.list.limit = IL_PAGE_ITEMS_MAX;
    bool ok              = t_watch_page(h, &queues, why);
    for (size_t i = 0; ok && i < queues.out.n_queues; i++) {
        size_t i_first = jobs->n;
        ok             = list_jobs(h, jobs, &queues.out.queues[i], why) &&
             look_at_queue(w, jobs, i_first, &queues.out.queues[i], why);
    }
    ok = ok && look_at_all(w, jobs, why);
    for (size_t i = 0; ok && i < queues.out.n_queues; i++)
        keep_limit(w, &queues.out.queues[i]);
    for (size_t i = 0; i < jobs->n_pages; i++)
        il_op_release(&jobs->pages[i]);
    il_op_release(&queues);
    free(jobs->items);
    free(jobs);
    return ok;
}
