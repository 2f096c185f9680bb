/*
 * lease_row.c: rows of il_lease: reads a key, and makes single changes; no decisions. The waiters
 * of a key are in waiters.c.
 */
#include "base/arena.h"
#include "core/key.h"
#include "core/lease.h"
#include "store/sqlite/run.h"

/* ---- reading --------------------------------------------------------------------------------- */

/* Clamp a stored number that can only be wrong if the file is damaged. */
il_mode
il__sq_mode(sqlite3_stmt *row, int column)
{
    int64_t value = sqlite3_column_int64(row, column);

    return value >= 0 && value < IL_MODE_COUNT ? (il_mode)value : IL_MODE_EXCLUSIVE;
}

static il_lease_state
state_of(int64_t value)
{
    return value == IL_LEASE_OFFERED || value == IL_LEASE_CLOSING ? (il_lease_state)value
                                                                  : IL_LEASE_HELD;
}

uint32_t
il__sq_permits(sqlite3_stmt *row, int column, il_mode mode)
{
    int64_t value = sqlite3_column_int64(row, column);

    if (mode != IL_MODE_PERMIT)
        return 0;
    return value >= 1 && value <= IL_PERMITS_MAX ? (uint32_t)value : 1;
}

bool
il__sq_lease_row(void **arena, sqlite3_stmt *row, struct sq_hold *h)
{
    il_mode mode = il__sq_mode(row, 2);

    *h = (struct sq_hold){
        .number     = il__sq_fence(row, 0),
        .holder     = il__arena_strdup(arena, il__sq_text(row, 1)),
        .mode       = mode,
        .permits    = il__sq_permits(row, 3, mode),
        .state      = state_of(sqlite3_column_int64(row, 4)),
        .ttl_ms     = sqlite3_column_int64(row, 5),
        .settle_ms  = sqlite3_column_int64(row, 6),
        .since_ms   = sqlite3_column_int64(row, 7),
        .renewed_ms = sqlite3_column_int64(row, 8),
        .due_ms     = sqlite3_column_int64(row, 9),
        .meta       = il__arena_strdup(arena, il__sq_text(row, 10)),
        .place      = il__arena_strdup(arena, il__sq_text(row, 11)),
        .reason     = il__arena_strdup(arena, il__sq_text(row, 12)),
        .verdict    = "",
        .run        = (uint64_t)sqlite3_column_int64(row, 13),
    };
    return h->holder != NULL && h->meta != NULL && h->place != NULL && h->reason != NULL;
}

bool
il__sq_holds_add(void **arena, struct sq_holds *holds, const struct sq_hold *h)
{
    struct sq_hold *added = il__arena_append(arena, &holds->items, &holds->n, sizeof *added);

    if (added != NULL)
        *added = *h;
    return added != NULL;
}

bool
il__sq_key_load(struct sq_store *s, struct sq_key *k)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_lease_of_key);
    int             rc;

    if (!il__sq_bind_text(c, row, 1, k->tenant) || !il__sq_bind_text(c, row, 2, k->key))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        struct sq_hold h;
        if (!il__sq_lease_row(&s->scratch, row, &h) ||
            !il__sq_holds_add(&s->scratch, &k->leases, &h)) {
            (void)sqlite3_reset(row); /* report the lack of memory */
            return il__sq_no_memory(c);
        }
    }
    return rc == SQLITE_DONE && il__sq_waiters_begin(s, k);
}

struct sq_hold *
il__sq_find_holder(const struct sq_holds *holds, const char *holder)
{
    for (size_t i = 0; i < holds->n; i++) {
        if (!holds->items[i].gone && strcmp(holds->items[i].holder, holder) == 0)
            return &holds->items[i];
    }
    return NULL;
}

uint64_t
il__sq_newest_fence(const struct sq_key *k)
{
    for (size_t i = k->leases.n; i-- > 0;) {
        if (!k->leases.items[i].gone)
            return k->leases.items[i].number;
    }
    return 0;
}

/* ---- changing -------------------------------------------------------------------------------- */

bool
il__sq_wake(struct sq_store *s, uint32_t slot)
{
    if (!il__grow(&s->wakes, s->n_wakes, &s->wakes_capacity, sizeof *s->wakes))
        return il__sq_no_memory(&s->conn);
    s->wakes[s->n_wakes++] = slot;
    return true;
}

/* Parameters 1 to 3. */
static bool
bind_place(struct sq_conn *c, sqlite3_stmt *stmt, const struct sq_key *k, uint64_t fence)
{
    return il__sq_bind_text(c, stmt, 1, k->tenant) && il__sq_bind_text(c, stmt, 2, k->key) &&
           il__sq_bind_int(c, stmt, 3, (int64_t)fence);
}

static bool
bind_lease(struct sq_conn *c, sqlite3_stmt *stmt, const struct sq_key *k, const struct sq_hold *h)
{
    CHECK(h->number > 0 && h->permits <= IL_PERMITS_MAX);
    return bind_place(c, stmt, k, h->number) && il__sq_bind_text(c, stmt, 4, h->holder) &&
           il__sq_bind_bytes(c, stmt, 5, h->holder, il__holder_root_bytes(h->holder)) &&
           il__sq_bind_int(c, stmt, 6, (int64_t)h->mode) &&
           il__sq_bind_int(c, stmt, 7, h->permits) &&
           il__sq_bind_int(c, stmt, 8, (int64_t)h->state) &&
           il__sq_bind_int(c, stmt, 9, h->ttl_ms) && il__sq_bind_int(c, stmt, 10, h->settle_ms) &&
           il__sq_bind_int(c, stmt, 11, h->since_ms) && il__sq_bind_int(c, stmt, 12, h->due_ms) &&
           il__sq_bind_text(c, stmt, 13, h->meta) && il__sq_bind_text(c, stmt, 14, h->place) &&
           il__sq_bind_int(c, stmt, 15, (int64_t)h->run);
}

bool
il__sq_lease_add(struct sq_store *s, struct sq_key *k, const struct sq_hold *h)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_lease_add);

    if (!il__sq_holds_add(&s->scratch, &k->leases, h))
        return il__sq_no_memory(c);
    return bind_lease(c, stmt, k, h) && il__sq_stmt_run(c, stmt);
}

bool
il__sq_lease_busy(struct sq_store *s, const struct sq_key *k, const char *holder, bool *ret_busy)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_lease_busy);

    return il__sq_bind_text(c, row, 1, k->tenant) && il__sq_bind_text(c, row, 2, k->key) &&
           il__sq_bind_bytes(c, row, 3, holder, il__holder_root_bytes(holder)) &&
           il__sq_ask(c, row, ret_busy);
}

bool
il__sq_lease_release(struct sq_store *s, const il_op *op, bool *ret_done)
{
    struct sq_conn *c    = &s->conn;
    struct sq_key   k    = { .tenant = op->tenant, .key = op->key };
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_lease_release);

    if (!bind_place(c, stmt, &k, op->fence) || !il__sq_bind_text(c, stmt, 4, op->holder) ||
        !il__sq_bind_int(c, stmt, 5, s->state.now_ms) ||
        !il__sq_bind_int(c, stmt, 6, IL_LEASE_HELD) || !il__sq_stmt_run(c, stmt))
        return false;
    *ret_done = sqlite3_changes(c->db) == 1;
    return !*ret_done ||
           il__sq_ended_add(s, op->tenant, op->key, op->holder, op->fence, IL_LEASE_RELEASED);
}

bool
il__sq_lease_change(struct sq_store *s, const struct sq_key *k, const struct sq_hold *h)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_lease_change);

    return bind_place(c, stmt, k, h->number) && il__sq_bind_int(c, stmt, 4, (int64_t)h->state) &&
           il__sq_bind_int(c, stmt, 5, h->ttl_ms) && il__sq_bind_int(c, stmt, 6, h->renewed_ms) &&
           il__sq_bind_int(c, stmt, 7, h->due_ms) && il__sq_bind_text(c, stmt, 8, h->reason) &&
           il__sq_stmt_run(c, stmt);
}

/* A lease is remembered, unless it was never confirmed. */
bool
il__sq_lease_end(struct sq_store *s, const struct sq_key *k, struct sq_hold *h, il_lease_state how)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_lease_remove);

    CHECK(il__lease_ended(how));
    h->gone = true;
    if (h->run != 0 && !il__sq_run_lost(s, k, h, how))
        return false;
    if (!bind_place(c, stmt, k, h->number) || !il__sq_stmt_run(c, stmt))
        return false;
    if (h->state == IL_LEASE_OFFERED && how != IL_LEASE_RELEASED)
        return true;
    return il__sq_ended_add(s, k->tenant, k->key, h->holder, h->number, how);
}

bool
il__sq_lease_detach(struct sq_store *s, const struct sq_key *k, struct sq_hold *h)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_lease_detach);

    h->run = 0;
    return bind_place(c, stmt, k, h->number) && il__sq_stmt_run(c, stmt);
}
