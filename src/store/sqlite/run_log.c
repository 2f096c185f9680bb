/*
 * run_log.c: the logs of runs in the SQLite engine, stored as consecutive pieces. A write extends a
 * short last piece, so many small writes do not become many rows; a long write is split, so reading
 * a part does not read all of it. Only the last IL_LOG_BYTES_MAX bytes count, even if older pieces
 * still exist.
 */
#include "core/op.h"
#include "store/sqlite/run.h"

#define SHORT_BYTES 8192 /* a piece is extended up to that */

/* Start of the kept part. */
static uint64_t
first_kept(uint64_t n_bytes)
{
    return n_bytes > IL_LOG_BYTES_MAX ? n_bytes - IL_LOG_BYTES_MAX : 0;
}

/* Append the data to the last piece, if that is short; *ret_done says so. */
static bool
extend(struct sq_store *s, uint64_t seq, const void *data, size_t n, bool *ret_done)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_run_log_last);

    if (!il__sq_bind_int(c, row, 1, (int64_t)seq))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    int64_t piece   = sqlite3_column_int64(row, 0);
    int64_t n_bytes = sqlite3_column_int64(row, 1);
    if (!il__sq_stmt_run(c, row))
        return false;
    if (n_bytes + (int64_t)n > SHORT_BYTES)
        return true;
    *ret_done          = true;
    sqlite3_stmt *stmt = il__sq_use(c, SQ_run_log_extend);
    return il__sq_bind_int(c, stmt, 1, piece) && il__sq_bind_blob(c, stmt, 2, data, n) &&
           il__sq_stmt_run(c, stmt);
}

static bool
add_pieces(struct sq_store *s, uint64_t seq, uint64_t offset, const char *data, size_t n)
{
    struct sq_conn *c = &s->conn;

    while (n > 0) {
        size_t        part = MIN(n, (size_t)IL__LOG_PIECE_BYTES);
        sqlite3_stmt *stmt = il__sq_use(c, SQ_run_log_add);
        if (!il__sq_bind_int(c, stmt, 1, (int64_t)seq) ||
            !il__sq_bind_int(c, stmt, 2, (int64_t)offset) ||
            !il__sq_bind_blob(c, stmt, 3, data, part) || !il__sq_stmt_run(c, stmt))
            return false;
        offset += part;
        data += part;
        n -= part;
    }
    return true;
}

static bool
trim(struct sq_store *s, uint64_t seq, uint64_t before)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_run_log_trim);

    return il__sq_bind_int(c, stmt, 1, (int64_t)seq) &&
           il__sq_bind_int(c, stmt, 2, (int64_t)before) && il__sq_stmt_run(c, stmt);
}

/* The caller writes the run's row. */
bool
il__sq_run_log_append(struct sq_store *s, struct sq_run *r, const struct il__log_part *log)
{
    uint64_t seq  = r->info.seq;
    bool     done = log->n_bytes == 0;

    if (!done && r->info.log_bytes > 0 && log->n_bytes < SHORT_BYTES &&
        !extend(s, seq, log->data, log->n_bytes, &done))
        return false;
    if (!done && !add_pieces(s, seq, r->info.log_bytes, log->data, log->n_bytes))
        return false;
    r->info.log_bytes += log->n_bytes;
    return log->n_bytes == 0 || first_kept(r->info.log_bytes) == 0 ||
           trim(s, seq, first_kept(r->info.log_bytes));
}

/* Copy the part of a piece that is in [from, from + n) to its place. In a damaged file, pieces may
 * be anything. */
static void
copy_piece(sqlite3_stmt *row, uint64_t from, char *out, size_t n)
{
    uint64_t    offset  = (uint64_t)MAX(sqlite3_column_int64(row, 0), 0);
    const char *data    = sqlite3_column_blob(row, 1);
    uint64_t    n_bytes = (uint64_t)sqlite3_column_bytes(row, 1);
    uint64_t    first   = MAX(from, offset);
    uint64_t    end     = MIN(from + n, offset + n_bytes);

    if (data != NULL && first < end)
        memcpy(out + (first - from), data + (first - offset), (size_t)(end - first));
}

bool
il__sq_run_log_read(struct sq_conn *c, il_op *op, const struct sq_run *r)
{
    uint64_t total = r->info.log_bytes;
    uint64_t from  = MAX(op->in.run.offset, first_kept(total));
    size_t   n     = from < total ? (size_t)MIN(total - from, (uint64_t)IL__LOG_READ_BYTES) : 0;
    char    *text  = il__op_alloc(op, n + 1);
    int      rc    = SQLITE_DONE;

    if (text == NULL)
        return il__sq_no_memory(c);
    memset(text, 0, n + 1);
    if (n > 0) {
        sqlite3_stmt *row = il__sq_use(c, SQ_run_log_read);
        if (!il__sq_bind_int(c, row, 1, (int64_t)r->info.seq) ||
            !il__sq_bind_int(c, row, 2, (int64_t)from) ||
            !il__sq_bind_int(c, row, 3, (int64_t)(from + n)))
            return false;
        while ((rc = il__sq_step(c, row)) == SQLITE_ROW)
            copy_piece(row, from, text, n);
    }
    op->out.value       = text;
    op->out.value_bytes = n;
    op->out.offset      = from;
    return rc == SQLITE_DONE;
}

bool
il__sq_run_log_remove(struct sq_store *s, uint64_t seq)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_run_log_remove);

    return il__sq_bind_int(c, stmt, 1, (int64_t)seq) && il__sq_stmt_run(c, stmt);
}
