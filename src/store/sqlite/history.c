/*
 * history.c: the recorded expiries, breaks and refusals of keys, in the SQLite engine. The rules
 * are in src/core/history.h.
 *
 * Race-free because each op reads and writes its row inside one BEGIN IMMEDIATE transaction, so it
 * cannot change in between.
 */
#include "store/sqlite/history.h"

#include "base/arena.h"
#include "core/history.h"
#include "core/lease.h"
#include "core/op.h"

/* The stored text of a key, in the arena; *ret_found: it has one. */
static bool
load(struct sq_conn *c, void **arena, const char *tenant, const char *key, struct il__history *ret,
     bool *ret_found)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_history_of_key);

    *ret       = (struct il__history){ .data = "" };
    *ret_found = false;
    if (!il__sq_bind_text(c, row, 1, tenant) || !il__sq_bind_text(c, row, 2, key))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    size_t n_bytes = (size_t)sqlite3_column_bytes(row, 0);
    void  *data    = il__arena_alloc(arena, n_bytes + 1);
    if (data != NULL && n_bytes > 0)
        memcpy(data, sqlite3_column_blob(row, 0), n_bytes);
    (void)sqlite3_reset(row);
    if (data == NULL)
        return il__sq_no_memory(c);
    *ret       = (struct il__history){ .data = data, .n_bytes = n_bytes };
    *ret_found = true;
    return true;
}

/* ---- recording ------------------------------------------------------------------------------- */

static bool
count(struct sq_conn *c, const char *tenant, int64_t n, int64_t *ret_n)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_history_count);

    if (!il__sq_bind_text(c, row, 1, tenant) || !il__sq_bind_int(c, row, 2, n) ||
        il__sq_step(c, row) != SQLITE_ROW)
        return false;
    *ret_n = sqlite3_column_int64(row, 0);
    return il__sq_stmt_run(c, row);
}

static bool
remove_row(struct sq_conn *c, int64_t id, const char *tenant)
{
    sqlite3_stmt *stmt = il__sq_use(c, SQ_history_remove);
    int64_t       n;

    return il__sq_bind_int(c, stmt, 1, id) && il__sq_stmt_run(c, stmt) && count(c, tenant, -1, &n);
}

/* A key more: if that is too many, the oldest goes. */
static bool
add_key(struct sq_conn *c, const char *tenant)
{
    sqlite3_stmt *row = NULL;
    int64_t       n   = 0;

    if (!count(c, tenant, 1, &n))
        return false;
    if (n <= IL_EVENT_KEYS_MAX)
        return true;
    row = il__sq_use(c, SQ_history_oldest);
    if (!il__sq_bind_text(c, row, 1, tenant))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    int64_t id = sqlite3_column_int64(row, 0);
    return il__sq_stmt_run(c, row) && remove_row(c, id, tenant);
}

static bool
put(struct sq_conn *c, const char *tenant, const char *key, const struct il__event *e,
    const struct il__buf *text)
{
    sqlite3_stmt *stmt = il__sq_use(c, SQ_history_put);

    return il__sq_bind_text(c, stmt, 1, tenant) && il__sq_bind_text(c, stmt, 2, key) &&
           il__sq_bind_int(c, stmt, 3, e->last_ms) &&
           il__sq_bind_blob(c, stmt, 4, text->data, text->n_bytes) && il__sq_stmt_run(c, stmt);
}

static bool
record(struct sq_store *s, const char *tenant, const char *key, const struct il__event *e)
{
    struct sq_conn         *c    = &s->conn;
    struct il__buf AUTO_BUF text = { 0 };
    struct il__history      old;
    bool                    found;
    bool                    damaged;

    if (!load(c, &s->scratch, tenant, key, &old, &found))
        return false;
    if (!il__history_add(&old, e, s->state.wall_ms, &text, &damaged))
        return damaged ? il__sq_corrupt(c) : il__sq_no_memory(c);
    return put(c, tenant, key, e, &text) && (found || add_key(c, tenant));
}

static struct il__lease_facts
facts_of(const struct sq_state *st, const struct sq_hold *h)
{
    return (struct il__lease_facts){ .holder  = h->holder,
                                     .meta    = h->meta,
                                     .fence   = h->number,
                                     .held_ms = st->now_ms - h->since_ms,
                                     .over_ms = st->now_ms - h->due_ms };
}

bool
il__sq_history_expired(struct sq_store *s, const struct sq_key *k, const struct sq_hold *h)
{
    struct il__lease_facts facts = facts_of(&s->state, h);
    struct il__event       e     = il__event_expired(&facts, s->state.wall_ms);

    return record(s, k->tenant, k->key, &e);
}

bool
il__sq_history_broken(struct sq_store *s, const struct sq_key *k, const struct sq_hold *h,
                      const il_op *op)
{
    struct il__lease_facts facts = facts_of(&s->state, h);
    struct il__event       e     = il__event_broken(&facts, op, s->state.wall_ms);

    return record(s, k->tenant, k->key, &e);
}

bool
il__sq_refused(struct sq_store *s, il_op *op)
{
    struct il__event e = il__event_refused(op, s->state.wall_ms);

    op->status = IL_OK;
    return record(s, op->tenant, op->key, &e);
}

/* ---- listing --------------------------------------------------------------------------------- */

/* Leases that have expired, but that nobody has ended yet, are listed as if they had been. */
static bool
add_overdue(struct sq_conn *c, const struct sq_state *st, void **arena, const il_op *op,
            struct il__history *history, struct il__buf *text)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_lease_of_key);
    int           rc;

    if (!il__sq_bind_text(c, row, 1, op->tenant) || !il__sq_bind_text(c, row, 2, op->key))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        struct il__buf added = { 0 };
        struct sq_hold h;
        bool           damaged = false;
        bool           ok      = il__sq_lease_row(arena, row, &h);
        if (ok && (h.state != IL_LEASE_HELD || !il__lease_due(h.due_ms, st->now_ms)))
            continue;
        if (ok) {
            struct il__lease_facts facts = facts_of(st, &h);
            struct il__event       e     = il__event_expired(&facts, st->wall_ms);
            ok = il__history_add(history, &e, st->wall_ms, &added, &damaged);
        }
        if (!ok) {
            il__buf_release(&added);
            (void)sqlite3_reset(row);
            return damaged ? il__sq_corrupt(c) : il__sq_no_memory(c);
        }
        il__buf_release(text);
        *text    = added;
        *history = (struct il__history){ .data = il__buf_str(text), .n_bytes = text->n_bytes };
    }
    return rc == SQLITE_DONE;
}

bool
il__sq_history(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op)
{
    struct il__buf AUTO_BUF text = { 0 };
    struct il__history      history;
    bool                    found;
    bool                    damaged;

    if (!load(c, arena, op->tenant, op->key, &history, &found) ||
        !add_overdue(c, st, arena, op, &history, &text))
        return false;
    if (il__history_list(&history, op, st->wall_ms, &damaged))
        return true;
    return damaged ? il__sq_corrupt(c) : il__sq_no_memory(c);
}

/* ---- retention ------------------------------------------------------------------------------- */

/* The oldest row that is over; *ret_id is 0 if there is none. */
static bool
next_due(struct sq_conn *c, const struct sq_state *st, int64_t *ret_id, char *tenant)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_history_due);

    *ret_id = 0;
    if (!il__sq_bind_int(c, row, 1, st->wall_ms - IL_EVENT_KEEP_MS))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    *ret_id = sqlite3_column_int64(row, 0);
    (void)snprintf(tenant, IL_TENANT_BYTES_MAX + 1, "%s", il__sq_text(row, 1));
    return il__sq_stmt_run(c, row);
}

bool
il__sq_history_sweep(struct sq_store *s, il_op *op)
{
    char    tenant[IL_TENANT_BYTES_MAX + 1];
    int64_t id;

    for (uint32_t n = 0;; n++) {
        if (!next_due(&s->conn, &s->state, &id, tenant))
            return false;
        if (id == 0)
            return true;
        if (n == op->in.list.limit) {
            op->out.flags |= IL_OUT_MORE;
            return true;
        }
        if (!remove_row(&s->conn, id, tenant))
            return false;
        op->out.sweep.n_purged++;
    }
}

bool
il__sq_history_overdue(struct sq_conn *c, const struct sq_state *st, bool *ret)
{
    char    tenant[IL_TENANT_BYTES_MAX + 1];
    int64_t id;

    if (!next_due(c, st, &id, tenant))
        return false;
    *ret = id != 0;
    return true;
}
