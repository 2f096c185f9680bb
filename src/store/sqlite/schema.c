/*
 * schema.c: creates a store in an empty file, upgrades an older one, and refuses a file that is not
 * ours or too new. A migration is one transaction under the lock file. Two concurrent migrations
 * are safe: the second one checks the version again once it has the lock.
 */
#include "base/error.h"
#include "core/schema.h"
#include "store/sqlite/sqlite_internal.h"

#include "sqlite_connect.inc"

static bool
read_int(struct sq_conn *c, enum sq_stmt stmt, int64_t *ret)
{
    sqlite3_stmt *row = il__sq_use(c, stmt);

    if (il__sq_step(c, row) != SQLITE_ROW)
        return false;
    *ret = sqlite3_column_int64(row, 0);
    return il__sq_stmt_run(c, row);
}

/* The schema's version, which selects a step: a negative one means damage. */
static bool
read_version(struct sq_conn *c, int64_t *ret)
{
    return read_int(c, SQ_version, ret) && (*ret >= 0 || il__sq_corrupt(c));
}

static bool
exec_text(struct sq_conn *c, const char *text)
{
    int rc = sqlite3_exec(c->db, text, NULL, NULL, NULL);

    if (rc != SQLITE_OK)
        c->rc = rc;
    return rc == SQLITE_OK;
}

/* In a write transaction: upgrade from `version` to the newest. */
static bool
migrate(struct sq_store *s, int64_t version, bool test_clock)
{
    struct sq_conn *c     = &s->conn;
    bool            fresh = version == 0;

    for (; version < il__sq_schema.version; version++) {
        if (!exec_text(c, il__sq_schema.steps[version]))
            return false;
    }
    return !fresh || il__sq_state_create(c, s->clock, test_clock);
}

/* Under the lock file: check the version again, then create or migrate. */
static il_status
update_locked(struct sq_store *s, bool test_clock, il_error *reterr)
{
    struct sq_conn *c = &s->conn;
    int64_t         version;
    int64_t         ours;

    if (!read_version(c, &version) || !read_int(c, SQ_is_ours, &ours))
        return il__sq_conn_error(c, s->file.path, reterr);
    if (version >= il__sq_schema.version)
        return IL_OK; /* another process was faster; or it is newer, which the caller detects */
    if (ours == 1)
        return il__error_set(reterr, IL_STORE,
                             "%s belongs to another program; choose another file for the store",
                             s->file.path);
    bool ok = (ours == 2 || exec_text(c, sql_create)) && il__sq_exec(c, SQ_begin_write);
    if (ok && !(migrate(s, version, test_clock) && il__sq_exec(c, SQ_commit))) {
        il__sq_undo(c);
        ok = false;
    }
    return ok ? IL_OK : il__sq_conn_error(c, s->file.path, reterr);
}

static il_status
check_state(struct sq_store *s, int64_t version, bool test_clock, il_error *reterr)
{
    struct sq_state st;

    bool newer  = version > il__sq_schema.version;
    bool loaded = il__sq_state_load(&s->conn, s->clock, &st);
    if (!loaded && !newer)
        return il__sq_conn_error(&s->conn, s->file.path, reterr);
    if (newer && (!loaded || st.version != version || st.min_version > il__sq_schema.version))
        return il__error_set(
            reterr, IL_NEWER,
            "%s: schema version %lld was written by a newer Interlock; this one supports %d",
            s->file.path, (long long)version, il__sq_schema.version);
    if (st.test_clock != test_clock)
        return il__error_set(reterr, IL_INVAL,
                             "%s: the store was created %s ?clock=test; open it the same way",
                             s->file.path, st.test_clock ? "with" : "without");
    return IL_OK;
}

il_status
il__sq_schema_prepare(struct sq_store *s, bool test_clock, il_error *reterr)
{
    struct sq_conn *c = &s->conn;
    int64_t         version;

    if (!read_version(c, &version))
        return il__sq_conn_error(c, s->file.path, reterr);
    if (version < il__sq_schema.version) {
        il_status st = il__sq_file_lock(&s->file, reterr);
        if (st != IL_OK)
            return st;
        st = update_locked(s, test_clock, reterr);
        il__sq_file_unlock(&s->file);
        if (st != IL_OK)
            return st;
        if (!read_version(c, &version))
            return il__sq_conn_error(c, s->file.path, reterr);
    }
    return check_state(s, version, test_clock, reterr);
}
