/*
 * job_row.c: rows of jobs: reads them, and writes their changes.
 *
 * A job has a permanent row in il_job, and one in either il_live or il_done. Only
 * il__sq_job_write() moves it between those two tables and between lanes, so the consequences of a
 * change are handled in one place: its group, its unique key, whom to wake, and how many jobs of
 * its queue are in each state. (A claim moves READY jobs itself, and counts them.)
 */
#include "base/arena.h"
#include "store/sqlite/queue_internal.h"

/* ---- reading --------------------------------------------------------------------------------- */

/* Copy a string to the arena; sets *failed if there is no memory. */
static const char *
text(void **arena, sqlite3_stmt *row, int column, bool *failed)
{
    if (sqlite3_column_bytes(row, column) == 0)
        return "";
    const char *copy = il__arena_strdup(arena, il__sq_text(row, column));
    *failed          = *failed || copy == NULL;
    return copy;
}

/* The columns of il_job, and those that il_live and il_done share. */
static bool
read_common(void **arena, sqlite3_stmt *row, struct sq_job *job)
{
    bool    failed   = false;
    int64_t flags    = sqlite3_column_int64(row, 16);
    int64_t priority = il__sq_number(row, 3, -IL_PRIORITY_MAX, IL_PRIORITY_MAX);
    int64_t last     = il__sq_number(row, 13, 0, IL__LAST_COUNT - 1);

    *job = (struct sq_job){
        .j          = { .seq             = (uint64_t)il__sq_number(row, 0, 0, INT64_MAX),
                        .priority        = (int32_t)priority,
                        .max_attempts    = (uint32_t)il__sq_number(row, 4, 1, IL_ATTEMPTS_MAX),
                        .is_parent       = sqlite3_column_int64(row, 5) != 0,
                        .n_children      = (uint32_t)il__sq_number(row, 6, 0, UINT32_MAX),
                        .created_ms      = il__sq_time(row, 7),
                        .unique_until_ms = il__sq_time(row, 8),
                        .last            = (enum il__job_last)last,
                        .attempt         = (uint32_t)il__sq_number(row, 14, 0, UINT32_MAX - 1),
                        .token           = (uint64_t)il__sq_number(row, 15, 0, INT64_MAX),
                        .cancelled       = (flags & IL__JOB_FLAG_CANCELLED) != 0,
                        .silent          = (flags & IL__JOB_FLAG_SILENT) != 0,
                        .is_sealed       = (flags & IL__JOB_FLAG_SEALED) != 0,
                        .progress        = (int32_t)il__sq_number(row, 17, -1, 100),
                        .run_at_ms       = il__sq_time(row, 18),
                        .started_ms      = il__sq_time(row, 19) },
        .queue_no   = sqlite3_column_int64(row, 1),
        .id         = text(arena, row, 2, &failed),
        .parent     = il__sq_number(row, 9, 0, INT64_MAX),
        .parent_id  = text(arena, row, 10, &failed),
        .group      = text(arena, row, 11, &failed),
        .unique_key = text(arena, row, 12, &failed),
        .worker     = text(arena, row, 20, &failed),
        .error      = text(arena, row, 21, &failed),
        .message    = text(arena, row, 22, &failed),
    };
    return !failed;
}

static void
read_live(sqlite3_stmt *row, struct sq_job *job)
{
    int64_t lane = sqlite3_column_int64(row, 23);

    switch (lane & 7) {
    case IL__LANE_SCHEDULED:
        job->j.state = IL_JOB_SCHEDULED;
        break;
    case IL__LANE_READY:
    case IL__LANE_BLOCKED:
        job->j.state = IL_JOB_READY;
        job->blocked = (lane & 7) == IL__LANE_BLOCKED;
        break;
    default:
        job->j.state = IL_JOB_RUNNING;
        break;
    }
    if (job->j.is_parent) /* whatever its lane says */
        job->j.state = IL_JOB_RUNNING;
    else if (lane == IL__LANE_CLAIMED)
        job->j.expires_ms = il__sq_time(row, 24);
    job->j.lease_ms   = il__sq_number(row, 25, 0, IL_TTL_MS_MAX);
    job->j.updated_ms = il__sq_time(row, 26);
}

static void
read_done(sqlite3_stmt *row, struct sq_job *job)
{
    job->j.state        = (il_job_state)il__sq_number(row, 23, IL_JOB_COMPLETED, IL_JOB_CANCELLED);
    job->j.purge_at_ms  = il__sq_number(row, 24, 0, INT64_MAX);
    job->j.completed_ms = job->j.updated_ms = il__sq_time(row, 25);
}

bool
il__sq_job_row(struct sq_conn *c, void **arena, sqlite3_stmt *row, bool live, struct sq_job *job)
{
    if (!read_common(arena, row, job))
        return il__sq_no_memory(c);
    if (live)
        read_live(row, job);
    else
        read_done(row, job);
    return true;
}

/* The single row of a statement whose parameters are bound. */
static bool
read_one(struct sq_conn *c, void **arena, sqlite3_stmt *row, bool live, struct sq_job *ret,
         bool *ret_found)
{
    int rc = il__sq_step(c, row);

    *ret_found = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    bool ok = il__sq_job_row(c, arena, row, live, ret);
    (void)sqlite3_reset(row); /* there is no second row */
    return ok;
}

static bool
find_by_id(struct sq_conn *c, void **arena, enum sq_stmt stmt, const char *tenant, const char *id,
           struct sq_job *ret, bool *ret_found)
{
    sqlite3_stmt *row = il__sq_use(c, stmt);

    return il__sq_bind_text(c, row, 1, tenant) && il__sq_bind_text(c, row, 2, id) &&
           read_one(c, arena, row, stmt == SQ_job_live_of_id, ret, ret_found);
}

bool
il__sq_job_find(struct sq_conn *c, void **arena, const char *tenant, const char *id,
                struct sq_job *ret, bool *ret_found)
{
    return find_by_id(c, arena, SQ_job_live_of_id, tenant, id, ret, ret_found) &&
           (*ret_found || find_by_id(c, arena, SQ_job_done_of_id, tenant, id, ret, ret_found));
}

static bool
find_by_seq(struct sq_conn *c, void **arena, enum sq_stmt stmt, int64_t seq, struct sq_job *ret,
            bool *ret_found)
{
    sqlite3_stmt *row = il__sq_use(c, stmt);

    return il__sq_bind_int(c, row, 1, seq) &&
           read_one(c, arena, row, stmt == SQ_job_live, ret, ret_found);
}

bool
il__sq_job_live(struct sq_conn *c, void **arena, int64_t seq, struct sq_job *ret, bool *ret_found)
{
    return find_by_seq(c, arena, SQ_job_live, seq, ret, ret_found);
}

bool
il__sq_job_find_seq(struct sq_conn *c, void **arena, int64_t seq, struct sq_job *ret,
                    bool *ret_found)
{
    return il__sq_job_live(c, arena, seq, ret, ret_found) &&
           (*ret_found || find_by_seq(c, arena, SQ_job_done, seq, ret, ret_found));
}

bool
il__sq_seqs(struct sq_conn *c, void **arena, sqlite3_stmt *row, struct sq_seqs *ret)
{
    int rc;

    *ret = (struct sq_seqs){ 0 };
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        int64_t *seq = il__arena_append(arena, &ret->items, &ret->n, sizeof *seq);
        if (seq == NULL) {
            (void)sqlite3_reset(row); /* report the lack of memory */
            return il__sq_no_memory(c);
        }
        *seq = sqlite3_column_int64(row, 0);
    }
    return rc == SQLITE_DONE;
}

static bool
is_live(struct sq_conn *c, int64_t seq, bool *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_job_is_live);

    return il__sq_bind_int(c, row, 1, seq) && il__sq_ask(c, row, ret);
}

bool
il__sq_job_env(struct sq_store *s, struct sq_queue *q, const struct sq_job *job,
               struct il__job_env *ret)
{
    *ret = (struct il__job_env){ .opts    = &q->opts,
                                 .totals  = &q->totals,
                                 .now_ms  = s->state.now_ms,
                                 .wall_ms = s->state.wall_ms };
    return job->parent == 0 || is_live(&s->conn, job->parent, &ret->kept);
}

/* ---- writing --------------------------------------------------------------------------------- */

int64_t
il__sq_job_flags(const struct il__job *j)
{
    return (j->cancelled ? IL__JOB_FLAG_CANCELLED : 0) | (j->silent ? IL__JOB_FLAG_SILENT : 0) |
           (j->is_sealed ? IL__JOB_FLAG_SEALED : 0);
}

/* Where a live job waits; see the migration. */
static bool
bind_lane(struct sq_conn *c, sqlite3_stmt *stmt, const struct sq_job *job)
{
    const struct il__job *j    = &job->j;
    int64_t               lane = IL__LANE_CLAIMED;
    int64_t               ord  = j->expires_ms;
    int64_t               at   = 0;

    if (j->state == IL_JOB_SCHEDULED) {
        lane = il__sq_lane(job->queue_no, IL__LANE_SCHEDULED);
        ord  = j->run_at_ms;
    } else if (j->state == IL_JOB_READY) {
        lane = il__sq_lane(job->queue_no, job->blocked ? IL__LANE_BLOCKED : IL__LANE_READY);
        ord  = j->priority;
        at   = j->run_at_ms;
    } else if (j->is_parent) {
        lane = il__sq_lane(job->queue_no, IL__LANE_PARENT);
        ord  = 0;
    }
    return il__sq_bind_int(c, stmt, 3, lane) && il__sq_bind_int(c, stmt, 4, ord) &&
           il__sq_bind_int(c, stmt, 5, at);
}

/* The parameters that job_live_add and job_live_save share. */
static bool
bind_live(struct sq_conn *c, sqlite3_stmt *stmt, const struct sq_job *job)
{
    const struct il__job *j = &job->j;

    return il__sq_bind_int(c, stmt, 1, (int64_t)j->seq) && bind_lane(c, stmt, job) &&
           il__sq_bind_int(c, stmt, 6, (int64_t)j->last) &&
           il__sq_bind_int(c, stmt, 7, j->attempt) &&
           il__sq_bind_int(c, stmt, 8, (int64_t)j->token) &&
           il__sq_bind_int(c, stmt, 9, il__sq_job_flags(j)) &&
           il__sq_bind_int(c, stmt, 10, j->progress) &&
           il__sq_bind_int(c, stmt, 11, j->run_at_ms) &&
           il__sq_bind_int(c, stmt, 12, j->lease_ms) &&
           il__sq_bind_int(c, stmt, 13, j->started_ms) &&
           il__sq_bind_int(c, stmt, 14, j->updated_ms) &&
           il__sq_bind_text(c, stmt, 15, job->worker) &&
           il__sq_bind_text(c, stmt, 16, job->error) && il__sq_bind_text(c, stmt, 17, job->message);
}

static bool
live_save(struct sq_conn *c, const struct sq_job *job)
{
    sqlite3_stmt *stmt = il__sq_use(c, SQ_job_live_save);

    return bind_live(c, stmt, job) && il__sq_stmt_run(c, stmt);
}

/* NULL for missing values, so that the partial indexes skip the row. */
static bool
bind_or_null(struct sq_conn *c, sqlite3_stmt *stmt, int i, const char *value)
{
    if (value[0] != '\0')
        return il__sq_bind_text(c, stmt, i, value);
    return stmt != NULL && sqlite3_bind_null(stmt, i) == SQLITE_OK;
}

static bool
bind_parent(struct sq_conn *c, sqlite3_stmt *stmt, int i, int64_t value)
{
    if (value != 0)
        return il__sq_bind_int(c, stmt, i, value);
    return stmt != NULL && sqlite3_bind_null(stmt, i) == SQLITE_OK;
}

static bool
live_add(struct sq_conn *c, const struct sq_job *job)
{
    sqlite3_stmt *stmt = il__sq_use(c, SQ_job_live_add);

    return bind_live(c, stmt, job) && il__sq_bind_int(c, stmt, 2, job->queue_no) &&
           bind_parent(c, stmt, 18, job->parent) && bind_or_null(c, stmt, 19, job->group) &&
           il__sq_stmt_run(c, stmt);
}

static bool
live_remove(struct sq_conn *c, const struct sq_job *job)
{
    sqlite3_stmt *stmt = il__sq_use(c, SQ_job_live_remove);

    return il__sq_bind_int(c, stmt, 1, (int64_t)job->j.seq) && il__sq_stmt_run(c, stmt);
}

static bool
done_add(struct sq_conn *c, const struct sq_job *job, const void *result, size_t result_bytes)
{
    const struct il__job *j    = &job->j;
    sqlite3_stmt         *stmt = il__sq_use(c, SQ_job_done_add);

    return il__sq_bind_int(c, stmt, 1, job->queue_no) &&
           il__sq_bind_int(c, stmt, 2, (int64_t)j->state) &&
           il__sq_bind_int(c, stmt, 3, (int64_t)j->seq) &&
           il__sq_bind_int(c, stmt, 4, j->purge_at_ms) &&
           il__sq_bind_int(c, stmt, 5, (int64_t)j->last) &&
           il__sq_bind_int(c, stmt, 6, j->attempt) &&
           il__sq_bind_int(c, stmt, 7, (int64_t)j->token) &&
           il__sq_bind_int(c, stmt, 8, il__sq_job_flags(j)) &&
           il__sq_bind_int(c, stmt, 9, j->progress) && il__sq_bind_int(c, stmt, 10, j->run_at_ms) &&
           il__sq_bind_int(c, stmt, 11, j->started_ms) &&
           il__sq_bind_int(c, stmt, 12, j->completed_ms) &&
           il__sq_bind_text(c, stmt, 13, job->worker) &&
           il__sq_bind_text(c, stmt, 14, job->error) &&
           il__sq_bind_text(c, stmt, 15, job->message) &&
           il__sq_bind_blob(c, stmt, 16, result_bytes > 0 ? result : "", result_bytes) &&
           il__sq_stmt_run(c, stmt);
}

static bool
done_remove(struct sq_conn *c, const struct sq_job *job, il_job_state state)
{
    sqlite3_stmt *stmt = il__sq_use(c, SQ_job_done_remove);

    return il__sq_bind_int(c, stmt, 1, job->queue_no) &&
           il__sq_bind_int(c, stmt, 2, (int64_t)state) &&
           il__sq_bind_int(c, stmt, 3, (int64_t)job->j.seq) && il__sq_stmt_run(c, stmt);
}

static bool
bind_unique(struct sq_conn *c, sqlite3_stmt *stmt, const struct sq_job *job)
{
    return il__sq_bind_int(c, stmt, 1, job->queue_no) &&
           il__sq_bind_text(c, stmt, 2, job->unique_key) &&
           il__sq_bind_int(c, stmt, 3, (int64_t)job->j.seq);
}

/* A job that becomes live takes its key; one that has ended gives it up, unless its period is still
 * running. */
static bool
write_unique(struct sq_store *s, const struct sq_job *job, bool lives)
{
    struct sq_conn *c = &s->conn;

    if (job->unique_key[0] == '\0' || (!lives && il__job_keeps_key(&job->j, s->state.wall_ms)))
        return true;
    sqlite3_stmt *stmt = il__sq_use(c, lives ? SQ_unique_set : SQ_unique_remove);
    return bind_unique(c, stmt, job) && il__sq_stmt_run(c, stmt);
}

/* Does a job count against the limit of its group: running, or next to be claimed? */
static bool
counts(il_job_state state, bool blocked)
{
    return state == IL_JOB_RUNNING || (state == IL_JOB_READY && !blocked);
}

/* Wake those who wait for the job itself (none if it is new), and workers, for a job that is due
 * now or later. */
static bool
wake(struct sq_store *s, struct sq_queue *q, const struct sq_job *job, bool is_new)
{
    bool due = job->j.state == IL_JOB_SCHEDULED || job->j.state == IL_JOB_READY;

    return (is_new || il__sq_wake(s, il__board_slot(q->tenant, job->id, IL__WAKE_JOB))) &&
           (!due || il__sq_queue_wake(s, q));
}

/* Move the rows. */
static bool
write_rows(struct sq_store *s, struct sq_job *job, struct sq_was was, const void *result,
           size_t result_bytes)
{
    struct sq_conn *c     = &s->conn;
    bool            ended = il__job_ended(job->j.state);

    if (was.state == IL_JOB_NONE)
        return live_add(c, job) && write_unique(s, job, true);
    if (il__job_ended(was.state))
        return done_remove(c, job, was.state) && live_add(c, job) && write_unique(s, job, true);
    if (!ended)
        return live_save(c, job);
    return live_remove(c, job) && done_add(c, job, result, result_bytes) &&
           write_unique(s, job, false);
}

/* Count one more or one fewer job in this state. A damaged count does not drop below 0. */
static void
count_job(struct sq_queue *q, il_job_state state, bool more)
{
    if (more)
        q->depth.n[state]++;
    else if (q->depth.n[state] > 0)
        q->depth.n[state]--;
}

void
il__sq_count_move(struct sq_queue *q, il_job_state was, il_job_state state)
{
    if (was == state)
        return;
#ifndef IL_MUTANT_depth_not_lowered
    count_job(q, was, false);
#endif
    count_job(q, state, true);
}

bool
il__sq_job_write(struct sq_store *s, struct sq_queue *q, struct sq_job *job, struct sq_was was,
                 const void *result, size_t result_bytes)
{
    il_job_state state = job->j.state;

    if (job->queue_no != q->no)
        return il__sq_corrupt(&s->conn); /* found in a lane of another queue */
    job->blocked = state == IL_JOB_READY && was.state == IL_JOB_READY && was.blocked;
    if (state == IL_JOB_READY && was.state != IL_JOB_READY && !il__sq_group_enter(s, q, job))
        return false;
    if (!write_rows(s, job, was, result, result_bytes))
        return false;
    il__sq_count_move(q, was.state, state);
    if (counts(was.state, was.blocked) && !(state == IL_JOB_READY || state == IL_JOB_RUNNING) &&
        !il__sq_group_leave(s, q, job))
        return false;
    return wake(s, q, job, was.state == IL_JOB_NONE);
}

bool
il__sq_job_recover(struct sq_store *s, struct sq_queue *q, struct sq_job *job, bool *ret_done)
{
    struct sq_was      was = il__sq_was(job);
    struct il__job_env env;

    *ret_done = il__job_expired(&job->j, s->state.now_ms);
    if (!*ret_done)
        return true;
    if (!il__sq_job_env(s, q, job, &env))
        return false;
    const char *error = il__job_recover(&job->j, &env);
    if (error != NULL)
        job->error = error;
    return il__sq_job_write(s, q, job, was, NULL, 0) &&
           (!il__job_ended(job->j.state) || il__sq_parent_try_end(s, job->parent));
}

bool
il__sq_job_delete(struct sq_store *s, struct sq_queue *q, const struct sq_job *job)
{
    struct sq_conn *c     = &s->conn;
    bool            ended = il__job_ended(job->j.state);
    sqlite3_stmt   *stmt  = il__sq_use(c, SQ_job_remove);

    CHECK(job->j.state != IL_JOB_RUNNING);
    il__sq_count_move(q, job->j.state, IL_JOB_NONE);
    if (!(ended ? done_remove(c, job, job->j.state) : live_remove(c, job)))
        return false;
    if (!il__sq_bind_int(c, stmt, 1, (int64_t)job->j.seq) || !il__sq_stmt_run(c, stmt))
        return false;
    if (job->unique_key[0] != '\0') {
        stmt = il__sq_use(c, SQ_unique_remove);
        if (!bind_unique(c, stmt, job) || !il__sq_stmt_run(c, stmt))
            return false;
    }
    return !counts(job->j.state, job->blocked) || il__sq_group_leave(s, q, job);
}
