/*
 * queue_claim.c: claims in the SQLite engine. A claim takes due jobs in claiming order, as far as
 * group limits and the rate allow.
 *
 * Jobs of a full group wait in a separate lane (queue_group.c) and ended ones are in a separate
 * table, so the next jobs are always the first rows of one index. A claim reads them and marks each
 * with compare-and-set. The optimistic strategy reads IL__CANDIDATES at a time, as it would have to
 * if others could be faster; here, under the lock file, both strategies give the same result.
 */
#include "base/arena.h"
#include "core/limits.h"
#include "core/op.h"
#include "core/queue.h"
#include "store/sqlite/queue_internal.h"

#define JOB_BYTES 16 /* of il_worker.jobs: seq and token */

/* A claim in progress. */
struct claim {
    il_op           *op;
    struct sq_queue *q;
    const char      *worker;
    char            *given; /* of il_worker.jobs, with room for the requested number */
    uint32_t         n;
    uint64_t         n_bytes; /* of these */
};

/* ---- the rate -------------------------------------------------------------------------------- */

/* The clock of rates: setting the wall clock does not allow more. */
static int64_t
rate_now_ms(const struct sq_store *s)
{
#ifdef IL_MUTANT_rate_by_wall_clock
    return s->state.wall_ms;
#endif
    return s->state.now_ms;
}

static bool
has_rate(const struct sq_queue *q)
{
    return q->opts.rate_n != IL_FOREVER;
}

/* Forget starts older than the rate's period; how many of `limit` may start? */
static bool
rate_left(struct sq_store *s, const struct sq_queue *q, uint32_t limit, uint32_t *ret)
{
    struct sq_conn *c = &s->conn;

    *ret = limit;
    if (!has_rate(q))
        return true;
    sqlite3_stmt *stmt = il__sq_use(c, SQ_start_purge);
    if (!il__sq_bind_int(c, stmt, 1, q->no) ||
        !il__sq_bind_int(c, stmt, 2, rate_now_ms(s) - q->opts.rate_ms) || !il__sq_stmt_run(c, stmt))
        return false;
    sqlite3_stmt *row = il__sq_use(c, SQ_start_count);
    if (!il__sq_bind_int(c, row, 1, q->no) || il__sq_step(c, row) != SQLITE_ROW)
        return false;
    *ret = il__queue_rate_left(&q->opts, (uint64_t)MAX(sqlite3_column_int64(row, 0), 0), limit);
    return il__sq_stmt_run(c, row);
}

static bool
rate_add(struct sq_store *s, const struct sq_queue *q, uint32_t n)
{
    struct sq_conn *c = &s->conn;

    if (!has_rate(q) || n == 0)
        return true;
    sqlite3_stmt *stmt = il__sq_use(c, SQ_start_add);
    return il__sq_bind_int(c, stmt, 1, q->no) && il__sq_bind_int(c, stmt, 2, rate_now_ms(s)) &&
           il__sq_bind_int(c, stmt, 3, n) && il__sq_stmt_run(c, stmt);
}

/* The rate allows none: when will it allow one more? When as many starts have left the period as
 * are in excess now. */
static bool
rate_wait(struct sq_store *s, const struct sq_queue *q, int64_t *ret_ms)
{
    struct sq_conn *c      = &s->conn;
    sqlite3_stmt   *row    = il__sq_use(c, SQ_start_list);
    int64_t         n      = 0;
    int64_t         wait   = 0;
    int64_t         before = 0; /* of the starts, the newest rate_n are read */
    int             rc;

    for (unsigned pass = 0; pass < 2; pass++, before = n - q->opts.rate_n, n = 0) {
        if (!il__sq_bind_int(c, row, 1, q->no))
            return false;
        while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
            n += MAX(sqlite3_column_int64(row, 1), 1);
            if (pass == 1 && n > before) {
                wait = sqlite3_column_int64(row, 0) + q->opts.rate_ms - rate_now_ms(s);
                (void)sqlite3_reset(row); /* found */
                rc = SQLITE_DONE;
                break;
            }
        }
        if (rc != SQLITE_DONE)
            return false;
    }
    *ret_ms = MAX(wait, 0);
    return true;
}

/* ---- before a claim -------------------------------------------------------------------------- */

static bool
recover_dead(struct sq_store *s, struct sq_queue *q)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_job_expired_of);
    struct sq_seqs  seqs;
    struct sq_job   job;
    bool            found;

    if (!il__sq_bind_int(c, row, 1, s->state.now_ms) ||
        !il__sq_bind_int(c, row, 2, IL__RECOVER_MAX) || !il__sq_bind_int(c, row, 3, q->no) ||
        !il__sq_seqs(c, &s->scratch, row, &seqs))
        return false;
    for (size_t i = 0; i < seqs.n; i++) {
        if (!il__sq_job_live(c, &s->scratch, seqs.items[i], &job, &found) ||
            (found && !il__sq_job_recover(s, q, &job, &found)))
            return false;
    }
    return true;
}

static bool
promote_due(struct sq_store *s, struct sq_queue *q)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_job_due);
    struct sq_seqs  seqs;
    struct sq_job   job;
    bool            found;

    if (!il__sq_bind_int(c, row, 1, il__sq_lane(q->no, IL__LANE_SCHEDULED)) ||
        !il__sq_bind_int(c, row, 2, s->state.wall_ms) ||
        !il__sq_bind_int(c, row, 3, IL__PROMOTE_MAX) || !il__sq_seqs(c, &s->scratch, row, &seqs))
        return false;
    for (size_t i = 0; i < seqs.n; i++) {
        if (!il__sq_job_live(c, &s->scratch, seqs.items[i], &job, &found))
            return false;
        struct sq_was was = il__sq_was(&job);
        if (!found || job.j.state != IL_JOB_SCHEDULED)
            continue;
        il__job_promote(&job.j);
        if (!il__sq_job_write(s, q, &job, was, NULL, 0))
            return false;
    }
    return true;
}

/* ---- a claim that is repeated ---------------------------------------------------------------- */

/* The jobs of the worker's last claim, if it had this id; *ret_repeated says so. */
static bool
find_last(struct sq_store *s, const struct claim *k, bool *ret_repeated, char **ret_jobs,
          size_t *ret_n)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_worker_load);

    *ret_repeated = false;
    if (!il__sq_bind_int(c, row, 1, k->q->no) || !il__sq_bind_text(c, row, 2, k->worker))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    size_t      n_bytes = (size_t)sqlite3_column_bytes(row, 2);
    const void *jobs    = sqlite3_column_blob(row, 2);
    bool        same = strcmp(il__sq_text(row, 0), k->op->in.job.id) == 0 && n_bytes >= JOB_BYTES &&
                s->state.now_ms - sqlite3_column_int64(row, 1) < IL__WORKER_SEEN_MS;
    *ret_n = n_bytes / JOB_BYTES;
    if (same && jobs != NULL) {
        *ret_jobs = il__arena_alloc(&s->scratch, n_bytes);
        if (*ret_jobs == NULL) {
            (void)sqlite3_reset(row);
            return il__sq_no_memory(c);
        }
        memcpy(*ret_jobs, jobs, n_bytes);
        *ret_repeated = true;
    }
    return il__sq_stmt_run(c, row);
}

/* Show a job with its payload, which is read separately. */
static bool
show_with_payload(struct sq_store *s, struct claim *k, const struct sq_job *job)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_job_payload);

    if (!il__sq_bind_int(c, row, 1, (int64_t)job->j.seq))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    const void *payload = sqlite3_column_blob(row, 0);
    bool        shown =
        il__sq_job_show(c, &s->state, k->op, k->q->name, job, payload != NULL ? payload : "",
                        (size_t)sqlite3_column_bytes(row, 0));
    (void)sqlite3_reset(row); /* there is no second row */
    return shown;
}

static bool
claim_again(struct sq_store *s, struct claim *k, const char *jobs, size_t n)
{
    il_op *op = k->op;

    op->out.flags |= IL_OUT_RENEWED;
    op->status           = IL_EMPTY;
    op->out.remaining_ms = IL_FOREVER;
    for (size_t i = 0; i < n; i++) {
        int64_t       seq;
        uint64_t      token;
        struct sq_job job;
        bool          found;
        memcpy(&seq, jobs + i * JOB_BYTES, sizeof seq);
        memcpy(&token, jobs + i * JOB_BYTES + sizeof seq, sizeof token);
        if (!il__sq_job_live(&s->conn, &s->scratch, seq, &job, &found))
            return false;
        if (!found || !il__job_held(&job.j, token) || il__job_expired(&job.j, s->state.now_ms))
            continue;
        op->status = IL_OK;
        if (!show_with_payload(s, k, &job))
            return false;
    }
    return true;
}

/* ---- a claim --------------------------------------------------------------------------------- */

/* Compare-and-set: takes the job if it still waits where it was seen. */
static bool
mark(struct sq_store *s, const struct claim *k, const struct sq_job *job, bool *ret_marked)
{
    struct sq_conn       *c    = &s->conn;
    const struct il__job *j    = &job->j;
    sqlite3_stmt         *stmt = il__sq_use(c, SQ_job_claim);

    bool ok =
        il__sq_bind_int(c, stmt, 1, (int64_t)j->seq) &&
        il__sq_bind_int(c, stmt, 2, il__sq_lane(k->q->no, IL__LANE_READY)) &&
        il__sq_bind_int(c, stmt, 3, j->expires_ms) && il__sq_bind_int(c, stmt, 4, j->attempt) &&
        il__sq_bind_int(c, stmt, 5, (int64_t)j->token) &&
        il__sq_bind_int(c, stmt, 6, il__sq_job_flags(j)) &&
        il__sq_bind_int(c, stmt, 7, j->lease_ms) && il__sq_bind_int(c, stmt, 8, j->started_ms) &&
        il__sq_bind_text(c, stmt, 9, k->worker) && il__sq_stmt_run(c, stmt);
    *ret_marked = ok && sqlite3_changes(c->db) == 1;
    return ok;
}

/* One candidate becomes RUNNING, as it will be marked, and is added to the reply. */
static bool
take(struct sq_store *s, struct claim *k, struct sq_job *job, sqlite3_stmt *row)
{
    struct il__job_env env   = { .opts    = &k->q->opts,
                                 .totals  = &k->q->totals,
                                 .now_ms  = s->state.now_ms,
                                 .wall_ms = s->state.wall_ms };
    uint64_t           token = il__fence_next(&s->state.fence);
    const void        *payload;

    if (job->j.state != IL_JOB_READY)
        return il__sq_corrupt(&s->conn); /* a parent in this lane */
    il__job_claim(&job->j, &env, k->op, token);
    il__sq_count_move(k->q, IL_JOB_READY, IL_JOB_RUNNING);
    job->worker  = k->worker;
    job->message = "";
    memcpy(k->given + k->n * JOB_BYTES, &job->j.seq, sizeof job->j.seq);
    memcpy(k->given + k->n * JOB_BYTES + sizeof job->j.seq, &token, sizeof token);
    k->n++;
    payload = sqlite3_column_blob(row, 27);
    return il__sq_job_show(&s->conn, &s->state, k->op, k->q->name, job,
                           payload != NULL ? payload : "", (size_t)sqlite3_column_bytes(row, 27));
}

/* Read the first `n_max` jobs of the queue, as they will be after the claim. */
static bool
read_candidates(struct sq_store *s, struct claim *k, uint32_t n_max, struct sq_job *jobs,
                uint32_t *ret_n)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_job_ready);
    int             rc;

    *ret_n = 0;
    if (!il__sq_bind_int(c, row, 1, il__sq_lane(k->q->no, IL__LANE_READY)) ||
        !il__sq_bind_int(c, row, 2, n_max))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        struct sq_job *job = &jobs[*ret_n];
        if (!il__claim_fits(k->op, (size_t)sqlite3_column_bytes(row, 27), &k->n_bytes)) {
            (void)sqlite3_reset(row);
            return true;
        }
        if (!il__sq_job_row(c, &s->scratch, row, true, job) || !take(s, k, job, row)) {
            (void)sqlite3_reset(row); /* report the other error */
            return false;
        }
        ++*ret_n;
    }
    return rc == SQLITE_DONE;
}

/* Claim up to `left` jobs. Candidates are read, all of them or a few at a time, and then marked. */
static bool
take_jobs(struct sq_store *s, struct claim *k, uint32_t left)
{
    uint32_t       pass = il__queue_optimistic(&k->q->opts) ? MIN(left, IL__CANDIDATES) : left;
    struct sq_job *jobs = il__arena_alloc(&s->scratch, pass * sizeof *jobs);
    uint32_t       n    = pass;
    bool           marked;

    if (jobs == NULL)
        return il__sq_no_memory(&s->conn);
    for (; left > 0 && n == pass; left -= n) {
        if (!read_candidates(s, k, MIN(left, pass), jobs, &n))
            return false;
        for (uint32_t i = 0; i < n; i++) {
            if (!mark(s, k, &jobs[i], &marked) ||
                !il__sq_wake(s, il__board_slot(k->q->tenant, jobs[i].id, IL__WAKE_JOB)))
                return false;
            CHECK(marked); /* seen in this very transaction */
        }
    }
    return true;
}

static bool
note_worker(struct sq_store *s, const struct claim *k)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_worker_save);

    return il__sq_bind_int(c, stmt, 1, k->q->no) && il__sq_bind_text(c, stmt, 2, k->worker) &&
           il__sq_bind_text(c, stmt, 3, k->op->in.job.id) &&
           il__sq_bind_int(c, stmt, 4, s->state.now_ms) &&
           il__sq_bind_blob(c, stmt, 5, k->n > 0 ? k->given : "", (size_t)k->n * JOB_BYTES) &&
           il__sq_stmt_run(c, stmt);
}

/* The smallest value that a statement finds; IL__NEVER if there is none. Its parameters are
 * bound. */
static bool
read_min(struct sq_conn *c, sqlite3_stmt *row, int64_t *ret)
{
    if (il__sq_step(c, row) != SQLITE_ROW)
        return false;
    *ret = sqlite3_column_type(row, 0) == SQLITE_NULL ? IL__NEVER : sqlite3_column_int64(row, 0);
    return il__sq_stmt_run(c, row);
}

/* Nothing was claimed: when might a job become available by itself? */
static bool
answer_empty(struct sq_store *s, const struct claim *k, bool rated)
{
    struct sq_conn *c       = &s->conn;
    sqlite3_stmt   *tick    = il__sq_use(c, SQ_cron_next);
    sqlite3_stmt   *due     = il__sq_use(c, SQ_job_next_due);
    int64_t         wait_ms = IL_FOREVER;
    int64_t         tick_ms;
    int64_t         due_ms;

    if (!il__sq_bind_text(c, tick, 1, k->q->tenant) || !il__sq_bind_text(c, tick, 2, k->q->name) ||
        !read_min(c, tick, &tick_ms) ||
        !il__sq_bind_int(c, due, 1, il__sq_lane(k->q->no, IL__LANE_SCHEDULED)) ||
        !read_min(c, due, &due_ms))
        return false;
    if (rated && !rate_wait(s, k->q, &wait_ms))
        return false;
    wait_ms                 = il__wait_min(wait_ms, il__wait_until(tick_ms, s->state.wall_ms));
    wait_ms                 = il__wait_min(wait_ms, il__wait_until(due_ms, s->state.wall_ms));
    k->op->status           = IL_EMPTY;
    k->op->out.remaining_ms = wait_ms;
    return true;
}

static bool
is_ready_left(struct sq_store *s, const struct sq_queue *q, bool *ret)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_job_any);

    return il__sq_bind_int(c, row, 1, il__sq_lane(q->no, IL__LANE_READY)) &&
           il__sq_bind_int(c, row, 2, il__sq_lane(q->no, IL__LANE_BLOCKED)) &&
           il__sq_ask(c, row, ret);
}

static bool
claim_jobs(struct sq_store *s, struct claim *k)
{
    uint32_t limit = k->op->in.job.limit;
    uint32_t left;
    bool     more = false;

    k->given = il__arena_alloc(&s->scratch, (size_t)limit * JOB_BYTES);
    if (k->given == NULL)
        return il__sq_no_memory(&s->conn);
    if (!rate_left(s, k->q, limit, &left) || (left > 0 && !take_jobs(s, k, left)) ||
        !rate_add(s, k->q, k->n) || !note_worker(s, k))
        return false;
    if (k->n < limit && !is_ready_left(s, k->q, &more))
        return false;
    if (more)
        k->op->out.flags |= IL_OUT_LIMITED;
    k->op->status = IL_OK;
    return k->n > 0 || answer_empty(s, k, left == 0 && more);
}

/* The worker has finished. */
static bool
leave(struct sq_store *s, const struct claim *k)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_worker_remove);

    k->op->status           = IL_EMPTY;
    k->op->out.remaining_ms = IL_FOREVER;
    return il__sq_bind_int(c, stmt, 1, k->q->no) && il__sq_bind_text(c, stmt, 2, k->worker) &&
           il__sq_stmt_run(c, stmt);
}

bool
il__sq_job_claim(struct sq_store *s, il_op *op)
{
    struct claim k = { .op = op, .worker = op->holder };
    char        *jobs;
    size_t       n;
    bool         repeated;
    uint32_t     n_ticks;
    bool         more;

    if (!il__sq_queue_find(s, op->tenant, op->key, &k.q))
        return false;
    if (k.q == NULL) {
        op->status = IL_NOT_FOUND;
        return true;
    }
    if (il__queue_optimistic(&k.q->opts))
        op->out.flags |= IL_OUT_OPTIMISTIC;
    if ((op->flags & IL_CLAIM_LEAVE) != 0)
        return leave(s, &k);
    if (!find_last(s, &k, &repeated, &jobs, &n))
        return false;
    if (repeated)
        return claim_again(s, &k, jobs, n);
    if (!il__sq_cron_tick(s, op->tenant, op->key, IL__TICKS_MAX, &n_ticks, &more) ||
        !recover_dead(s, k.q) || !promote_due(s, k.q))
        return false;
    if (!k.q->paused)
        return claim_jobs(s, &k);
    op->status           = IL_EMPTY;
    op->out.remaining_ms = IL_FOREVER;
    op->out.flags |= IL_OUT_PAUSED;
    return note_worker(s, &k);
}
