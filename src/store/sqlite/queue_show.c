/*
 * queue_show.c: jobs and queues as an op shows them; get and listings on the SQLite engine. They change nothing and work on either
 * connection.
 */
#include "base/arena.h"
#include "core/limits.h"
#include "core/op.h"
#include "store/sqlite/queue_internal.h"

/* ---- one job ---------------------------------------------------------------------------------------------------------------- */

/* Bytes with a NUL behind them. */
static const void *
put(char **at, const void *data, size_t n_bytes)
{
    const char *copy = il__put(at, data, n_bytes);

    *(*at)++ = '\0';
    return copy;
}

bool
il__sq_job_show(struct sq_conn *c, const struct sq_state *st, il_op *op, const char *queue,
                const struct sq_job *job, const void *payload, size_t payload_bytes)
{
    const char *const   texts[] = { op->tenant,     queue,      job->id,
                                    job->parent_id, job->group, job->unique_key,
                                    job->worker,    job->error, job->message };
    size_t              n_bytes[ARRAY_LEN(texts)];
    size_t              n_all    = payload_bytes + 1;
    struct il__children children = { 0 };
    il_job_info         info     = { 0 };
    const char **const  fields[] = { &info.tenant, &info.queue, &info.id,
                                     &info.parent, &info.group, &info.unique_key,
                                     &info.worker, &info.error, &info.message };

    if (job->j.is_parent && !il__sq_children_count(c, job->j.seq, &children))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        n_all += (n_bytes[i] = strlen(texts[i])) + 1;
    char        *at   = il__op_alloc(op, n_all); /* room for all of it, taken at once */
    il_job_info *slot = il__op_append(op, &op->out.jobs, &op->out.n_jobs, sizeof *slot);
    if (at == NULL || slot == NULL)
        return il__sq_no_memory(c);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *fields[i] = put(&at, texts[i], n_bytes[i]);
    il__job_show(&job->j, &children, st->now_ms, st->wall_ms, &info);
    if (payload != NULL) {
        info.payload       = put(&at, payload, payload_bytes);
        info.payload_bytes = payload_bytes;
    }
    *slot = info;
    if (op->out.n_jobs == 1 && op->type != IL_OP_JOB_LIST) {
        op->out.fence        = info.token;
        op->out.remaining_ms = info.remaining_ms;
    }
    return true;
}

bool
il__sq_job_answer(struct sq_store *s, il_op *op, const struct sq_queue *q, const struct sq_job *job)
{
    return il__sq_job_show(&s->conn, &s->state, op, q->name, job, NULL, 0);
}

/* The name of a queue, by its number. */
static bool
queue_name(struct sq_conn *c, void **arena, int64_t no, const char **ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_queue_load_no);

    *ret = "";
    if (!il__sq_bind_int(c, row, 1, no))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    *ret = il__arena_strdup(arena, il__sq_text(row, 2));
    if (*ret == NULL) {
        (void)sqlite3_reset(row);
        return il__sq_no_memory(c);
    }
    return il__sq_run(c, row);
}

/* A blob of job_blobs into the op's results: its size, and behind it the blob, which is NULL when it is larger than n_max. */
static bool
read_blob(struct sq_conn *c, sqlite3_stmt *row, int column, int64_t n_max, il_op *op,
          const void **ret, size_t *ret_bytes)
{
    int64_t     n_bytes = MAX(sqlite3_column_int64(row, column), 0);
    const void *data    = n_bytes <= n_max ? sqlite3_column_blob(row, column + 1) : NULL;

    *ret_bytes = (size_t)n_bytes;
    if (n_bytes > n_max)
        return true;
    if (n_bytes == 0 || data != NULL)
        *ret = il__op_blob(op, data, *ret_bytes);
    return *ret != NULL || il__sq_no_memory(c);
}

/* Add payload and result to the job that was shown last, each if it has at most n_max bytes, and their sizes. */
static bool
show_blobs(struct sq_conn *c, il_op *op, const struct sq_job *job, int64_t n_max)
{
    sqlite3_stmt *row    = il__sq_use(c, SQ_job_blobs);
    size_t        offset = (op->out.n_jobs - 1) * sizeof(il_job_info);
    il_job_info   info   = op->out.jobs[op->out.n_jobs - 1];

    if (!il__sq_bind_int(c, row, 1, (int64_t)job->j.seq) ||
        !il__sq_bind_int(c, row, 2, (int64_t)job->j.state) || !il__sq_bind_int(c, row, 3, n_max))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE && il__sq_corrupt(c);
    bool ok = read_blob(c, row, 0, n_max, op, &info.payload, &info.payload_bytes) &&
              read_blob(c, row, 2, n_max, op, &info.result, &info.result_bytes);
    (void)sqlite3_reset(row); /* there is no second row */
    /* The array is the op's own; it is const for whoever reads the results. */
    memcpy((char *)(uintptr_t)op->out.jobs + offset, &info, sizeof info);
    return ok;
}

bool
il__sq_job_get(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op)
{
    struct sq_job job;
    const char   *queue;
    bool          found;

    if (!il__sq_job_find(c, arena, op->tenant, op->in.job.id, &job, &found))
        return false;
    op->status = found ? IL_OK : IL_NOT_FOUND;
    if (!found)
        return true;
    return queue_name(c, arena, job.queue_no, &queue) &&
           il__sq_job_show(c, st, op, queue, &job, NULL, 0) && show_blobs(c, op, &job, INT64_MAX);
}

/* ---- pages of jobs -------------------------------------------------------------------------------------------------------------- */

/* The number of a queue; 0 when there is none. */
static bool
queue_number(struct sq_conn *c, const il_op *op, int64_t *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_queue_load);

    *ret = 0;
    if (!il__sq_bind_text(c, row, 1, op->tenant) || !il__sq_bind_text(c, row, 2, op->key))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    *ret = sqlite3_column_int64(row, 0);
    return il__sq_run(c, row);
}

/* The seqs of a page and one more. */
static bool
read_page(struct sq_conn *c, const struct sq_state *st, void **arena, const il_op *op,
          struct sq_seqs *ret)
{
    const il_list_in *in     = &op->in.list;
    uint64_t          before = INT64_MAX;
    const char       *id;
    int64_t           no  = 0;
    sqlite3_stmt     *row = il__sq_use(c, op->key != NULL ? SQ_job_list : SQ_job_list_all);

    if (in->cursor != NULL)
        CHECK(il__cursor_parse(in->cursor, &id, &before));
    if (op->key != NULL && !queue_number(c, op, &no))
        return false;
    return (op->key != NULL ? il__sq_bind_int(c, row, 1, no)
                            : il__sq_bind_text(c, row, 1, op->tenant)) &&
           il__sq_bind_int(c, row, 2, (int64_t)before) &&
           il__sq_bind_int(c, row, 3, in->states != 0 ? in->states : UINT32_MAX) &&
           il__sq_bind_int(c, row, 4, st->wall_ms) &&
           il__sq_bind_int(c, row, 5, (int64_t)in->limit + 1) && il__sq_seqs(c, arena, row, ret);
}

bool
il__sq_job_list(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op)
{
    struct sq_seqs seqs;
    struct sq_job  job   = { 0 };
    const char    *queue = op->key;
    bool           found;

    op->status = IL_OK;
    if (!read_page(c, st, arena, op, &seqs))
        return false;
    for (size_t i = 0; i < MIN(seqs.n, op->in.list.limit); i++) {
        if (!il__sq_job_find_seq(c, arena, seqs.items[i], &job, &found))
            return false;
        if (!found)
            return il__sq_corrupt(c);
        if ((op->key == NULL && !queue_name(c, arena, job.queue_no, &queue)) ||
            !il__sq_job_show(c, st, op, queue, &job, NULL, 0) ||
            !show_blobs(c, op, &job, IL_TEXT_BYTES_MAX))
            return false;
    }
    if (seqs.n > op->in.list.limit)
        op->out.next = il__op_cursor(op, job.id, job.j.seq);
    return seqs.n <= op->in.list.limit || op->out.next != NULL || il__sq_no_memory(c);
}

/* ---- queues ------------------------------------------------------------------------------------------------------------------------ */

/* The smallest of run_at_ms that three columns have; IL__NEVER without any. */
static int64_t
oldest_run_at(sqlite3_stmt *row, int column)
{
    int64_t oldest = IL__NEVER;

    for (int i = column; i < column + 3; i++) {
        if (sqlite3_column_type(row, i) != SQLITE_NULL)
            oldest = MIN(oldest, sqlite3_column_int64(row, i));
    }
    return oldest;
}

static bool
read_depth(struct sq_conn *c, const struct sq_state *st, int64_t no, il_queue_info *info)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_queue_depth);

    if (!il__sq_bind_int(c, row, 1, no) || !il__sq_bind_int(c, row, 2, st->wall_ms) ||
        !il__sq_bind_int(c, row, 3, st->now_ms - IL__WORKER_SEEN_MS) ||
        il__sq_step(c, row) != SQLITE_ROW)
        return false;
    uint64_t n_live   = (uint64_t)sqlite3_column_int64(row, 4);
    info->n_scheduled = (uint64_t)sqlite3_column_int64(row, 0);
    info->n_ready     = (uint64_t)(sqlite3_column_int64(row, 1) + sqlite3_column_int64(row, 2) +
                               sqlite3_column_int64(row, 3));
    info->n_running   = n_live - MIN(n_live, info->n_scheduled + info->n_ready); /* what is left */
    info->n_dead      = (uint64_t)sqlite3_column_int64(row, 5);
    int64_t oldest    = oldest_run_at(row, 6);
    info->oldest_ms   = oldest != IL__NEVER ? MAX(st->wall_ms - oldest, 0) : 0;
    info->n_workers   = (uint32_t)sqlite3_column_int64(row, 9);
    return il__sq_run(c, row);
}

bool
il__sq_queue_show(struct sq_conn *c, const struct sq_state *st, il_op *op, const struct sq_queue *q)
{
    il_queue_info info = {
        .tenant = il__op_strdup(op, q->tenant),
        .name   = il__op_strdup(op, q->name),
        .reason = il__op_strdup(op, q->reason),
        .paused = q->paused,
        .opts   = q->opts,
    };

    il__totals_show(&q->totals, &info);
    if (!read_depth(c, st, q->no, &info))
        return false;
    il_queue_info *slot = il__op_append(op, &op->out.queues, &op->out.n_queues, sizeof *slot);
    if (slot == NULL || info.tenant == NULL || info.name == NULL || info.reason == NULL)
        return il__sq_no_memory(c);
    *slot = info;
    return true;
}

bool
il__sq_queue_list(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op)
{
    const il_list_in *in  = &op->in.list;
    sqlite3_stmt     *row = il__sq_use(c, SQ_queue_list);
    int               rc;

    op->status = IL_OK;
    if (!il__sq_bind_names(c, row, op))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        struct sq_queue q;
        if (op->out.n_queues == in->limit) {
            (void)sqlite3_reset(row); /* the rest is for the next page */
            op->out.next = il__op_cursor(op, op->out.queues[in->limit - 1].name, 0);
            return op->out.next != NULL || il__sq_no_memory(c);
        }
        if (!il__sq_queue_row(c, arena, row, &q) || !il__sq_queue_show(c, st, op, &q)) {
            (void)sqlite3_reset(row); /* the error to tell is the other one */
            return false;
        }
    }
    return rc == SQLITE_DONE;
}
