/*
 * queue_sweep.c: what happens to jobs without an op: recovers dead claims, runs due schedules and
 * deletes jobs past their retention; also the purge that an operator requests. Everything goes
 * through an index and is bounded.
 */
#include "base/arena.h"
#include "core/limits.h"
#include "core/op.h"
#include "store/sqlite/queue_internal.h"

/* The seqs that a statement with two parameters finds: not after `at`, at most n. */
static bool
find(struct sq_store *s, enum sq_stmt stmt, int64_t at, uint32_t n, struct sq_seqs *ret)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, stmt);

    return il__sq_bind_int(c, row, 1, at) && il__sq_bind_int(c, row, 2, n) &&
           il__sq_seqs(c, &s->scratch, row, ret);
}

static bool
recover(struct sq_store *s, il_op *op)
{
    uint32_t         limit = op->in.list.limit;
    struct sq_seqs   seqs;
    struct sq_job    job;
    struct sq_queue *q;
    bool             found;

    if (!find(s, SQ_job_expired, s->state.now_ms, limit + 1, &seqs))
        return false;
    for (size_t i = 0; i < MIN(seqs.n, limit); i++) {
        if (!il__sq_job_live(&s->conn, &s->scratch, seqs.items[i], &job, &found) ||
            (found &&
             (!il__sq_queue_of(s, job.queue_no, &q) || !il__sq_job_recover(s, q, &job, &found))))
            return false;
        op->out.sweep.n_jobs += found;
    }
    if (seqs.n > limit)
        op->out.flags |= IL_OUT_MORE;
    return true;
}

static bool
tick(struct sq_store *s, il_op *op)
{
    uint32_t n;
    bool     more;

    if (!il__sq_cron_tick(s, NULL, NULL, op->in.list.limit, &n, &more))
        return false;
    op->out.sweep.n_ticks += n;
    if (more)
        op->out.flags |= IL_OUT_MORE;
    return true;
}

/* Delete a job by its number; it may have been deleted meanwhile. */
static bool
delete_one(struct sq_store *s, int64_t seq, uint32_t *n)
{
    struct sq_job    job;
    struct sq_queue *q;
    bool             found;

    if (!il__sq_job_find_seq(&s->conn, &s->scratch, seq, &job, &found))
        return false;
    if (!found || job.j.state == IL_JOB_RUNNING)
        return true;
    ++*n;
    return il__sq_queue_of(s, job.queue_no, &q) && il__sq_job_delete(s, q, &job);
}

static bool
delete_old(struct sq_store *s, il_op *op)
{
    uint32_t       limit = op->in.list.limit;
    struct sq_seqs seqs;

    if (!find(s, SQ_job_purge_due, s->state.wall_ms, limit + 1, &seqs))
        return false;
    for (size_t i = 0; i < MIN(seqs.n, limit); i++) {
        if (!delete_one(s, seqs.items[i], &op->out.sweep.n_purged))
            return false;
    }
    if (seqs.n > limit)
        op->out.flags |= IL_OUT_MORE;
    return true;
}

/* Delete workers whose last claim is over. The list is read first, because it would otherwise meet
 * the deleted rows. */
static bool
forget_workers(struct sq_store *s, const il_op *op)
{
    struct sq_conn *c     = &s->conn;
    sqlite3_stmt   *row   = il__sq_use(c, SQ_worker_old);
    struct sq_seqs  seqs  = { 0 };
    uint32_t        limit = op->in.list.limit;
    const char    **names = il__arena_alloc(&s->scratch, limit * sizeof *names);
    int64_t        *nos   = il__arena_alloc(&s->scratch, limit * sizeof *nos);
    int             rc;

    if (names == NULL || nos == NULL)
        return il__sq_no_memory(c);
    if (!il__sq_bind_int(c, row, 1, s->state.now_ms - IL__WORKER_SEEN_MS) ||
        !il__sq_bind_int(c, row, 2, limit))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        nos[seqs.n]   = sqlite3_column_int64(row, 0);
        names[seqs.n] = il__arena_strdup(&s->scratch, il__sq_text(row, 1));
        if (names[seqs.n++] == NULL) {
            (void)sqlite3_reset(row); /* report the lack of memory */
            return il__sq_no_memory(c);
        }
    }
    for (size_t i = 0; rc == SQLITE_DONE && i < seqs.n; i++) {
        sqlite3_stmt *stmt = il__sq_use(c, SQ_worker_remove);
        if (!il__sq_bind_int(c, stmt, 1, nos[i]) || !il__sq_bind_text(c, stmt, 2, names[i]) ||
            !il__sq_stmt_run(c, stmt))
            return false;
    }
    return rc == SQLITE_DONE;
}

bool
il__sq_queue_sweep(struct sq_store *s, il_op *op)
{
    return recover(s, op) && tick(s, op) && delete_old(s, op) && forget_workers(s, op);
}

bool
il__sq_queue_overdue(struct sq_conn *c, const struct sq_state *st, bool *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_job_overdue);

    return il__sq_bind_int(c, row, 1, st->now_ms) && il__sq_bind_int(c, row, 2, st->wall_ms) &&
           il__sq_bind_int(c, row, 3, st->now_ms - IL__WORKER_SEEN_MS) && il__sq_ask(c, row, ret);
}

bool
il__sq_job_purge(struct sq_store *s, il_op *op)
{
    struct sq_conn   *c   = &s->conn;
    const il_list_in *in  = &op->in.list;
    sqlite3_stmt     *row = il__sq_use(c, SQ_job_purgeable);
    struct sq_queue  *q;
    struct sq_seqs    seqs;

    op->status = IL_OK;
    if (!il__sq_queue_find(s, op->tenant, op->key, &q))
        return false;
    if (q == NULL)
        return true;
    if (!il__sq_bind_int(c, row, 1, q->no) ||
        !il__sq_bind_int(c, row, 2, s->state.wall_ms - in->older_ms) ||
        !il__sq_bind_int(c, row, 3, in->states) || !il__sq_bind_int(c, row, 4, s->state.wall_ms) ||
        !il__sq_bind_int(c, row, 5, (int64_t)in->limit + 1) ||
        !il__sq_seqs(c, &s->scratch, row, &seqs))
        return false;
    for (size_t i = 0; i < MIN(seqs.n, in->limit); i++) {
        if (!delete_one(s, seqs.items[i], &op->out.sweep.n_purged))
            return false;
    }
    if (seqs.n > in->limit)
        op->out.flags |= IL_OUT_MORE;
    return true;
}
