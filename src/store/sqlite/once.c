/*
 * once.c: idempotency keys in the SQLite engine. The rules are in src/core/once.md.
 *
 * Race-free because each op reads and writes its row inside one BEGIN IMMEDIATE transaction, so it
 * cannot change in between. core/once.c decides what an op does.
 */
#include "store/sqlite/once.h"

#include "base/arena.h"
#include "core/once.h"
#include "core/op.h"

/* ---- reading --------------------------------------------------------------------------------- */

/* Does the op need the bytes of the answer, if there is one? */
static bool
wants_response(const il_op *op, const struct il__once *e)
{
    return op->type != IL_OP_ONCE_ABANDON &&
           (op->type != IL_OP_ONCE_FINISH || e->token == op->fence);
}

/* Strings go into the arena; a response goes directly into the op, where it is shown. */
static bool
read_row(void **arena, sqlite3_stmt *row, il_op *op, struct il__once *e)
{
    int   n_bytes = sqlite3_column_bytes(row, 2);
    void *print   = il__arena_alloc(arena, (size_t)n_bytes + 1);
    bool  taken   = sqlite3_column_type(row, 9) != SQLITE_NULL;

    *e = (struct il__once){
        .attempt           = il__arena_strdup(arena, il__sq_text(row, 0)),
        .token             = il__sq_fence(row, 1),
        .fingerprint       = print,
        .fingerprint_bytes = (size_t)n_bytes,
        .done              = sqlite3_column_int64(row, 3) == IL__ONCE_DONE,
        .expires_ms        = il__sq_time(row, 4),
        .keep_ms           = il__sq_time(row, 5),
        .purge_ms          = il__sq_time(row, 6),
        .created_at        = il__sq_time(row, 7),
        .meta              = il__arena_strdup(arena, il__sq_text(row, 8)),
        .before            = taken ? il__arena_strdup(arena, il__sq_text(row, 9)) : NULL,
        .code              = (int32_t)sqlite3_column_int64(row, 10),
    };
    if (print == NULL || e->attempt == NULL || e->meta == NULL || (taken && e->before == NULL))
        return false;
    if (n_bytes > 0)
        memcpy(print, sqlite3_column_blob(row, 2), (size_t)n_bytes);
    if (e->done && wants_response(op, e)) {
        e->response_bytes = (size_t)sqlite3_column_bytes(row, 11);
        e->response       = il__op_blob(op, sqlite3_column_blob(row, 11), e->response_bytes);
        return e->response != NULL;
    }
    return true;
}

/* What is stored for the op's key; *ret is `e`, or NULL if there is nothing. */
static bool
load(struct sq_conn *c, void **arena, il_op *op, struct il__once *e, const struct il__once **ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_once_of_key);

    *ret = NULL;
    if (!il__sq_bind_bytes(c, row, 1, op->tenant, op->n_bytes.tenant) ||
        !il__sq_bind_bytes(c, row, 2, op->key, op->n_bytes.key))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    bool read = read_row(arena, row, op, e);
    (void)sqlite3_reset(row); /* there is no second one */
    *ret = e;
    return read || il__sq_no_memory(c);
}

/* ---- changing -------------------------------------------------------------------------------- */

static bool
bind_key(struct sq_conn *c, sqlite3_stmt *stmt, const il_op *op)
{
    return il__sq_bind_bytes(c, stmt, 1, op->tenant, op->n_bytes.tenant) &&
           il__sq_bind_bytes(c, stmt, 2, op->key, op->n_bytes.key);
}

/* `taken` is the dead claim that is taken over, or NULL. */
static bool
claim(struct sq_store *s, il_op *op, const struct il__once *taken)
{
    struct sq_conn   *c     = &s->conn;
    const il_once_in *in    = &op->in.once;
    int64_t           now   = s->state.now_ms;
    sqlite3_stmt     *stmt  = il__sq_use(c, SQ_once_claim);
    const void       *print = in->fingerprint_bytes > 0 ? in->fingerprint : ""; /* not a NULL */

    op->out.fence = il__fence_next(&s->state.fence);
    if (!bind_key(c, stmt, op) || !il__sq_bind_text(c, stmt, 3, op->holder) ||
        !il__sq_bind_int(c, stmt, 4, (int64_t)op->out.fence) ||
        !il__sq_bind_blob(c, stmt, 5, print, in->fingerprint_bytes) ||
        !il__sq_bind_int(c, stmt, 6, now + in->lease_ms) ||
        !il__sq_bind_int(c, stmt, 7, in->keep_ms) ||
        !il__sq_bind_int(c, stmt, 8, il__once_claim_purge_ms(op, now)) ||
        !il__sq_bind_int(c, stmt, 9, taken != NULL ? taken->created_at : s->state.wall_ms) ||
        !il__sq_bind_text(c, stmt, 10, il__once_meta(op, taken)))
        return false;
    if (taken == NULL)
        (void)sqlite3_bind_null(stmt, 11); /* cannot fail: the statement has this parameter */
    else if (!il__sq_bind_text(c, stmt, 11, taken->meta))
        return false;
    return il__sq_stmt_run(c, stmt);
}

static bool
renew(struct sq_store *s, const il_op *op)
{
    struct sq_conn   *c    = &s->conn;
    const il_once_in *in   = &op->in.once;
    sqlite3_stmt     *stmt = il__sq_use(c, SQ_once_renew);

    return bind_key(c, stmt, op) && il__sq_bind_int(c, stmt, 3, s->state.now_ms + in->lease_ms) &&
           il__sq_bind_int(c, stmt, 4, in->keep_ms) &&
           il__sq_bind_int(c, stmt, 5, il__once_claim_purge_ms(op, s->state.now_ms)) &&
           il__sq_stmt_run(c, stmt);
}

static bool
wake(struct sq_store *s, const il_op *op)
{
    return il__sq_wake(s, il__board_slot(op->tenant, op->key, IL__WAKE_ONCE));
}

static bool
finish(struct sq_store *s, const il_op *op, const struct il__once *e)
{
    struct sq_conn   *c        = &s->conn;
    const il_once_in *in       = &op->in.once;
    sqlite3_stmt     *stmt     = il__sq_use(c, SQ_once_finish);
    const void       *response = in->response_bytes > 0 ? in->response : ""; /* not a NULL */

    CHECK(e != NULL);
    return bind_key(c, stmt, op) && il__sq_bind_int(c, stmt, 3, s->state.wall_ms + e->keep_ms) &&
           il__sq_bind_int(c, stmt, 4, in->code) &&
           il__sq_bind_blob(c, stmt, 5, response, in->response_bytes) && il__sq_stmt_run(c, stmt) &&
           wake(s, op);
}

static bool
abandon(struct sq_store *s, const il_op *op)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_once_remove);

    return bind_key(c, stmt, op) && il__sq_stmt_run(c, stmt) && wake(s, op);
}

/* ---- the ops --------------------------------------------------------------------------------- */

/* begin and get: decide, and show an answer. */
static bool
look(struct sq_conn *c, const struct sq_state *st, il_op *op, const struct il__once *e,
     enum il__once_step *ret)
{
    *ret = il__once_begin(op, e, st->now_ms, st->wall_ms);
    if (op->status == IL_NOMEM)
        return il__sq_no_memory(c);
    if (op->status == IL_REPLAY) {
        CHECK(e != NULL);
        op->out.value       = e->response;
        op->out.value_bytes = e->response_bytes;
    }
    return true;
}

static bool
begin(struct sq_store *s, il_op *op, const struct il__once *e)
{
    enum il__once_step step;

    if (!look(&s->conn, &s->state, op, e, &step))
        return false;
    switch (step) {
    case IL__ONCE_CLAIM:
        return claim(s, op, NULL);
    case IL__ONCE_TAKE:
        return claim(s, op, e);
    case IL__ONCE_RENEW:
        return renew(s, op);
    case IL__ONCE_ANSWERED:
    default:
        return true;
    }
}

bool
il__sq_once_op(struct sq_store *s, il_op *op)
{
    const struct sq_state *st = &s->state;
    struct il__once        stored;
    const struct il__once *e;

    if (op->type == IL_OP_ONCE_GET)
        return il__sq_once_read(&s->conn, st, &s->scratch, op);
    if (!load(&s->conn, &s->scratch, op, &stored, &e))
        return false;
    if (op->type == IL_OP_ONCE_BEGIN)
        return begin(s, op, e);
    if (op->type == IL_OP_ONCE_FINISH)
        return !il__once_finish(op, e, st->now_ms, st->wall_ms) || finish(s, op, e);
    CHECK(op->type == IL_OP_ONCE_ABANDON);
    return !il__once_abandon(op, e, st->now_ms, st->wall_ms) || abandon(s, op);
}

bool
il__sq_once_read(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op)
{
    struct il__once        stored;
    const struct il__once *e;
    enum il__once_step     step;

    CHECK(op->type == IL_OP_ONCE_GET);
    return load(c, arena, op, &stored, &e) && look(c, st, op, e, &step);
}

/* ---- retention ------------------------------------------------------------------------------- */

static bool
purge(struct sq_store *s, il_op *op, int64_t state, int64_t until_ms)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_once_purge);

    if (!il__sq_bind_int(c, stmt, 1, state) || !il__sq_bind_int(c, stmt, 2, until_ms) ||
        !il__sq_bind_int(c, stmt, 3, op->in.list.limit) || !il__sq_stmt_run(c, stmt))
        return false;
    op->out.sweep.n_purged += (uint32_t)sqlite3_changes(c->db);
    return true;
}

bool
il__sq_once_sweep(struct sq_store *s, il_op *op)
{
    bool more;

    if (!purge(s, op, IL__ONCE_RUNNING, s->state.now_ms) ||
        !purge(s, op, IL__ONCE_DONE, s->state.wall_ms) ||
        !il__sq_once_overdue(&s->conn, &s->state, &more))
        return false;
    if (more)
        op->out.flags |= IL_OUT_MORE;
    return true;
}

bool
il__sq_once_overdue(struct sq_conn *c, const struct sq_state *st, bool *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_once_overdue);

    return il__sq_bind_int(c, row, 1, st->now_ms) && il__sq_bind_int(c, row, 2, st->wall_ms) &&
           il__sq_ask(c, row, ret);
}
