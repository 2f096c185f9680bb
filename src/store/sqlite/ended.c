/*
 * ended.c: remembers ended leases in the SQLite engine: il_ended for all processes, an
 * il__ended_log for this one.
 *
 * At the start of each write transaction the log reads what other processes have added
 * (il_state.ended_seq tells whether there is anything new). A lease that ends in the transaction is
 * added to the log at once, so that later ops of the batch see it, and to the file as one row at
 * the end. If the transaction is rolled back, so is the log.
 */
#include <endian.h>

#include "base/hash.h"
#include "store/sqlite/sqlite_internal.h"

/* An entry in the file: key hash, holder hash, fence in 56 bits and how in 8; each 8 bytes,
 * little-endian. A change of this layout is a new schema version. */
#define ENTRY_BYTES 24
#define PURGE_ROWS 64 /* at the end of a transaction that adds a row */

static struct il__ended_id
id_of(const struct sq_store *s, const char *tenant, const char *key, const char *holder)
{
    uint64_t            seed = il__hash_stable(tenant, strlen(tenant), s->state.seed);
    struct il__ended_id id   = { .key = il__hash_stable(key, strlen(key), seed) };

    id.holder = il__hash_stable(holder, strlen(holder), s->state.seed);
    return id;
}

const struct il__ended *
il__sq_ended_find(const struct sq_store *s, const char *tenant, const char *key, const char *holder)
{
    if (s->ended.n == 0)
        return NULL;
    return il__ended_find(&s->ended, id_of(s, tenant, key, holder), s->state.now_ms);
}

bool
il__sq_ended_add(struct sq_store *s, const char *tenant, const char *key, const char *holder,
                 uint64_t fence, il_lease_state how)
{
    struct il__ended_id id       = id_of(s, tenant, key, holder);
    uint64_t            entry[3] = { htole64(id.key), htole64(id.holder),
                                     htole64(fence << 8 | (uint64_t)how) };

    _Static_assert(sizeof entry == ENTRY_BYTES, "the layout in the file");
    /* Both or neither: rolling back counts the entries of ended_new. */
    if (!il__ended_reserve(&s->ended, 1))
        return il__sq_no_memory(&s->conn);
    il__buf_add(&s->ended_new, entry, sizeof entry);
    if (s->ended_new.failed)
        return il__sq_no_memory(&s->conn);
    il__ended_add(&s->ended, id, fence, how, s->state.now_ms);
    return true;
}

static bool
load_row(struct sq_store *s, sqlite3_stmt *row)
{
    int64_t              ended_ms = sqlite3_column_int64(row, 0);
    const unsigned char *entries  = sqlite3_column_blob(row, 1);
    size_t               n_bytes  = (size_t)sqlite3_column_bytes(row, 1);
    size_t               n        = n_bytes / ENTRY_BYTES;

    if (entries == NULL)
        return il__sq_no_memory(&s->conn); /* no row is empty */
    if (n_bytes % ENTRY_BYTES != 0)
        return il__sq_corrupt(&s->conn);
    if (!il__ended_reserve(&s->ended, n))
        return il__sq_no_memory(&s->conn);
    for (size_t i = 0; i < n; i++) {
        uint64_t entry[3];
        memcpy(entry, entries + i * ENTRY_BYTES, sizeof entry);
        uint64_t fence_how = le64toh(entry[2]);
        il__ended_add(&s->ended, (struct il__ended_id){ le64toh(entry[0]), le64toh(entry[1]) },
                      (fence_how >> 8) & (IL__FENCE_END - 1), (il_lease_state)(fence_how & 7),
                      ended_ms);
    }
    s->ended_seq =
        sqlite3_column_int64(row, 2); /* if a later row fails, the next load continues here */
    return true;
}

/* Read what others have added. */
bool
il__sq_ended_load(struct sq_store *s)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = NULL;
    int             rc;

    il__buf_clear(&s->ended_new);
    if (s->ended_seq == s->state.ended_seq)
        return true;
    row = il__sq_use(c, SQ_ended_load);
    if (!il__sq_bind_int(c, row, 1, s->ended_seq) ||
        !il__sq_bind_int(c, row, 2, s->state.now_ms - IL__ENDED_KEEP_MS))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        if (!load_row(s, row)) {
            (void)sqlite3_reset(row); /* report the previous error */
            return false;
        }
    }
    if (rc != SQLITE_DONE)
        return false;
    s->ended_seq = s->state.ended_seq;
    return true;
}

/* Write the leases that ended in this transaction, and delete a few outdated entries. */
bool
il__sq_ended_save(struct sq_store *s)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = NULL;

    if (s->ended_new.n_bytes == 0)
        return true;
    s->state.ended_seq++;
    stmt = il__sq_use(c, SQ_ended_add);
    return il__sq_bind_int(c, stmt, 1, s->state.ended_seq) &&
           il__sq_bind_int(c, stmt, 2, s->state.now_ms) &&
           il__sq_bind_blob(c, stmt, 3, s->ended_new.data, s->ended_new.n_bytes) &&
           il__sq_stmt_run(c, stmt) && il__sq_ended_purge(s, PURGE_ROWS);
}

/* The transaction was committed or rolled back. */
void
il__sq_ended_done(struct sq_store *s, bool committed)
{
    if (committed)
        s->ended_seq = s->state.ended_seq;
    else
        il__ended_undo(&s->ended, s->ended_new.n_bytes / ENTRY_BYTES);
    il__buf_clear(&s->ended_new);
}

bool
il__sq_ended_purge(struct sq_store *s, uint32_t n_rows)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = NULL;

    /* The front of the table is known: none of it is outdated before that time. */
    if (s->state.now_ms < s->purge_at_ms)
        return true;
    stmt = il__sq_use(c, SQ_ended_purge);
    if (!il__sq_bind_int(c, stmt, 1, s->state.now_ms - IL__ENDED_KEEP_MS) ||
        !il__sq_bind_int(c, stmt, 2, n_rows) || !il__sq_stmt_run(c, stmt))
        return false;
    if ((uint32_t)sqlite3_changes(c->db) < n_rows)
        s->purge_at_ms = s->state.now_ms + IL__SWEEP_MS; /* done for now */
    return true;
}
