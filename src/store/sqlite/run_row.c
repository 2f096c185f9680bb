/*
 * run_row.c: rows of il_run in the SQLite engine: reads them, and makes single changes. Race-free
 * because all of it happens inside one BEGIN IMMEDIATE transaction: what was read stays true until
 * the commit.
 */
#include "base/arena.h"
#include "store/sqlite/run.h"

/* Clamp a stored number that can only be wrong if the file is damaged. */
static il_run_state
state_of(int64_t value)
{
    return value >= IL_RUN_PENDING && value < IL_RUN_STATE_COUNT ? (il_run_state)value
                                                                 : IL_RUN_FAILED;
}

static int32_t
progress_of(int64_t value)
{
    return value >= 0 && value <= 100 ? (int32_t)value : -1;
}

/* Read the columns of the lease, or of the waiter; a live run without either is a slot. */
static struct il__run_hold
hold_of_row(sqlite3_stmt *row, il_run_state state, const char *reason)
{
    int64_t lease_state = sqlite3_column_int64(row, 23);

    if (il__run_ended(state))
        return (struct il__run_hold){ .state = IL_LEASE_NONE };
    if (state == IL_RUN_RUNNING)
        return (struct il__run_hold){
            .state  = lease_state == IL_LEASE_CLOSING ? IL_LEASE_CLOSING : IL_LEASE_HELD,
            .ttl_ms = sqlite3_column_int64(row, 24),
            .due_ms = sqlite3_column_int64(row, 25),
            .reason = reason,
        };
    if (sqlite3_column_type(row, 23) != SQLITE_NULL)
        return (struct il__run_hold){
            .state  = IL_LEASE_OFFERED,
            .ttl_ms = sqlite3_column_int64(row, 24),
            .due_ms = sqlite3_column_int64(row, 25),
            .reason = reason,
        };
    if (sqlite3_column_type(row, 28) == SQLITE_NULL)
        return (struct il__run_hold){ .state = IL_LEASE_NONE };
    return (struct il__run_hold){
        .state       = IL_LEASE_WAITING,
        .ttl_ms      = sqlite3_column_int64(row, 27),
        .due_ms      = sqlite3_column_int64(row, 28),
        .deadline_ms = sqlite3_column_int64(row, 29),
        .reason      = "",
    };
}

static void
numbers_of_row(sqlite3_stmt *row, struct sq_run *r)
{
    il_run_info *info = &r->info;

    info->seq           = (uint64_t)sqlite3_column_int64(row, 0);
    info->fence         = (uint64_t)il__sq_number(row, 4, 0, INT64_MAX);
    r->ticket           = (uint64_t)il__sq_number(row, 5, 0, INT64_MAX);
    info->state         = state_of(sqlite3_column_int64(row, 6));
    info->cancelled     = sqlite3_column_int64(row, 7) != 0;
    r->finished         = sqlite3_column_int64(row, 8) != 0;
    info->progress      = progress_of(sqlite3_column_int64(row, 14));
    info->n_joined      = (uint32_t)il__sq_number(row, 15, 0, UINT32_MAX);
    info->log_bytes     = (uint64_t)il__sq_number(row, 16, 0, INT64_MAX);
    info->ttl_ms        = sqlite3_column_int64(row, 17);
    r->keep_ms          = sqlite3_column_int64(row, 18);
    info->created_at_ms = sqlite3_column_int64(row, 19);
    info->started_at_ms = sqlite3_column_int64(row, 20);
    info->ended_at_ms   = sqlite3_column_int64(row, 21);
    info->updated_at_ms = sqlite3_column_int64(row, 22);
}

/* Read a row of a statement with the columns of run_of_id. `tenant` stays. */
static bool
read_row(struct sq_conn *c, void **arena, sqlite3_stmt *row, const char *tenant, struct sq_run *r)
{
    static const int columns[] = { 1, 2, 3, 9, 10, 11, 12, 13, 26 };
    const char      *texts[ARRAY_LEN(columns)];

    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        texts[i] = il__arena_strdup(arena, il__sq_text(row, columns[i]));
        if (texts[i] == NULL)
            return il__sq_no_memory(c);
    }
    *r = (struct sq_run){
        .info  = { .tenant  = tenant,
                   .id      = texts[0],
                   .key     = texts[1],
                   .holder  = texts[2],
                   .trigger = texts[4],
                   .by      = texts[5],
                   .meta    = texts[6],
                   .stage   = texts[7] },
        .error = { "", texts[3], "" },
    };
    numbers_of_row(row, r);
    r->hold = hold_of_row(row, r->info.state, texts[8]);
    return true;
}

/* The single row of a statement whose parameters are bound. */
static bool
read_one(struct sq_conn *c, void **arena, sqlite3_stmt *row, const char *tenant, struct sq_run *r,
         bool *ret_found)
{
    int rc = il__sq_step(c, row);

    *ret_found = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    if (!read_row(c, arena, row, tenant, r)) {
        (void)sqlite3_reset(row); /* report the lack of memory */
        return false;
    }
    return il__sq_stmt_run(c, row);
}

bool
il__sq_run_find(struct sq_conn *c, void **arena, const char *tenant, const char *id,
                struct sq_run *r, bool *ret_found)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_run_of_id);

    return il__sq_bind_text(c, row, 1, tenant) && il__sq_bind_text(c, row, 2, id) &&
           read_one(c, arena, row, tenant, r, ret_found);
}

bool
il__sq_run_find_seq(struct sq_conn *c, void **arena, const char *tenant, uint64_t seq,
                    struct sq_run *r, bool *ret_found)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_run_of_seq);

    return il__sq_bind_int(c, row, 1, (int64_t)seq) &&
           read_one(c, arena, row, tenant, r, ret_found);
}

bool
il__sq_run_live(struct sq_store *s, const char *tenant, const char *key, struct sq_live *ret)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_run_live);
    int             rc;

    *ret = (struct sq_live){ 0 };
    if (!il__sq_bind_text(c, row, 1, tenant) || !il__sq_bind_text(c, row, 2, key))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        struct sq_run *r = il__arena_append(&s->scratch, &ret->items, &ret->n, sizeof *r);
        if (r == NULL || !read_row(c, &s->scratch, row, tenant, r)) {
            (void)sqlite3_reset(row);
            return il__sq_no_memory(c);
        }
        ret->n_pending += r->info.state == IL_RUN_PENDING;
    }
    return rc == SQLITE_DONE;
}

/* ---- changing -------------------------------------------------------------------------------- */

static bool
wake(struct sq_store *s, const struct sq_run *r)
{
    return il__sq_wake(s, il__board_slot(r->info.tenant, r->info.id, IL__WAKE_RUN));
}

bool
il__sq_run_add(struct sq_store *s, const struct sq_run *r)
{
    struct sq_conn    *c    = &s->conn;
    sqlite3_stmt      *stmt = il__sq_use(c, SQ_run_add);
    const il_run_info *info = &r->info;

    return il__sq_bind_int(c, stmt, 1, (int64_t)info->seq) &&
           il__sq_bind_text(c, stmt, 2, info->tenant) && il__sq_bind_text(c, stmt, 3, info->id) &&
           il__sq_bind_text(c, stmt, 4, info->key) && il__sq_bind_text(c, stmt, 5, info->holder) &&
           il__sq_bind_int(c, stmt, 6, (int64_t)info->fence) &&
           il__sq_bind_int(c, stmt, 7, (int64_t)r->ticket) &&
           il__sq_bind_int(c, stmt, 8, (int64_t)info->state) &&
           il__sq_bind_text(c, stmt, 9, info->trigger) && il__sq_bind_text(c, stmt, 10, info->by) &&
           il__sq_bind_text(c, stmt, 11, info->meta) &&
           il__sq_bind_int(c, stmt, 12, info->ttl_ms) && il__sq_bind_int(c, stmt, 13, r->keep_ms) &&
           il__sq_bind_int(c, stmt, 14, s->state.wall_ms) &&
           il__sq_bind_int(c, stmt, 15, info->started_at_ms) && il__sq_stmt_run(c, stmt) &&
           wake(s, r);
}

static bool
write_row(struct sq_store *s, const struct sq_run *r)
{
    struct sq_conn    *c     = &s->conn;
    sqlite3_stmt      *stmt  = il__sq_use(c, SQ_run_change);
    const il_run_info *info  = &r->info;
    const char        *error = il__run_error_text(&s->scratch, &r->error);

    if (error == NULL)
        return il__sq_no_memory(c);
    return il__sq_bind_int(c, stmt, 1, (int64_t)info->seq) &&
           il__sq_bind_text(c, stmt, 2, info->holder) &&
           il__sq_bind_int(c, stmt, 3, (int64_t)info->fence) &&
           il__sq_bind_int(c, stmt, 4, (int64_t)r->ticket) &&
           il__sq_bind_int(c, stmt, 5, (int64_t)info->state) &&
           il__sq_bind_int(c, stmt, 6, info->cancelled) &&
           il__sq_bind_int(c, stmt, 7, r->finished) && il__sq_bind_text(c, stmt, 8, error) &&
           il__sq_bind_text(c, stmt, 9, info->stage) &&
           il__sq_bind_int(c, stmt, 10, info->progress) &&
           il__sq_bind_int(c, stmt, 11, info->n_joined) &&
           il__sq_bind_int(c, stmt, 12, (int64_t)info->log_bytes) &&
           il__sq_bind_int(c, stmt, 13, info->ttl_ms) &&
           il__sq_bind_int(c, stmt, 14, info->started_at_ms) &&
           il__sq_bind_int(c, stmt, 15, info->ended_at_ms) &&
           il__sq_bind_int(c, stmt, 16, info->updated_at_ms) && il__sq_stmt_run(c, stmt);
}

/* A start joined this run, which does not change the run. */
bool
il__sq_run_joined(struct sq_store *s, struct sq_run *r)
{
    r->info.n_joined++;
    return write_row(s, r);
}

bool
il__sq_run_change(struct sq_store *s, struct sq_run *r)
{
    r->info.updated_at_ms = s->state.wall_ms;
    return write_row(s, r) && wake(s, r);
}

bool
il__sq_run_begin(struct sq_store *s, struct sq_run *r, uint64_t fence)
{
    r->info.state         = il__run_step(r->info.state, IL__RUN_EV_START, false);
    r->info.fence         = fence;
    r->ticket             = 0;
    r->info.started_at_ms = s->state.wall_ms;
    CHECK(r->info.state == IL_RUN_RUNNING);
    return il__sq_run_change(s, r);
}

bool
il__sq_run_end(struct sq_store *s, struct sq_run *r, enum il__run_event event, const char *text)
{
    if (r->info.state == IL_RUN_PENDING)
        r->info.fence = 0;
    if (r->hold.state != IL_LEASE_NONE)
        r->info.ttl_ms = r->hold.ttl_ms;
    r->info.state = il__run_end(r->info.state, event, r->info.cancelled != 0, text, &r->error);
    r->ticket     = 0;
    r->info.ended_at_ms = s->state.wall_ms;
    r->hold.state       = IL_LEASE_NONE;
    return il__sq_run_change(s, r);
}

bool
il__sq_run_stop(struct sq_store *s, struct sq_run *r, struct il__run_error error)
{
    if (r->info.cancelled)
        return true;
    r->info.cancelled = 1;
    r->error          = error;
    return il__sq_wake(s, IL__BOARD_BREAK) && il__sq_run_change(s, r);
}

bool
il__sq_run_offered(struct sq_store *s, uint64_t seq, uint64_t fence)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_run_offered);

    return il__sq_bind_int(c, stmt, 1, (int64_t)seq) &&
           il__sq_bind_int(c, stmt, 2, (int64_t)fence) && il__sq_stmt_run(c, stmt);
}

/* ---- what the locks tell --------------------------------------------------------------------- */

/* The live run of a lease or waiter. In a damaged file it may be missing or ended: then nothing is
 * done. */
static bool
run_of(struct sq_store *s, const struct sq_key *k, const struct sq_hold *h, struct sq_run *r,
       bool *ret_found)
{
    if (!il__sq_run_find_seq(&s->conn, &s->scratch, k->tenant, h->run, r, ret_found))
        return false;
    *ret_found = *ret_found && !il__run_ended(r->info.state);
    return true;
}

bool
il__sq_run_held(struct sq_store *s, il_op *op, const struct sq_key *k, const struct sq_hold *h)
{
    struct sq_run r;
    bool          found;

    if (!run_of(s, k, h, &r, &found))
        return false;
    if (found && r.info.state == IL_RUN_PENDING && !il__sq_run_begin(s, &r, h->number))
        return false;
    if (found && r.info.cancelled)
        il__run_tell_stop(op, r.error);
    return true;
}

bool
il__sq_run_broken(struct sq_store *s, const struct sq_key *k, const struct sq_hold *h)
{
    struct sq_run r;
    bool          found;

    if (!run_of(s, k, h, &r, &found))
        return false;
    return !found || il__sq_run_stop(s, &r, il__run_error_broken(h->reason));
}

/* An event for which a damaged row has no edge. */
static bool
is_possible(const struct sq_run *r, enum il__run_event event)
{
    return il__run_step(r->info.state, event, r->info.cancelled != 0) != IL_RUN_NONE;
}

bool
il__sq_run_lost(struct sq_store *s, const struct sq_key *k, const struct sq_hold *h,
                il_lease_state how)
{
    enum il__run_event event = il__run_lease_event(h->state, how);
    const char        *text  = h->reason;
    struct sq_run      r;
    bool               found;

    if (h->state == IL_LEASE_WAITING && h->verdict[0] != '\0') {
        event = IL__RUN_EV_CYCLE;
        text  = h->verdict;
    } else if (h->state == IL_LEASE_WAITING) {
        event = il__run_waiter_event(h->due_ms, h->deadline_ms, s->state.now_ms);
    }
    if (!run_of(s, k, h, &r, &found))
        return false;
    return !found || !is_possible(&r, event) || il__sq_run_end(s, &r, event, text);
}
