/*
 * queue.c: jobs, queues and schedules in the SQLite engine: the dispatch of ops, and queues as a
 * transaction sees them. The rules are in src/core/queue.md; queue_internal.h lists the other
 * files.
 *
 * A transaction reads the row of a queue once, since another process may have changed it before,
 * and writes it once: a batch of a hundred pushes costs one read and one write.
 */
#include "base/arena.h"
#include "core/cursor.h"
#include "core/op.h"
#include "core/queue.h"
#include "store/sqlite/queue_internal.h"

/* States whose jobs are counted, in column order. */
static const il_job_state counted[] = { IL_JOB_SCHEDULED, IL_JOB_READY, IL_JOB_RUNNING,
                                        IL_JOB_FAILED };

_Static_assert(sizeof(struct il__totals) == 10 * sizeof(uint64_t),
               "queue_columns and queue_totals of sql/queue.sql have all totals");

/* ---- rows of queues -------------------------------------------------------------------------- */

static void
read_settings(sqlite3_stmt *row, int i, il_queue_opts *opts)
{
    *opts = (il_queue_opts){
        .strategy              = sqlite3_column_int(row, i),
        .max_attempts          = sqlite3_column_int(row, i + 1),
        .lease_ms              = sqlite3_column_int64(row, i + 2),
        .backoff_ms            = sqlite3_column_int64(row, i + 3),
        .backoff_max_ms        = sqlite3_column_int64(row, i + 4),
        .group_limit           = sqlite3_column_int(row, i + 5),
        .rate_n                = sqlite3_column_int(row, i + 6),
        .rate_ms               = sqlite3_column_int64(row, i + 7),
        .keep_ms               = sqlite3_column_int64(row, i + 8),
        .keep_failed_ms        = sqlite3_column_int64(row, i + 9),
        .processing_timeout_ms = sqlite3_column_int64(row, i + 10),
        .executing_timeout_ms  = sqlite3_column_int64(row, i + 11),
    };
    il__queue_heal(opts);
}

bool
il__sq_queue_row(struct sq_conn *c, void **arena, sqlite3_stmt *row, struct sq_queue *q)
{
    *q = (struct sq_queue){
        .no     = sqlite3_column_int64(row, 0),
        .tenant = il__arena_strdup(arena, il__sq_text(row, 1)),
        .name   = il__arena_strdup(arena, il__sq_text(row, 2)),
        .paused = sqlite3_column_int64(row, 15) != 0,
        .reason = il__arena_strdup(arena, il__sq_text(row, 16)),
    };
    int i = 17;
    read_settings(row, 3, &q->opts);
#define X(name, total) q->totals.total = (uint64_t)sqlite3_column_int64(row, i++);
#include "core/totals.def"
#undef X
    for (size_t k = 0; k < ARRAY_LEN(counted); k++)
        q->depth.n[counted[k]] = (uint64_t)sqlite3_column_int64(row, i++);
    q->saved       = q->totals;
    q->saved_depth = q->depth;
    return (q->tenant != NULL && q->name != NULL && q->reason != NULL) || il__sq_no_memory(c);
}

static bool
save_settings(struct sq_conn *c, const struct sq_queue *q)
{
    const il_queue_opts *o          = &q->opts;
    const int64_t        settings[] = { o->strategy,
                                        o->max_attempts,
                                        o->lease_ms,
                                        o->backoff_ms,
                                        o->backoff_max_ms,
                                        o->group_limit,
                                        o->rate_n,
                                        o->rate_ms,
                                        o->keep_ms,
                                        o->keep_failed_ms,
                                        o->processing_timeout_ms,
                                        o->executing_timeout_ms };
    sqlite3_stmt        *stmt       = il__sq_use(c, SQ_queue_save);
    bool                 ok         = il__sq_bind_int(c, stmt, 1, q->no);

    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        ok = ok && il__sq_bind_int(c, stmt, (int)i + 2, settings[i]);
    return ok && il__sq_bind_int(c, stmt, 14, q->paused) &&
           il__sq_bind_text(c, stmt, 15, q->reason) && il__sq_stmt_run(c, stmt);
}

static bool
save_totals(struct sq_conn *c, const struct sq_queue *q)
{
    sqlite3_stmt *stmt = il__sq_use(c, SQ_queue_totals);
    bool          ok   = il__sq_bind_int(c, stmt, 1, q->no);
    int           i    = 2;

#define X(name, total) ok = ok && il__sq_bind_int(c, stmt, i++, (int64_t)q->totals.total);
#include "core/totals.def"
#undef X
    for (size_t k = 0; k < ARRAY_LEN(counted); k++)
        ok = ok && il__sq_bind_int(c, stmt, i++, (int64_t)q->depth.n[counted[k]]);
    return ok && il__sq_stmt_run(c, stmt);
}

/* ---- queues of this transaction -------------------------------------------------------------- */

static struct sq_queues *
queues_of(struct sq_store *s)
{
    if (s->queues == NULL)
        s->queues = il__calloc(1, sizeof *s->queues);
    if (s->queues == NULL)
        IGNORE(il__sq_no_memory(&s->conn)); /* the caller sees NULL */
    return s->queues;
}

/* Room for one more. NULL: no memory. */
static struct sq_queue *
reserve(struct sq_store *s)
{
    struct sq_queues *all = queues_of(s);
    struct sq_queue  *q   = NULL;

    if (all == NULL)
        return NULL;
    if (il__grow(&all->items, all->n, &all->capacity, sizeof(*all->items)))
        q = il__arena_alloc(&all->arena, sizeof *q);
    if (q == NULL)
        IGNORE(il__sq_no_memory(&s->conn));
    return q;
}

static void
keep(struct sq_queues *all, struct sq_queue *q)
{
    all->i_last          = all->n;
    all->items[all->n++] = q;
}

/* Read the queue that a statement finds; *ret is NULL if there is none. */
static bool
load(struct sq_store *s, sqlite3_stmt *row, struct sq_queue **ret)
{
    struct sq_queue *q = reserve(s);

    *ret = NULL;
    if (q == NULL)
        return false;
    int rc = il__sq_step(&s->conn, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    bool read = il__sq_queue_row(&s->conn, &s->queues->arena, row, q);
    (void)sqlite3_reset(row); /* there is no second row */
    if (!read)
        return false;
    keep(s->queues, q);
    *ret = q;
    return true;
}

static bool
has_name(const struct sq_queue *q, const char *tenant, const char *name)
{
    return strcmp(q->name, name) == 0 && strcmp(q->tenant, tenant) == 0;
}

bool
il__sq_queue_find(struct sq_store *s, const char *tenant, const char *name, struct sq_queue **ret)
{
    struct sq_conn         *c   = &s->conn;
    const struct sq_queues *all = queues_of(s);

    if (all == NULL)
        return false;
    if (all->n > 0 && has_name(all->items[all->i_last], tenant, name)) {
        *ret = all->items[all->i_last];
        return true;
    }
    for (size_t i = 0; i < all->n; i++) {
        if (has_name(all->items[i], tenant, name)) {
            s->queues->i_last = i;
            *ret              = all->items[i];
            return true;
        }
    }
    sqlite3_stmt *row = il__sq_use(c, SQ_queue_load);
    return il__sq_bind_text(c, row, 1, tenant) && il__sq_bind_text(c, row, 2, name) &&
           load(s, row, ret);
}

bool
il__sq_queue_of(struct sq_store *s, int64_t no, struct sq_queue **ret)
{
    struct sq_conn         *c   = &s->conn;
    const struct sq_queues *all = queues_of(s);

    if (all == NULL)
        return false;
    for (size_t i = 0; i < all->n; i++) {
        if (all->items[i]->no == no) {
            *ret = all->items[i];
            return true;
        }
    }
    sqlite3_stmt *row = il__sq_use(c, SQ_queue_load_no);
    if (!il__sq_bind_int(c, row, 1, no) || !load(s, row, ret))
        return false;
    return *ret != NULL || il__sq_corrupt(c);
}

/* A nonexistent queue, with default settings. */
static bool
make(struct sq_store *s, const char *tenant, const char *name, struct sq_queue **ret)
{
    struct sq_conn  *c    = &s->conn;
    struct sq_queue *q    = reserve(s);
    sqlite3_stmt    *stmt = il__sq_use(c, SQ_queue_add);

    if (q == NULL || !il__sq_bind_text(c, stmt, 1, tenant) || !il__sq_bind_text(c, stmt, 2, name) ||
        !il__sq_stmt_run(c, stmt))
        return false;
    *q = (struct sq_queue){
        .no      = sqlite3_last_insert_rowid(c->db),
        .tenant  = il__arena_strdup(&s->queues->arena, tenant),
        .name    = il__arena_strdup(&s->queues->arena, name),
        .reason  = "",
        .opts    = il__queue_defaults(),
        .changed = true,
    };
    if (q->tenant == NULL || q->name == NULL)
        return il__sq_no_memory(c);
    keep(s->queues, q);
    *ret = q;
    return true;
}

bool
il__sq_queue_get(struct sq_store *s, const char *tenant, const char *name, struct sq_queue **ret)
{
    return il__sq_queue_find(s, tenant, name, ret) && (*ret != NULL || make(s, tenant, name, ret));
}

bool
il__sq_queue_wake(struct sq_store *s, struct sq_queue *q)
{
    if (q->woken)
        return true;
    q->woken = true;
    return il__sq_wake(s, il__board_slot(q->tenant, q->name, IL__WAKE_QUEUE));
}

bool
il__sq_queue_save(struct sq_store *s)
{
    for (size_t i = 0; s->queues != NULL && i < s->queues->n; i++) {
        struct sq_queue *q = s->queues->items[i];
        if (q->changed && !save_settings(&s->conn, q))
            return false;
        if ((memcmp(&q->totals, &q->saved, sizeof q->totals) != 0 ||
             memcmp(&q->depth, &q->saved_depth, sizeof q->depth) != 0) &&
            !save_totals(&s->conn, q))
            return false;
    }
    return true;
}

void
il__sq_queue_done(struct sq_store *s)
{
    if (s->queues == NULL)
        return;
    s->queues->n = s->queues->i_last = 0;
    il__arena_clear(&s->queues->arena);
}

void
il__sq_queue_release(struct sq_store *s)
{
    if (s->queues == NULL)
        return;
    il__arena_free(&s->queues->arena);
    il__free(s->queues->items);
    il__free(s->queues);
    s->queues = NULL;
}

/* ---- ops on queues --------------------------------------------------------------------------- */

/* The rate was removed: forget what it counted. */
static bool
forget_starts(struct sq_conn *c, const struct sq_queue *q)
{
    sqlite3_stmt *stmt = il__sq_use(c, SQ_start_purge);

    return il__sq_bind_int(c, stmt, 1, q->no) && il__sq_bind_int(c, stmt, 2, INT64_MAX) &&
           il__sq_stmt_run(c, stmt);
}

/* The group limit has changed: move each group's READY jobs to the right lanes. */
static bool
regroup(struct sq_conn *c, const struct sq_queue *q)
{
    int64_t       limit = q->opts.group_limit == IL_FOREVER ? INT64_MAX : q->opts.group_limit;
    sqlite3_stmt *stmt  = il__sq_use(c, SQ_queue_regroup);

    return il__sq_bind_int(c, stmt, 1, q->no) && il__sq_bind_int(c, stmt, 2, limit) &&
           il__sq_stmt_run(c, stmt);
}

static bool
set(struct sq_store *s, il_op *op)
{
    struct sq_queue *q;

    if (!il__sq_queue_get(s, op->tenant, op->key, &q))
        return false;
    il_queue_opts was = q->opts;
    il__queue_merge(&q->opts, &op->in.queue);
    q->changed = true;
    if (q->opts.group_limit != was.group_limit && !regroup(&s->conn, q))
        return false;
    if (q->opts.rate_n == IL_FOREVER && was.rate_n != IL_FOREVER && !forget_starts(&s->conn, q))
        return false;
    return il__sq_queue_wake(s, q) && il__sq_queue_show(&s->conn, &s->state, op, q);
}

static bool
pause_or_resume(struct sq_store *s, il_op *op)
{
    bool             resume = (op->flags & IL_RESUME) != 0;
    const char      *reason = resume || op->in.job.text == NULL ? "" : op->in.job.text;
    struct sq_queue *q;

    if (!il__sq_queue_find(s, op->tenant, op->key, &q))
        return false;
    if (q == NULL) {
        op->status = IL_NOT_FOUND;
        return true;
    }
    q->paused  = !resume;
    q->changed = true;
    q->reason  = il__arena_strdup(&s->queues->arena, reason);
    if (q->reason == NULL)
        return il__sq_no_memory(&s->conn);
    return (!resume || il__sq_queue_wake(s, q)) && il__sq_queue_show(&s->conn, &s->state, op, q);
}

/* ---- dispatch -------------------------------------------------------------------------------- */

bool
il__sq_queue_op(struct sq_store *s, il_op *op)
{
    switch (op->type) {
    case IL_OP_JOB_PUSH:
        return il__sq_job_push(s, op);
    case IL_OP_JOB_CLAIM:
        return il__sq_job_claim(s, op);
    case IL_OP_JOB_HEARTBEAT:
    case IL_OP_JOB_FINISH:
    case IL_OP_JOB_FAIL:
    case IL_OP_JOB_SNOOZE:
        return il__sq_job_end(s, op);
    case IL_OP_JOB_CANCEL:
        return il__sq_job_cancel(s, op);
    case IL_OP_JOB_RETRY:
        return il__sq_job_retry(s, op);
    case IL_OP_JOB_SEAL:
        return il__sq_job_seal(s, op);
    case IL_OP_JOB_PURGE:
        return il__sq_job_purge(s, op);
    case IL_OP_QUEUE_SET:
        return set(s, op);
    case IL_OP_QUEUE_PAUSE:
        return pause_or_resume(s, op);
    case IL_OP_CRON_SET:
        return il__sq_cron_set(s, op);
    case IL_OP_CRON_REMOVE:
        return il__sq_cron_remove(s, op);
    /* in a batch that also writes; changes gathered in memory must be visible */
    default:
        return il__sq_queue_save(s) && il__sq_queue_read(&s->conn, &s->state, &s->scratch, op);
    }
}

bool
il__sq_queue_read(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op)
{
    switch (op->type) {
    case IL_OP_JOB_GET:
        return il__sq_job_get(c, st, arena, op);
    case IL_OP_JOB_LIST:
        return il__sq_job_list(c, st, arena, op);
    case IL_OP_QUEUE_LIST:
        return il__sq_queue_list(c, st, arena, op);
    default:
        CHECK(op->type == IL_OP_CRON_LIST);
        return il__sq_cron_list(c, arena, op);
    }
}

bool
il__sq_bind_names(struct sq_conn *c, sqlite3_stmt *row, const il_op *op)
{
    const il_list_in *in    = &op->in.list;
    const char       *after = "";
    uint64_t          number;

    if (in->cursor != NULL)
        CHECK(il__cursor_parse(in->cursor, &after, &number));
    return il__sq_bind_text(c, row, 1, op->tenant) && il__sq_bind_prefix(c, row, 2, in->prefix) &&
           il__sq_bind_text(c, row, 4, after) && il__sq_bind_int(c, row, 5, (int64_t)in->limit + 1);
}
