/*
 * cache.c: cached values in the SQLite engine. The rules are in src/core/cache.md.
 *
 * Race-free because each op reads and writes its rows inside one BEGIN IMMEDIATE transaction, so
 * they cannot change in between. core/cache.c decides what an op does.
 */
#include "store/sqlite/cache.h"

#include "base/arena.h"
#include "core/cache.h"
#include "core/cursor.h"
#include "core/op.h"

/* ---- reading --------------------------------------------------------------------------------- */

/* What is stored for a key. `row` is positioned on the value's row, if any: its bytes are copied
 * from there. */
struct stored {
    struct il__cache       c;
    struct il__cache_value value;
    struct il__cache_build build;
    sqlite3_stmt          *row;
};

static bool
bind_key(struct sq_conn *c, sqlite3_stmt *stmt, const il_op *op)
{
    return il__sq_bind_bytes(c, stmt, 1, op->tenant, op->n_bytes.tenant) &&
           il__sq_bind_bytes(c, stmt, 2, op->key, op->n_bytes.key);
}

static void
read_value(sqlite3_stmt *row, struct il__cache_value *v)
{
    *v = (struct il__cache_value){
        .filled      = il__sq_fence(row, 0),
        .began_at    = il__sq_time(row, 1),
        .fresh_until = il__sq_time(row, 2),
        .stale_until = il__sq_time(row, 3),
        .purge_at    = il__sq_time(row, 4),
        .build_ms    = MAX(sqlite3_column_int64(row, 5), 1),
        .code        = (int32_t)sqlite3_column_int64(row, 6),
        .negative    = sqlite3_column_int64(row, 7) != 0,
    };
}

static bool
load_build(struct sq_conn *c, void **arena, const il_op *op, struct stored *k)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_cache_build_of_key);

    if (!bind_key(c, row, op))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    k->c.build = &k->build;
    k->build   = (struct il__cache_build){
          .holder     = il__arena_strdup(arena, il__sq_text(row, 0)),
          .token      = il__sq_fence(row, 1),
          .expires_ms = il__sq_time(row, 2),
          .began_ms   = il__sq_time(row, 3),
          .began_at   = il__sq_time(row, 4),
    };
    (void)sqlite3_reset(row); /* there is no second one */
    return k->build.holder != NULL || il__sq_no_memory(c);
}

/* A get that finds a fresh value, and is not due for an early refresh, is answered: the build does
 * not matter. */
static bool
is_plain_hit(const il_op *op, const struct il__cache *c)
{
    return op->type == IL_OP_CACHE_GET && c->value != NULL && c->wall_ms < c->value->purge_at &&
           il__cache_is_fresh(c->value, c->wall_ms) &&
           !il__cache_is_early(c->value->fresh_until - c->wall_ms, c->value->build_ms,
                               op->in.cache.chance);
}

/* Which bytes the op needs: of a value that can be shown, or that its fill is compared with. */
static bool
bind_wanted(struct sq_conn *c, sqlite3_stmt *row, const il_op *op, int64_t wall_ms)
{
    bool    looks  = op->type == IL_OP_CACHE_GET || op->type == IL_OP_CACHE_LOOKUP;
    bool    tokens = op->fence != 0 && (looks || op->type == IL_OP_CACHE_FILL);
    int64_t first  = tokens ? (int64_t)op->fence : INT64_MAX;

    return il__sq_bind_int(c, row, 3, looks ? wall_ms : INT64_MAX) &&
           il__sq_bind_int(c, row, 4, first) &&
           il__sq_bind_int(c, row, 5, looks ? INT64_MAX : first);
}

/* The caller must call unload(), even if this failed. */
static bool
load(struct sq_conn *c, const struct sq_state *st, void **arena, const il_op *op, struct stored *k)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_cache_value_of_key);

    *k = (struct stored){ .c = { .now_ms = st->now_ms, .wall_ms = st->wall_ms } };
    if (!bind_key(c, row, op) || !bind_wanted(c, row, op, st->wall_ms))
        return false;
    int rc = il__sq_step(c, row);
    if (rc == SQLITE_ROW) {
        k->row     = row;
        k->c.value = &k->value;
        read_value(row, &k->value);
    }
    return rc != 0 && (is_plain_hit(op, &k->c) || load_build(c, arena, op, k));
}

static void
unload(struct stored *k)
{
    if (k->row != NULL)
        (void)sqlite3_reset(k->row); /* there is no second one */
    k->row = NULL;
}

/* The bytes of the value, into the op. */
static bool
take_bytes(struct sq_conn *c, il_op *op, struct stored *k)
{
    size_t n_bytes = (size_t)sqlite3_column_bytes(k->row, 8);

    k->value.data       = il__op_blob(op, sqlite3_column_blob(k->row, 8), n_bytes);
    k->value.data_bytes = n_bytes;
    return k->value.data != NULL || il__sq_no_memory(c);
}

static bool
look_up(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op, unsigned *ret_steps)
{
    struct stored k;
    bool          ok = load(c, st, arena, op, &k);

    if (ok) {
        *ret_steps = il__cache_lookup(op, &k.c);
        if ((*ret_steps & IL__CACHE_SHOW) != 0) {
            ok                  = take_bytes(c, op, &k);
            op->out.value       = k.value.data;
            op->out.value_bytes = k.value.data_bytes;
        }
    }
    unload(&k);
    return ok;
}

/* The last key of the page that begins after `after`: op->out.next if there are more, otherwise a
 * string greater than all keys. */
static bool
find_page_end(struct sq_conn *c, il_op *op, const char *after, char last[IL_KEY_BYTES_MAX + 2])
{
    sqlite3_stmt *row = il__sq_use(c, SQ_cache_page);
    unsigned      n   = 0;
    int           rc;

    if (!il__sq_bind_text(c, row, 1, op->tenant) ||
        !il__sq_bind_prefix(c, row, 2, op->in.list.prefix) || !il__sq_bind_text(c, row, 4, after) ||
        !il__sq_bind_int(c, row, 5, op->in.list.limit))
        return false;
    for (; (rc = il__sq_step(c, row)) == SQLITE_ROW; n++) {
        if (n == 0)
            (void)snprintf(last, IL_KEY_BYTES_MAX + 2, "%s", il__sq_text(row, 0));
    }
    if (rc != SQLITE_DONE)
        return false;
    if (n < 2) {
        (void)snprintf(last, IL_KEY_BYTES_MAX + 2, "%s\xFF",
                       op->in.list.prefix != NULL ? op->in.list.prefix : "");
        return true;
    }
    op->out.next = il__op_cursor(op, last, 0);
    return op->out.next != NULL || il__sq_no_memory(c);
}

static bool
count(struct sq_conn *c, const struct sq_state *st, il_op *op)
{
    char          last[IL_KEY_BYTES_MAX + 2];
    const char   *after = "";
    uint64_t      number;
    sqlite3_stmt *row = il__sq_use(c, SQ_cache_stats);

    if (op->in.list.cursor != NULL)
        CHECK(il__cursor_parse(op->in.list.cursor, &after, &number));
    if (!find_page_end(c, op, after, last) || !il__sq_bind_text(c, row, 1, op->tenant) ||
        !il__sq_bind_prefix(c, row, 2, op->in.list.prefix) ||
        !il__sq_bind_int(c, row, 4, st->now_ms) || !il__sq_bind_int(c, row, 5, st->wall_ms) ||
        !il__sq_bind_text(c, row, 6, after) || !il__sq_bind_text(c, row, 7, last) ||
        il__sq_step(c, row) != SQLITE_ROW)
        return false;
    op->status    = IL_OK;
    op->out.cache = (il_cache_info){
        .n_entries  = (uint64_t)sqlite3_column_int64(row, 0),
        .n_bytes    = (uint64_t)sqlite3_column_int64(row, 1),
        .n_fresh    = (uint64_t)sqlite3_column_int64(row, 2),
        .n_negative = (uint64_t)sqlite3_column_int64(row, 3),
        .n_building = (uint64_t)sqlite3_column_int64(row, 4),
    };
    op->out.cache.n_stale = op->out.cache.n_entries - op->out.cache.n_fresh;
    return il__sq_stmt_run(c, row);
}

/* ---- changing -------------------------------------------------------------------------------- */

static bool
wake(struct sq_store *s, const il_op *op)
{
    return il__sq_wake(s, il__board_slot(op->tenant, op->key, IL__WAKE_CACHE));
}

/* Run a statement whose parameters are tenant and key. */
static bool
run_on_key(struct sq_conn *c, enum sq_stmt which, const il_op *op)
{
    sqlite3_stmt *stmt = il__sq_use(c, which);

    return bind_key(c, stmt, op) && il__sq_stmt_run(c, stmt);
}

static bool
lead(struct sq_store *s, il_op *op)
{
    struct sq_conn        *c    = &s->conn;
    const struct sq_state *st   = &s->state;
    sqlite3_stmt          *stmt = il__sq_use(c, SQ_cache_build_set);

    op->out.fence = il__fence_next(&s->state.fence);
    return bind_key(c, stmt, op) && il__sq_bind_text(c, stmt, 3, op->holder) &&
           il__sq_bind_int(c, stmt, 4, (int64_t)op->out.fence) &&
           il__sq_bind_int(c, stmt, 5, st->now_ms + op->in.cache.lease_ms) &&
           il__sq_bind_int(c, stmt, 6, st->now_ms) && il__sq_bind_int(c, stmt, 7, st->wall_ms) &&
           il__sq_stmt_run(c, stmt);
}

static bool
renew(struct sq_store *s, const il_op *op)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_cache_build_renew);

    return bind_key(c, stmt, op) &&
           il__sq_bind_int(c, stmt, 3, s->state.now_ms + op->in.cache.lease_ms) &&
           il__sq_stmt_run(c, stmt);
}

static bool
value_set(struct sq_conn *c, const il_op *op, const struct il__cache_value *v)
{
    sqlite3_stmt *stmt = il__sq_use(c, SQ_cache_value_set);
    const void   *data = v->data_bytes > 0 ? v->data : ""; /* not a NULL */

    return bind_key(c, stmt, op) && il__sq_bind_int(c, stmt, 3, (int64_t)v->filled) &&
           il__sq_bind_int(c, stmt, 4, v->began_at) &&
           il__sq_bind_int(c, stmt, 5, v->fresh_until) &&
           il__sq_bind_int(c, stmt, 6, v->stale_until) &&
           il__sq_bind_int(c, stmt, 7, v->purge_at) && il__sq_bind_int(c, stmt, 8, v->build_ms) &&
           il__sq_bind_int(c, stmt, 9, v->code) && il__sq_bind_int(c, stmt, 10, v->negative) &&
           il__sq_bind_blob(c, stmt, 11, data, v->data_bytes) && il__sq_stmt_run(c, stmt);
}

static bool
value_age(struct sq_conn *c, const il_op *op, const struct il__cache_value *v)
{
    sqlite3_stmt *stmt = il__sq_use(c, SQ_cache_value_age);

    return bind_key(c, stmt, op) && il__sq_bind_int(c, stmt, 3, v->fresh_until) &&
           il__sq_bind_int(c, stmt, 4, v->stale_until) &&
           il__sq_bind_int(c, stmt, 5, v->purge_at) && il__sq_stmt_run(c, stmt);
}

/* ---- the ops --------------------------------------------------------------------------------- */

static bool
fill(struct sq_store *s, il_op *op)
{
    struct sq_conn        *c = &s->conn;
    struct stored          k;
    struct il__cache_value made;
    bool                   stores = false;

    bool ok = load(c, &s->state, &s->scratch, op, &k);
    if (ok && k.c.value != NULL && k.value.filled == op->fence)
        ok = take_bytes(c, op, &k); /* to compare with */
    if (ok)
        stores = il__cache_fill(op, &k.c, &made);
    unload(&k);
    return ok && (!stores || (value_set(c, op, &made) && run_on_key(c, SQ_cache_build_remove, op) &&
                              wake(s, op)));
}

static bool
abandon(struct sq_store *s, il_op *op)
{
    struct stored k;
    bool          ok      = load(&s->conn, &s->state, &s->scratch, op, &k);
    bool          removes = ok && il__cache_abandon(op, &k.c);

    unload(&k);
    return ok && (!removes || (run_on_key(&s->conn, SQ_cache_build_remove, op) && wake(s, op)));
}

static bool
drop(struct sq_store *s, il_op *op)
{
    struct sq_conn        *c = &s->conn;
    struct stored          k;
    struct il__cache_value rest;
    bool                   ok    = load(c, &s->state, &s->scratch, op, &k);
    bool                   stays = ok && il__cache_drop(op, &k.c, &rest);

    unload(&k);
    op->status = IL_OK;
    if (ok && stays && rest.fresh_until != k.value.fresh_until)
        ok = value_age(c, op, &rest);
    if (ok && !stays && k.c.value != NULL)
        ok = run_on_key(c, SQ_cache_value_remove, op);
#ifdef IL_MUTANT_fill_after_drop_accepted
    k.c.build = NULL;
#endif
    if (ok && k.c.build != NULL)
        ok = run_on_key(c, SQ_cache_build_remove, op) && wake(s, op) &&
             il__sq_wake(s, IL__BOARD_BREAK); /* notify its builder */
    return ok;
}

bool
il__sq_cache_op(struct sq_store *s, il_op *op)
{
    unsigned steps;

    switch (op->type) {
    case IL_OP_CACHE_LOOKUP:
        return look_up(&s->conn, &s->state, &s->scratch, op, &steps) &&
               ((steps & IL__CACHE_LEAD) == 0 || lead(s, op)) &&
               ((steps & IL__CACHE_RENEW) == 0 || renew(s, op));
    case IL_OP_CACHE_FILL:
        return fill(s, op);
    case IL_OP_CACHE_ABANDON:
        return abandon(s, op);
    case IL_OP_CACHE_DROP:
        return drop(s, op);
    default:
        return il__sq_cache_read(&s->conn, &s->state, &s->scratch, op);
    }
}

bool
il__sq_cache_read(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op)
{
    unsigned steps;

    if (op->type == IL_OP_CACHE_STATS)
        return count(c, st, op);
    CHECK(op->type == IL_OP_CACHE_GET);
    return look_up(c, st, arena, op, &steps);
}

/* ---- retention ------------------------------------------------------------------------------- */

static bool
purge(struct sq_conn *c, enum sq_stmt which, int64_t until_ms, uint32_t limit)
{
    sqlite3_stmt *stmt = il__sq_use(c, which);

    return il__sq_bind_int(c, stmt, 1, until_ms) && il__sq_bind_int(c, stmt, 2, limit) &&
           il__sq_stmt_run(c, stmt);
}

/* Expired values and dead builds, which are no longer visible. Only values count as purged. */
bool
il__sq_cache_sweep(struct sq_store *s, il_op *op)
{
    struct sq_conn *c     = &s->conn;
    uint32_t        limit = op->in.list.limit;
    bool            more;

    if (!purge(c, SQ_cache_value_purge, s->state.wall_ms, limit))
        return false;
    op->out.sweep.n_purged += (uint32_t)sqlite3_changes(c->db);
    if (!purge(c, SQ_cache_build_purge, s->state.now_ms, limit) ||
        !il__sq_cache_overdue(c, &s->state, &more))
        return false;
    if (more)
        op->out.flags |= IL_OUT_MORE;
    return true;
}

bool
il__sq_cache_overdue(struct sq_conn *c, const struct sq_state *st, bool *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_cache_overdue);

    return il__sq_bind_int(c, row, 1, st->now_ms) && il__sq_bind_int(c, row, 2, st->wall_ms) &&
           il__sq_ask(c, row, ret);
}
