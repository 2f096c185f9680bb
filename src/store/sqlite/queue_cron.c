/*
 * queue_cron.c: schedules in the SQLite engine: their entries, and the jobs that their ticks push.
 * The id of its job ensures that a tick is pushed only once, however many processes see it.
 */
#include "base/arena.h"
#include "core/cron.h"
#include "core/cursor.h"
#include "core/limits.h"
#include "core/op.h"
#include "store/sqlite/queue_internal.h"

/* An entry. Strings and payload are in an arena. */
struct entry {
    const char *tenant;
    const char *name;
    const char *queue;
    const char *schedule;
    il_missed   missed;
    int32_t     priority;
    uint32_t    max_attempts;
    uint64_t    n_ticks;
    int64_t     next_ms;
    int64_t     last_ms;
    const void *payload;
    size_t      payload_bytes;
};

/* ---- rows ------------------------------------------------------------------------------------ */

static bool
read_row(struct sq_conn *c, void **arena, sqlite3_stmt *row, struct entry *e)
{
    size_t  n_bytes = (size_t)sqlite3_column_bytes(row, 10);
    int64_t missed  = sqlite3_column_int64(row, 4);
    char   *payload = il__arena_alloc(arena, n_bytes + 1);

    *e = (struct entry){
        .tenant   = il__arena_strdup(arena, il__sq_text(row, 0)),
        .name     = il__arena_strdup(arena, il__sq_text(row, 1)),
        .queue    = il__arena_strdup(arena, il__sq_text(row, 2)),
        .schedule = il__arena_strdup(arena, il__sq_text(row, 3)),
        .missed   = missed >= 0 && missed < IL_MISSED_COUNT ? (il_missed)missed : IL_MISSED_SKIP,
        .priority = (int32_t)il__sq_number(row, 5, -IL_PRIORITY_MAX, IL_PRIORITY_MAX),
        .max_attempts  = (uint32_t)il__sq_number(row, 6, 0, IL_ATTEMPTS_MAX),
        .n_ticks       = (uint64_t)sqlite3_column_int64(row, 7),
        .next_ms       = sqlite3_column_int64(row, 8),
        .last_ms       = sqlite3_column_int64(row, 9),
        .payload       = payload,
        .payload_bytes = n_bytes,
    };
    const void *data = sqlite3_column_blob(row, 10);
    if (e->tenant == NULL || e->name == NULL || e->queue == NULL || e->schedule == NULL ||
        payload == NULL || (data == NULL && n_bytes > 0))
        return il__sq_no_memory(c);
    if (n_bytes > 0)
        memcpy(payload, data, n_bytes);
    return true;
}

/* The single row of a statement whose parameters are bound. */
static bool
read_one(struct sq_conn *c, void **arena, sqlite3_stmt *row, struct entry *e, bool *ret_found)
{
    int rc = il__sq_step(c, row);

    *ret_found = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    bool ok = read_row(c, arena, row, e);
    (void)sqlite3_reset(row); /* there is no second row */
    return ok;
}

static bool
find(struct sq_conn *c, void **arena, const char *tenant, const char *name, struct entry *e,
     bool *ret_found)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_cron_load);

    return il__sq_bind_text(c, row, 1, tenant) && il__sq_bind_text(c, row, 2, name) &&
           read_one(c, arena, row, e, ret_found);
}

static bool
save(struct sq_conn *c, const struct entry *e)
{
    sqlite3_stmt *stmt = il__sq_use(c, SQ_cron_save);

    return il__sq_bind_text(c, stmt, 1, e->tenant) && il__sq_bind_text(c, stmt, 2, e->name) &&
           il__sq_bind_text(c, stmt, 3, e->queue) && il__sq_bind_text(c, stmt, 4, e->schedule) &&
           il__sq_bind_int(c, stmt, 5, (int64_t)e->missed) &&
           il__sq_bind_int(c, stmt, 6, e->priority) &&
           il__sq_bind_int(c, stmt, 7, e->max_attempts) &&
           il__sq_bind_int(c, stmt, 8, (int64_t)e->n_ticks) &&
           il__sq_bind_int(c, stmt, 9, e->next_ms) && il__sq_bind_int(c, stmt, 10, e->last_ms) &&
           il__sq_bind_blob(c, stmt, 11, e->payload, e->payload_bytes) && il__sq_stmt_run(c, stmt);
}

static bool
show(struct sq_conn *c, il_op *op, const struct entry *e)
{
    il_cron_info info = {
        .tenant        = il__op_strdup(op, e->tenant),
        .name          = il__op_strdup(op, e->name),
        .queue         = il__op_strdup(op, e->queue),
        .schedule      = il__op_strdup(op, e->schedule),
        .payload       = il__op_blob(op, e->payload, e->payload_bytes),
        .payload_bytes = e->payload_bytes,
        .missed        = e->missed,
        .priority      = e->priority,
        .max_attempts  = e->max_attempts,
        .n_ticks       = e->n_ticks,
        .next_at_ms    = e->next_ms,
        .last_at_ms    = e->last_ms,
    };
    il_cron_info *slot = il__arena_append(&op->mem, &op->out.crons, &op->out.n_crons, sizeof *slot);

    if (slot == NULL || info.tenant == NULL || info.name == NULL || info.queue == NULL ||
        info.schedule == NULL || info.payload == NULL)
        return il__sq_no_memory(c);
    *slot = info;
    return true;
}

/* ---- ops ------------------------------------------------------------------------------------- */

bool
il__sq_cron_set(struct sq_store *s, il_op *op)
{
    struct sq_conn   *c  = &s->conn;
    const il_cron_in *in = &op->in.cron;
    struct sq_queue  *q;
    struct entry      old;
    struct il__cron   cron;
    bool              found;

    CHECK(il__cron_parse_entry(in->schedule, &cron, NULL) == IL_OK); /* as il__queue_check() saw */
    if (!find(c, &s->scratch, op->tenant, in->name, &old, &found) ||
        !il__sq_queue_get(s, op->tenant, op->key, &q))
        return false;
    struct entry e = {
        .tenant        = op->tenant,
        .name          = in->name,
        .queue         = op->key,
        .schedule      = in->schedule,
        .missed        = in->missed,
        .priority      = in->priority,
        .max_attempts  = in->max_attempts,
        .n_ticks       = found ? old.n_ticks : 0,
        .last_ms       = found ? old.last_ms : 0,
        .payload       = in->data_bytes > 0 ? in->data : "",
        .payload_bytes = in->data_bytes,
    };
    e.next_ms  = found && strcmp(old.schedule, e.schedule) == 0
                     ? old.next_ms
                     : il__cron_next(&cron, s->state.wall_ms);
    op->status = IL_OK;
    /* Wake workers that wait for the queue: they wait until its next tick, which may have
     * changed. */
    return save(c, &e) && il__sq_queue_wake(s, q) && show(c, op, &e);
}

bool
il__sq_cron_remove(struct sq_store *s, il_op *op)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_cron_remove);

    if (!il__sq_bind_text(c, stmt, 1, op->tenant) ||
        !il__sq_bind_text(c, stmt, 2, op->in.cron.name) || !il__sq_stmt_run(c, stmt))
        return false;
    op->status = sqlite3_changes(c->db) == 1 ? IL_OK : IL_NOT_FOUND;
    return true;
}

bool
il__sq_cron_list(struct sq_conn *c, void **arena, il_op *op)
{
    const il_list_in *in  = &op->in.list;
    sqlite3_stmt     *row = il__sq_use(c, op->key != NULL ? SQ_cron_list_of : SQ_cron_list);
    int               rc;

    op->status = IL_OK;
    if (!il__sq_bind_names(c, row, op) ||
        (op->key != NULL && !il__sq_bind_text(c, row, 6, op->key)))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        struct entry e;
        if (op->out.n_crons == in->limit) {
            (void)sqlite3_reset(row); /* the rest is for the next page */
            op->out.next = il__op_cursor(op, op->out.crons[in->limit - 1].name, 0);
            return op->out.next != NULL || il__sq_no_memory(c);
        }
        if (!read_row(c, arena, row, &e) || !show(c, op, &e)) {
            (void)sqlite3_reset(row); /* report the lack of memory */
            return false;
        }
    }
    return rc == SQLITE_DONE;
}

/* ---- ticks ----------------------------------------------------------------------------------- */

/* Push the job of a tick, unless that was done. */
static bool
push_tick(struct sq_store *s, struct entry *e, int64_t tick_ms, uint32_t *n)
{
    char             id[IL_ID_BYTES_MAX + 1];
    il_op            op = { .type = IL_OP_JOB_PUSH, .tenant = e->tenant, .key = e->queue };
    struct sq_queue *q;
    struct sq_job    job;
    bool             added;

    il__cron_job_id(e->tenant, e->name, tick_ms, id);
    op.in.job = (il_job_in){ .id           = id,
                             .data         = e->payload,
                             .data_bytes   = e->payload_bytes,
                             .priority     = e->priority,
                             .run_at_ms    = tick_ms,
                             .max_attempts = e->max_attempts };
    if (!il__sq_queue_get(s, e->tenant, e->queue, &q) ||
        !il__sq_push_new(s, q, &op, NULL, &job, &added))
        return false;
    if (added) {
        e->n_ticks++;
        e->last_ms = tick_ms;
        ++*n;
    }
    return true;
}

/* Process one due entry. *n_used: its cost in the budget; the jobs it pushed are added to
 * *n_pushed. */
static bool
tick_one(struct sq_store *s, struct entry *e, uint32_t budget, uint32_t *n_used, uint32_t *n_pushed)
{
    struct sq_conn *c = &s->conn;
    struct il__cron cron;

    *n_used = 0;
    /* a damaged row: it never ticks again */
    if (!il__cron_restore(e->schedule, &cron)) {
        e->next_ms = IL__NEVER;
        *n_used    = 1;
    }
    while (e->next_ms <= s->state.wall_ms && *n_used < budget) {
        int64_t tick_ms = il__cron_take(&cron, e->missed, s->state.wall_ms, &e->next_ms);
        if (tick_ms != IL__NEVER && !push_tick(s, e, tick_ms, n_pushed))
            return false;
        ++*n_used;
    }
    sqlite3_stmt *stmt = il__sq_use(c, SQ_cron_ticked);
    return il__sq_bind_text(c, stmt, 1, e->tenant) && il__sq_bind_text(c, stmt, 2, e->name) &&
           il__sq_bind_int(c, stmt, 3, (int64_t)e->n_ticks) &&
           il__sq_bind_int(c, stmt, 4, e->next_ms) && il__sq_bind_int(c, stmt, 5, e->last_ms) &&
           il__sq_stmt_run(c, stmt);
}

/* The first entry that is due. */
static bool
find_due(struct sq_store *s, const char *tenant, const char *queue, struct entry *e,
         bool *ret_found)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, queue != NULL ? SQ_cron_due_of : SQ_cron_due);

    if (!il__sq_bind_int(c, row, 1, s->state.wall_ms))
        return false;
    if (queue != NULL &&
        (!il__sq_bind_text(c, row, 2, tenant) || !il__sq_bind_text(c, row, 3, queue)))
        return false;
    return read_one(c, &s->scratch, row, e, ret_found);
}

bool
il__sq_cron_tick(struct sq_store *s, const char *tenant, const char *queue, uint32_t n_max,
                 uint32_t *ret_pushed, bool *ret_more)
{
    struct entry e;
    uint32_t     n_used;

    *ret_pushed = 0;
    for (uint32_t budget = n_max;; budget -= n_used) {
        if (!find_due(s, tenant, queue, &e, ret_more))
            return false;
        if (!*ret_more || budget == 0)
            return true;
        if (!tick_one(s, &e, budget, &n_used, ret_pushed))
            return false;
    }
}
