/*
 * queue_parent.c: parents and children. One statement computes the counts from the children's rows.
 *
 * Doing so for each of n children would read n * n / 2 rows before the parent ends. So two lookups
 * first check whether it can end: is a child still live, and what number has the last child?
 * Children of a live parent are not purged, so that number is the count of all children so far.
 */
#include "base/arena.h"
#include "store/sqlite/queue_internal.h"

bool
il__sq_children_pushed(struct sq_store *s, int64_t parent, uint64_t *ret_n)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_job_children_pushed);

    if (!il__sq_bind_int(c, row, 1, parent) || il__sq_step(c, row) != SQLITE_ROW)
        return false;
    *ret_n = (uint64_t)MAX(sqlite3_column_int64(row, 0), 0);
    return il__sq_stmt_run(c, row);
}

bool
il__sq_children_count(struct sq_conn *c, uint64_t parent, struct il__children *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_job_children_count);

    if (!il__sq_bind_int(c, row, 1, (int64_t)parent) || il__sq_step(c, row) != SQLITE_ROW)
        return false;
    *ret = (struct il__children){ .n           = (uint64_t)sqlite3_column_int64(row, 0),
                                  .n_completed = (uint64_t)sqlite3_column_int64(row, 1),
                                  .n_failed    = (uint64_t)sqlite3_column_int64(row, 2) };
    return il__sq_stmt_run(c, row);
}

static bool
live_children(struct sq_store *s, const struct sq_job *parent, int64_t n_max, struct sq_seqs *ret)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_job_children_live);

    return il__sq_bind_int(c, row, 1, (int64_t)parent->j.seq) &&
           il__sq_bind_int(c, row, 2, n_max) && il__sq_seqs(c, &s->scratch, row, ret);
}

/* Could it end now? */
static bool
may_end(struct sq_store *s, const struct sq_job *parent, bool *ret)
{
    struct sq_seqs live;
    uint64_t       n;

    *ret = false;
    if (!live_children(s, parent, 1, &live))
        return false;
    if (live.n > 0)
        return true;
    if (!il__sq_children_pushed(s, (int64_t)parent->j.seq, &n))
        return false;
    *ret = parent->j.is_sealed || (parent->j.n_children > 0 && n >= parent->j.n_children);
    return true;
}

/* ---- its end --------------------------------------------------------------------------------- */

struct child {
    int64_t        queue_no;
    struct il__job j;
};

static bool
unkeep(struct sq_store *s, struct child *child)
{
    struct sq_conn  *c = &s->conn;
    struct sq_queue *q;

    if (!il__sq_queue_of(s, child->queue_no, &q))
        return false;
    il__job_unkeep(&child->j, &q->opts, s->state.wall_ms);
    sqlite3_stmt *stmt = il__sq_use(c, SQ_job_done_unkeep);
    return il__sq_bind_int(c, stmt, 1, child->queue_no) &&
           il__sq_bind_int(c, stmt, 2, (int64_t)child->j.state) &&
           il__sq_bind_int(c, stmt, 3, (int64_t)child->j.seq) &&
           il__sq_bind_int(c, stmt, 4, child->j.purge_at_ms) && il__sq_stmt_run(c, stmt);
}

/* The children may be purged from now on. Their order is that of il_job_parent, which this does not
 * change. */
static bool
unkeep_children(struct sq_store *s, const struct sq_job *parent)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_job_children_done);
    int             rc;

    if (!il__sq_bind_int(c, row, 1, (int64_t)parent->j.seq))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        int64_t      state = sqlite3_column_int64(row, 1);
        struct child child = {
            .queue_no = sqlite3_column_int64(row, 0),
            .j        = { .seq             = (uint64_t)sqlite3_column_int64(row, 2),
                          .state           = (il_job_state)state,
                          .unique_until_ms = sqlite3_column_int64(row, 3) },
        };
        if (!unkeep(s, &child)) {
            (void)sqlite3_reset(row); /* report the other error */
            return false;
        }
    }
    return rc == SQLITE_DONE;
}

bool
il__sq_end_parent(struct sq_store *s, struct sq_queue *q, struct sq_job *parent)
{
    struct sq_was       was = il__sq_was(parent);
    struct il__children children;
    struct il__job_env  env;
    const char         *error;
    char                text[IL__CHILDREN_TEXT_BYTES];
    bool                may;

    if (il__job_ended(parent->j.state))
        return true;
    if (!may_end(s, parent, &may))
        return false;
    if (!may)
        return true;
    if (!il__sq_children_count(&s->conn, parent->j.seq, &children) ||
        !il__sq_job_env(s, q, parent, &env))
        return false;
    if (!il__job_end_parent(&parent->j, &env, &children, text, &error))
        return true;
    if (error != NULL)
        parent->error = il__arena_strdup(&s->scratch, error);
    if (parent->error == NULL)
        return il__sq_no_memory(&s->conn);
    return il__sq_job_write(s, q, parent, was, NULL, 0) && unkeep_children(s, parent);
}

bool
il__sq_parent_try_end(struct sq_store *s, int64_t parent)
{
    struct sq_job    job;
    struct sq_queue *q;
    bool             found;

    if (parent == 0)
        return true;
    if (!il__sq_job_live(&s->conn, &s->scratch, parent, &job, &found))
        return false;
    return !found || !job.j.is_parent ||
           (il__sq_queue_of(s, job.queue_no, &q) && il__sq_end_parent(s, q, &job));
}

/* ---- cancelling it --------------------------------------------------------------------------- */

static bool
cancel_child(struct sq_store *s, int64_t seq, const il_op *op)
{
    struct sq_queue   *q;
    struct sq_job      job;
    struct il__job_env env;
    bool               found;

    if (!il__sq_job_live(&s->conn, &s->scratch, seq, &job, &found))
        return false;
    if (!found || job.j.is_parent)
        return true;
    struct sq_was was = il__sq_was(&job);
    if (!il__sq_queue_of(s, job.queue_no, &q) || !il__sq_job_env(s, q, &job, &env))
        return false;
    const char *error =
        il__job_cancel(&job.j, &env, (op->flags & IL_CANCEL_NOW) != 0, op->in.job.text);
    if (error != NULL)
        job.error = error;
    return il__sq_job_write(s, q, &job, was, NULL, 0);
}

bool
il__sq_parent_cancel(struct sq_store *s, struct sq_queue *q, struct sq_job *parent, const il_op *op)
{
    struct sq_was      was = il__sq_was(parent);
    struct il__job_env env;
    struct sq_seqs     live;

    if (!il__sq_job_env(s, q, parent, &env))
        return false;
    const char *error = il__job_cancel_parent(&parent->j, &env, op->in.job.text);
    if (error != NULL)
        parent->error = error;
    if (!il__sq_job_write(s, q, parent, was, NULL, 0) || !live_children(s, parent, -1, &live))
        return false;
    for (size_t i = 0; i < live.n; i++) {
        if (!cancel_child(s, live.items[i], op))
            return false;
    }
    return il__sq_end_parent(s, q, parent);
}
