/*
 * queue_push.c: push in the SQLite engine. The decision table is in src/core/queue.md.
 *
 * The usual push, into an existing queue and without parent or unique key, is two inserts. The
 * first one also detects an existing id, and then changes nothing.
 */
#include "core/op.h"
#include "core/queue.h"
#include "store/sqlite/queue_internal.h"

static bool
bind_or_null(struct sq_conn *c, sqlite3_stmt *stmt, int i, const char *text)
{
    if (text != NULL)
        return il__sq_bind_text(c, stmt, i, text);
    return stmt != NULL && sqlite3_bind_null(stmt, i) == SQLITE_OK;
}

static bool
bind_child(struct sq_conn *c, sqlite3_stmt *stmt, const struct sq_job *job)
{
    if (job->parent != 0)
        return il__sq_bind_int(c, stmt, 11, job->parent) &&
               il__sq_bind_int(c, stmt, 12, job->ordinal);
    return stmt != NULL && sqlite3_bind_null(stmt, 11) == SQLITE_OK &&
           sqlite3_bind_null(stmt, 12) == SQLITE_OK;
}

/* Insert the row of il_job; *ret_added is false if the id exists. */
static bool
add_row(struct sq_conn *c, const il_op *op, const struct sq_job *job, bool *ret_added)
{
    const il_job_in      *in   = &op->in.job;
    const struct il__job *j    = &job->j;
    sqlite3_stmt         *stmt = il__sq_use(c, SQ_job_add);

    bool ok =
        il__sq_bind_int(c, stmt, 1, (int64_t)j->seq) &&
        il__sq_bind_int(c, stmt, 2, job->queue_no) && il__sq_bind_text(c, stmt, 3, op->tenant) &&
        il__sq_bind_text(c, stmt, 4, in->id) && il__sq_bind_int(c, stmt, 5, j->priority) &&
        il__sq_bind_int(c, stmt, 6, j->max_attempts) && il__sq_bind_int(c, stmt, 7, j->is_parent) &&
        il__sq_bind_int(c, stmt, 8, j->n_children) && il__sq_bind_int(c, stmt, 9, j->created_ms) &&
        il__sq_bind_int(c, stmt, 10, j->unique_until_ms) && bind_child(c, stmt, job) &&
        bind_or_null(c, stmt, 13, in->parent) && bind_or_null(c, stmt, 14, in->group) &&
        bind_or_null(c, stmt, 15, in->unique_key) &&
        il__sq_bind_blob(c, stmt, 16, in->data_bytes > 0 ? in->data : "", in->data_bytes) &&
        il__sq_stmt_run(c, stmt);
    *ret_added = ok && sqlite3_changes(c->db) == 1;
    return ok;
}

bool
il__sq_push_new(struct sq_store *s, struct sq_queue *q, const il_op *op,
                const struct sq_job *parent, struct sq_job *job, bool *ret_added)
{
    const il_job_in   *in     = &op->in.job;
    struct il__totals  totals = q->totals;
    struct il__job_env env    = {
           .opts    = &q->opts,
           .totals  = &totals,
           .now_ms  = s->state.now_ms,
           .wall_ms = s->state.wall_ms,
    };

    *job = (struct sq_job){ .queue_no   = q->no,
                            .parent     = parent != NULL ? (int64_t)parent->j.seq : 0,
                            .ordinal    = parent != NULL ? parent->ordinal + 1 : 0,
                            .id         = in->id,
                            .parent_id  = in->parent != NULL ? in->parent : "",
                            .group      = in->group != NULL ? in->group : "",
                            .unique_key = in->unique_key != NULL ? in->unique_key : "",
                            .worker     = "",
                            .error      = "",
                            .message    = "" };
    il__job_push(&job->j, &env, op, s->state.ticket + 1);
    if (!add_row(&s->conn, op, job, ret_added))
        return false;
    if (!*ret_added)
        return true;
    s->state.ticket++;
    q->totals = totals;
    return il__sq_job_write(s, q, job, (struct sq_was){ IL_JOB_NONE, false }, NULL, 0);
}

/* ---- an id that exists ----------------------------------------------------------------------- */

static bool
has_payload(struct sq_conn *c, uint64_t seq, const il_job_in *in, bool *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_job_payload);

    return il__sq_bind_int(c, row, 1, (int64_t)seq) &&
           il__sq_has_blob(c, row, in->data, in->data_bytes, ret);
}

static bool
push_again(struct sq_store *s, il_op *op, struct sq_job *job)
{
    struct sq_queue *q;
    bool             recovered;
    bool             same;

    if (!il__sq_queue_of(s, job->queue_no, &q) || !il__sq_job_recover(s, q, job, &recovered) ||
        !has_payload(&s->conn, job->j.seq, &op->in.job, &same) || !il__sq_job_answer(s, op, q, job))
        return false;
    if (same && strcmp(q->name, op->key) == 0)
        op->out.flags |= IL_OUT_RENEWED;
    else
        il__op_end(op, IL_MISMATCH, IL__SAY_OTHER_JOB);
    return true;
}

/* ---- parents and unique keys ----------------------------------------------------------------- */

/* Find the parent of a push, which may accept one more child; otherwise op->status says why not.
 * Its `ordinal` is that of its last child. */
static bool
find_parent(struct sq_store *s, il_op *op, struct sq_job *ret)
{
    uint64_t    n = 0;
    const char *detail;
    bool        found;

    if (!il__sq_job_find(&s->conn, &s->scratch, op->tenant, op->in.job.parent, ret, &found))
        return false;
    if (found && ret->j.is_parent && !il__sq_children_pushed(s, (int64_t)ret->j.seq, &n))
        return false;
    il_status st = il__job_may_adopt(found ? &ret->j : NULL, n, &detail);
    if (st != IL_OK)
        il__op_end(op, st, detail);
    ret->ordinal = (int64_t)n;
    return true;
}

/* Answer DUPLICATE if another job keeps the unique key; *ret_taken says so. */
static bool
check_unique(struct sq_store *s, il_op *op, struct sq_queue *q, bool *ret_taken)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_unique_find);
    struct sq_seqs  seqs;
    struct sq_job   other;
    bool            found = false;

    *ret_taken = false;
    if (!il__sq_bind_int(c, row, 1, q->no) || !il__sq_bind_text(c, row, 2, op->in.job.unique_key) ||
        !il__sq_seqs(c, &s->scratch, row, &seqs))
        return false;
    if (seqs.n > 0 && !il__sq_job_find_seq(c, &s->scratch, seqs.items[0], &other, &found))
        return false;
    if (!found || !il__job_keeps_key(&other.j, s->state.wall_ms))
        return true;
    *ret_taken = true;
    q->totals.duplicates++;
    if (!il__sq_job_answer(s, op, q, &other))
        return false;
    op->status = IL_DUPLICATE;
    return true;
}

/* ---- push ------------------------------------------------------------------------------------ */

static bool
answer_new(struct sq_store *s, il_op *op, struct sq_queue *q, const struct sq_job *parent)
{
    struct sq_job job;
    bool          added;
    bool          found;

    if (q == NULL && !il__sq_queue_get(s, op->tenant, op->key, &q))
        return false;
    if (!il__sq_push_new(s, q, op, parent, &job, &added))
        return false;
    if (added)
        return il__sq_job_answer(s, op, q, &job);
    if (!il__sq_job_find(&s->conn, &s->scratch, op->tenant, op->in.job.id, &job, &found))
        return false;
    /* a row without its other half */
    return found ? push_again(s, op, &job) : il__sq_corrupt(&s->conn);
}

/* All checks, in order, before anything is inserted. */
static bool
push_checked(struct sq_store *s, il_op *op, struct sq_queue *q)
{
    const il_job_in *in = &op->in.job;
    struct sq_job    job;
    struct sq_job    parent;
    bool             found;
    bool             taken = false;

    if (!il__sq_job_find(&s->conn, &s->scratch, op->tenant, in->id, &job, &found))
        return false;
    if (found)
        return push_again(s, op, &job);
    if (in->parent != NULL && !find_parent(s, op, &parent))
        return false;
    if (op->status != IL_OK)
        return true;
    if (in->unique_key != NULL && q != NULL && !check_unique(s, op, q, &taken))
        return false;
    return taken || answer_new(s, op, q, in->parent != NULL ? &parent : NULL);
}

bool
il__sq_job_push(struct sq_store *s, il_op *op)
{
    const il_job_in *in = &op->in.job;
    struct sq_queue *q;

    op->status = IL_OK;
    if (!il__sq_queue_find(s, op->tenant, op->key, &q))
        return false;
    if (q == NULL || in->parent != NULL || in->unique_key != NULL)
        return push_checked(s, op, q);
    return answer_new(s, op, q, NULL);
}
