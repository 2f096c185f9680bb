/*
 * queue_show.c: formats jobs and queues for replies; get and listings in the SQLite engine. They
 * change nothing and work on either connection.
 */
#include "base/arena.h"
#include "core/cursor.h"
#include "core/limits.h"
#include "core/op.h"
#include "store/sqlite/queue_internal.h"

/* ---- one job --------------------------------------------------------------------------------- */

/* Bytes with a terminating NUL. */
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
    il_job_info *slot = il__arena_append(&op->mem, &op->out.jobs, &op->out.n_jobs, sizeof *slot);
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
    return il__sq_stmt_run(c, row);
}

/* Copy a blob of job_blobs into the op's results: its size, followed by the blob, which is NULL if
 * it is larger than n_max. */
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

/* Add payload and result to the job that was shown last, if they have at most n_max bytes, and
 * their sizes. */
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
              (info.state != IL_JOB_COMPLETED ||
               read_blob(c, row, 2, n_max, op, &info.result, &info.result_bytes));
    (void)sqlite3_reset(row); /* there is no second row */
    /* The op owns the array; it is const only for readers of the results. */
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

/* ---- pages of jobs --------------------------------------------------------------------------- */

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
    return il__sq_stmt_run(c, row);
}

/* Jobs that a page shows, newest first, and one more to detect a next page. */
struct listed {
    uint64_t *seqs;
    size_t    n;
    size_t    n_max;
    uint64_t  before; /* where the page begins */
    uint64_t  floor;  /* below this, scheduled jobs were not checked; 0 = all were */
};

static int
newest_first(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return *x > *y ? -1 : *x < *y;
}

/* Add the newest of one queue. */
static bool
list_queue(struct sq_conn *c, const struct sq_state *st, const il_op *op, int64_t no,
           struct listed *l)
{
    int64_t       above = l->n == l->n_max ? (int64_t)l->seqs[l->n - 1] : 0;
    sqlite3_stmt *row   = il__sq_use(c, SQ_job_list);
    int           rc;

    if (!il__sq_bind_int(c, row, 1, no) || !il__sq_bind_int(c, row, 2, (int64_t)l->before) ||
        !il__sq_bind_int(c, row, 3, op->in.list.states != 0 ? op->in.list.states : UINT32_MAX) ||
        !il__sq_bind_int(c, row, 4, st->wall_ms) ||
        !il__sq_bind_int(c, row, 5, (int64_t)l->n_max) || !il__sq_bind_int(c, row, 6, above) ||
        !il__sq_bind_int(c, row, 7, (int64_t)l->n_max + IL__LOOK_MAX))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW)
        l->seqs[l->n++] = (uint64_t)sqlite3_column_int64(row, 0);
    qsort(l->seqs, l->n, sizeof *l->seqs, newest_first);
    l->n = MIN(l->n, l->n_max);
    return rc == SQLITE_DONE;
}

/* The page is not full: were all scheduled jobs of the queue checked? */
static bool
find_floor(struct sq_conn *c, int64_t no, struct listed *l)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_job_list_floor);

    if (!il__sq_bind_int(c, row, 1, no) || !il__sq_bind_int(c, row, 2, (int64_t)l->before) ||
        !il__sq_bind_int(c, row, 3, (int64_t)l->n_max + IL__LOOK_MAX))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    l->floor = MAX(l->floor, (uint64_t)sqlite3_column_int64(row, 0));
    return il__sq_stmt_run(c, row);
}

/* For the op's queue, or all queues of the tenant: through an index of each, whatever it holds. */
static bool
list_queues(struct sq_conn *c, const struct sq_state *st, void **arena, const il_op *op,
            struct listed *l)
{
    uint32_t       some   = op->in.list.states & (1U << IL_JOB_SCHEDULED | 1U << IL_JOB_READY);
    struct sq_seqs nos    = { 0 };
    int64_t        one_no = 0;

    if (op->key != NULL) {
        nos = (struct sq_seqs){ &one_no, 1 };
        if (!queue_number(c, op, &one_no))
            return false;
    } else {
        sqlite3_stmt *row = il__sq_use(c, SQ_queue_numbers);
        if (!il__sq_bind_text(c, row, 1, op->tenant) || !il__sq_seqs(c, arena, row, &nos))
            return false;
    }
    for (size_t i = 0; i < nos.n; i++) {
        if (!list_queue(c, st, op, nos.items[i], l))
            return false;
    }
    for (size_t i = 0; i < nos.n && l->n < l->n_max && some != 0 && (some & (some - 1)) == 0; i++) {
        if (!find_floor(c, nos.items[i], l))
            return false;
    }
    while (l->n > 0 && l->seqs[l->n - 1] < l->floor)
        l->n--;
    return true;
}

static bool
show_listed(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op, int64_t seq)
{
    const char   *queue = op->key;
    struct sq_job job;
    bool          found;

    if (!il__sq_job_find_seq(c, arena, seq, &job, &found))
        return false;
    if (!found)
        return il__sq_corrupt(c);
    return (queue != NULL || queue_name(c, arena, job.queue_no, &queue)) &&
           il__sq_job_show(c, st, op, queue, &job, NULL, 0) &&
           show_blobs(c, op, &job, IL_TEXT_BYTES_MAX);
}

bool
il__sq_job_list(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op)
{
    struct listed l = { .n_max = (size_t)op->in.list.limit + 1, .before = INT64_MAX };
    const char   *id;

    op->status = IL_OK;
    if (op->in.list.cursor != NULL)
        CHECK(il__cursor_parse(op->in.list.cursor, &id, &l.before));
    l.seqs = il__arena_alloc(arena, 2 * l.n_max * sizeof *l.seqs);
    if (l.seqs == NULL)
        return il__sq_no_memory(c);
    if (!list_queues(c, st, arena, op, &l))
        return false;
    for (size_t i = 0; i < MIN(l.n, op->in.list.limit); i++) {
        if (!show_listed(c, st, arena, op, (int64_t)l.seqs[i]))
            return false;
    }
    if (l.n <= op->in.list.limit && l.floor == 0)
        return true;
    const il_job_info *last = l.n > op->in.list.limit ? &op->out.jobs[op->out.n_jobs - 1] : NULL;
    op->out.next =
        il__op_cursor(op, last != NULL ? last->id : IL__NO_ID, last != NULL ? last->seq : l.floor);
    return op->out.next != NULL || il__sq_no_memory(c);
}

/* ---- queues ---------------------------------------------------------------------------------- */

/* The smaller run_at_ms of two columns; IL__NEVER if there is none. */
static int64_t
oldest_run_at(sqlite3_stmt *row, int column)
{
    int64_t oldest = IL__NEVER;

    for (int i = column; i < column + 2; i++) {
        if (sqlite3_column_type(row, i) != SQLITE_NULL)
            oldest = MIN(oldest, sqlite3_column_int64(row, i));
    }
    return oldest;
}

static bool
read_depth(struct sq_conn *c, const struct sq_state *st, const struct sq_queue *q,
           il_queue_info *info)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_queue_depth);

    if (!il__sq_bind_int(c, row, 1, q->no) || !il__sq_bind_int(c, row, 2, st->wall_ms) ||
        !il__sq_bind_int(c, row, 3, st->now_ms - IL__WORKER_SEEN_MS) ||
        !il__sq_bind_int(c, row, 4, IL__PROMOTE_MAX) || !il__sq_bind_int(c, row, 5, IL_COUNT_MAX) ||
        il__sq_step(c, row) != SQLITE_ROW)
        return false;
    uint64_t n_due    = MIN((uint64_t)sqlite3_column_int64(row, 0), q->depth.n[IL_JOB_SCHEDULED]);
    info->n_scheduled = q->depth.n[IL_JOB_SCHEDULED] - n_due;
    info->n_ready     = q->depth.n[IL_JOB_READY] + n_due;
    info->n_running   = q->depth.n[IL_JOB_RUNNING];
    info->n_failed    = q->depth.n[IL_JOB_FAILED];
    int64_t oldest    = oldest_run_at(row, 1);
    info->oldest_ms   = oldest != IL__NEVER ? MAX(st->wall_ms - oldest, 0) : 0;
    info->n_workers   = (uint32_t)sqlite3_column_int64(row, 3);
    return il__sq_stmt_run(c, row);
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
    if (!read_depth(c, st, q, &info))
        return false;
    il_queue_info *slot =
        il__arena_append(&op->mem, &op->out.queues, &op->out.n_queues, sizeof *slot);
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
            (void)sqlite3_reset(row); /* report the other error */
            return false;
        }
    }
    return rc == SQLITE_DONE;
}
