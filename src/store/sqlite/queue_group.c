/*
 * queue_group.c: groups with a limit: which jobs are in the claiming order, and which wait apart
 * until the group has room.
 *
 * Invariant, for each group of a queue with a limit: if a READY job is blocked (lane 4), then
 * running + ready (lane 2) >= limit, and every ready job comes before every blocked one. So a claim
 * takes from lane 2 without counting, in the right order, and never sees the backlog of a full
 * group. A claim changes neither side. A job enters when it becomes READY, and leaves when it stops
 * being running or ready; each costs a few lookups in one index.
 */
#include "core/queue.h"
#include "store/sqlite/queue_internal.h"

static bool
is_limited(const struct sq_queue *q, const struct sq_job *job)
{
    return job->group[0] != '\0' && q->opts.group_limit != IL_FOREVER;
}

/* How many jobs of the group are running or ready, without `job`; counted up to the limit. */
static bool
count(struct sq_conn *c, const struct sq_queue *q, const struct sq_job *job, uint64_t *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_job_group_count);

    if (!il__sq_bind_int(c, row, 1, q->no) || !il__sq_bind_text(c, row, 2, job->group) ||
        !il__sq_bind_int(c, row, 3, (int64_t)job->j.seq) ||
        !il__sq_bind_int(c, row, 4, q->opts.group_limit) || il__sq_step(c, row) != SQLITE_ROW)
        return false;
    *ret = (uint64_t)sqlite3_column_int64(row, 0);
    return il__sq_stmt_run(c, row);
}

/* The place in the claiming order of the job that a statement finds. seq 0 if there is none. */
static bool
find(struct sq_conn *c, enum sq_stmt stmt, const struct sq_queue *q, const struct sq_job *job,
     struct il__job *ret)
{
    sqlite3_stmt *row = il__sq_use(c, stmt);

    *ret = (struct il__job){ 0 };
    if (!il__sq_bind_int(c, row, 1, q->no) || !il__sq_bind_text(c, row, 2, job->group))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    ret->seq       = (uint64_t)sqlite3_column_int64(row, 0);
    ret->priority  = sqlite3_column_int(row, 1);
    ret->run_at_ms = sqlite3_column_int64(row, 2);
    return il__sq_stmt_run(c, row);
}

static bool
move(struct sq_conn *c, const struct sq_queue *q, uint64_t seq, enum il__job_lane kind)
{
    sqlite3_stmt *stmt = il__sq_use(c, SQ_job_lane);

    return il__sq_bind_int(c, stmt, 1, (int64_t)seq) &&
           il__sq_bind_int(c, stmt, 2, il__sq_lane(q->no, kind)) && il__sq_stmt_run(c, stmt);
}

bool
il__sq_group_enter(struct sq_store *s, const struct sq_queue *q, struct sq_job *job)
{
    struct sq_conn *c = &s->conn;
    struct il__job  other;
    uint64_t        n;

    job->blocked = false;
    if (!is_limited(q, job))
        return true;
    if (!count(c, q, job, &n))
        return false;
    if (il__queue_group_free(&q->opts, n)) {
        /* One place is free. It goes to the first blocked job, if that comes before this one. */
        if (!find(c, SQ_job_group_blocked, q, job, &other))
            return false;
        job->blocked = other.seq != 0 && il__job_before(&other, &job->j);
        return !job->blocked || move(c, q, other.seq, IL__LANE_READY);
    }
    /* None is free. This job takes the place of the last ready one, if it comes before that. */
    if (!find(c, SQ_job_group_last, q, job, &other))
        return false;
    job->blocked = other.seq == 0 || !il__job_before(&job->j, &other);
    return job->blocked || move(c, q, other.seq, IL__LANE_BLOCKED);
}

bool
il__sq_group_leave(struct sq_store *s, struct sq_queue *q, const struct sq_job *job)
{
    struct sq_conn *c = &s->conn;
    struct il__job  next;
    uint64_t        n;

    if (!is_limited(q, job))
        return true;
    if (!find(c, SQ_job_group_blocked, q, job, &next))
        return false;
    if (next.seq == 0)
        return true;
    if (!count(c, q, job, &n))
        return false;
    return !il__queue_group_free(&q->opts, n) ||
           (move(c, q, next.seq, IL__LANE_READY) && il__sq_queue_wake(s, q));
}
