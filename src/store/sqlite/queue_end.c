/*
 * queue_end.c: what workers and operators do to a job in the SQLite engine: heartbeat, finish,
 * fail, snooze; cancel, retry, seal. The decision tables are in src/core/queue.md; core/job.c
 * decides the new contents of the row.
 */
#include "base/arena.h"
#include "core/op.h"
#include "store/sqlite/queue_internal.h"

/* The job that an op names, recovered if its claim is dead. If it does not exist, *ret_q is NULL
 * and the status NOT_FOUND. */
static bool
find_named(struct sq_store *s, il_op *op, struct sq_job *job, struct sq_queue **ret_q)
{
    bool found;
    bool recovered;

    *ret_q     = NULL;
    op->status = IL_NOT_FOUND;
    if (!il__sq_job_find(&s->conn, &s->scratch, op->tenant, op->in.job.id, job, &found))
        return false;
    if (!found)
        return true;
    op->status = IL_OK;
    return il__sq_queue_of(s, job->queue_no, ret_q) &&
           il__sq_job_recover(s, *ret_q, job, &recovered);
}

/* Write a job and, if it has ended, update its parent. */
static bool
write_and_look(struct sq_store *s, struct sq_queue *q, struct sq_job *job, struct sq_was was,
               const il_op *op)
{
    bool finished = op->type == IL_OP_JOB_FINISH;

    return il__sq_job_write(s, q, job, was, finished ? op->in.job.data : NULL,
                            finished ? op->in.job.data_bytes : 0) &&
           (!il__job_ended(job->j.state) || il__sq_parent_try_end(s, job->parent));
}

/* ---- ops of the worker that has claimed it --------------------------------------------------- */

/* Has a finished job this result? */
static bool
has_result(struct sq_conn *c, const struct sq_job *job, const il_job_in *in, bool *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_job_result);

    return il__sq_bind_int(c, row, 1, job->queue_no) &&
           il__sq_bind_int(c, row, 2, (int64_t)job->j.state) &&
           il__sq_bind_int(c, row, 3, (int64_t)job->j.seq) &&
           il__sq_has_blob(c, row, in->data, in->data_bytes, ret);
}

static bool
answer_late(struct sq_store *s, il_op *op, struct sq_queue *q, const struct sq_job *job)
{
    struct il__job_env env;
    bool               same = false;

    if (op->type == IL_OP_JOB_FINISH && job->j.state == IL_JOB_COMPLETED &&
        !has_result(&s->conn, job, &op->in.job, &same))
        return false;
    if (!il__sq_job_env(s, q, job, &env) || !il__sq_job_answer(s, op, q, job))
        return false;
    il__job_answer_late(op, &job->j, &env, same, job->worker);
    return true;
}

static void
change(const il_op *op, struct sq_job *job, const struct il__job_env *env)
{
    const char *text = op->in.job.text;
    const char *error;

    switch (op->type) {
    case IL_OP_JOB_HEARTBEAT:
        il__job_heartbeat(&job->j, env, op);
        if (text != NULL)
            job->message = text;
        break;
    case IL_OP_JOB_FINISH:
        il__job_finish(&job->j, env);
        break;
    case IL_OP_JOB_FAIL:
        error = il__job_fail(&job->j, env, op);
        if (error != NULL)
            job->error = error;
        break;
    default:
        CHECK(op->type == IL_OP_JOB_SNOOZE);
        il__job_snooze(&job->j, env, op);
        break;
    }
}

bool
il__sq_job_end(struct sq_store *s, il_op *op)
{
    struct il__job_env env;
    struct sq_job      job;
    struct sq_queue   *q;

    if (!find_named(s, op, &job, &q))
        return false;
    if (q == NULL)
        return true;
    if (!il__job_held(&job.j, op->fence))
        return answer_late(s, op, q, &job);
    struct sq_was was = il__sq_was(&job);
    if (!il__sq_job_env(s, q, &job, &env))
        return false;
    change(op, &job, &env);
    if (!write_and_look(s, q, &job, was, op) || !il__sq_job_answer(s, op, q, &job))
        return false;
    if (op->type == IL_OP_JOB_HEARTBEAT && job.j.cancelled) {
        op->out.flags |= IL_OUT_CANCEL;
        il__op_end(op, IL_OK, job.error);
    }
    return true;
}

/* ---- operators ------------------------------------------------------------------------------- */

static bool
cancel_one(struct sq_store *s, struct sq_queue *q, struct sq_job *job, const il_op *op)
{
    struct sq_was      was = il__sq_was(job);
    struct il__job_env env;

    if (!il__sq_job_env(s, q, job, &env))
        return false;
    const char *error =
        il__job_cancel(&job->j, &env, (op->flags & IL_CANCEL_NOW) != 0, op->in.job.text);
    if (error != NULL)
        job->error = error;
    return write_and_look(s, q, job, was, op);
}

bool
il__sq_job_cancel(struct sq_store *s, il_op *op)
{
    struct sq_job    job;
    struct sq_queue *q;

    if (!find_named(s, op, &job, &q))
        return false;
    if (q == NULL)
        return true;
    if (job.j.state == IL_JOB_RUNNING && !il__sq_wake(s, IL__BOARD_BREAK))
        return false; /* notify its worker, or those of its children */
    if (!il__job_ended(job.j.state) &&
        !(job.j.is_parent ? il__sq_parent_cancel(s, q, &job, op) : cancel_one(s, q, &job, op)))
        return false;
    return il__sq_job_answer(s, op, q, &job);
}

/* Another job that keeps the unique key of a job that is to live again. */
static bool
find_keeper(struct sq_store *s, const struct sq_job *job, struct sq_job *ret, bool *ret_kept)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_unique_find);
    struct sq_seqs  seqs;
    bool            found;

    *ret_kept = false;
    if (job->unique_key[0] == '\0' || !il__job_retry_revives(&job->j))
        return true;
    if (!il__sq_bind_int(c, row, 1, job->queue_no) ||
        !il__sq_bind_text(c, row, 2, job->unique_key) || !il__sq_seqs(c, &s->scratch, row, &seqs))
        return false;
    if (seqs.n == 0 || (uint64_t)seqs.items[0] == job->j.seq)
        return true;
    if (!il__sq_job_find_seq(c, &s->scratch, seqs.items[0], ret, &found))
        return false;
    *ret_kept = found && il__job_keeps_key(&ret->j, s->state.wall_ms);
    return true;
}

bool
il__sq_job_retry(struct sq_store *s, il_op *op)
{
    struct il__job_env env;
    struct sq_job      job;
    struct sq_job      keeper;
    struct sq_queue   *q;
    const char        *detail;
    bool               kept;

    if (!find_named(s, op, &job, &q))
        return false;
    if (q == NULL)
        return true;
    if (!find_keeper(s, &job, &keeper, &kept))
        return false;
    if (kept) {
        if (!il__sq_job_answer(s, op, q, &keeper))
            return false;
        op->status = IL_DUPLICATE;
        return true;
    }
    struct sq_was was = il__sq_was(&job);
    if (!il__sq_job_env(s, q, &job, &env))
        return false;
    il_status st = il__job_retry(&job.j, &env, &detail);
    if (st == IL_OK && !il__sq_job_write(s, q, &job, was, NULL, 0))
        return false;
    if (!il__sq_job_answer(s, op, q, &job))
        return false;
    il__op_end(op, st, detail);
    return true;
}

bool
il__sq_job_seal(struct sq_store *s, il_op *op)
{
    struct il__job_env env;
    struct sq_job      job;
    struct sq_queue   *q;
    const char        *detail;

    if (!find_named(s, op, &job, &q))
        return false;
    if (q == NULL)
        return true;
    struct sq_was was = il__sq_was(&job);
    if (!il__sq_job_env(s, q, &job, &env))
        return false;
    il_status st = il__job_seal(&job.j, &env, &detail);
    if (st == IL_OK && !il__job_ended(job.j.state) &&
        !(il__sq_job_write(s, q, &job, was, NULL, 0) && il__sq_end_parent(s, q, &job)))
        return false;
    if (!il__sq_job_answer(s, op, q, &job))
        return false;
    il__op_end(op, st, detail);
    return true;
}
