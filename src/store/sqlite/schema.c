/*
 * schema.c: making a store out of an empty file, bringing an older one up to date, and refusing what is
 * not ours or too new. A migration is one transaction under the lock file; two at once are safe, because
 * the second one looks at the version again when it has the lock.
 */
#include "base/error.h"
#include "store/sqlite/sqlite_internal.h"

#include "sqlite_migrations.inc"
#include "sqlite_create.inc"

/* migrations[v] leads from version v to v + 1. */
static const char *const migrations[] = { migration_0000__0001, migration_0001__0002,
                                          migration_0002__0003, migration_0003__0004,
                                          migration_0004__0005 };

_Static_assert(ARRAY_LEN(migrations) == SQ_SCHEMA_VERSION, "a migration leads to every version");

static bool
read_int(struct sq_conn *c, enum sq_stmt stmt, int64_t *ret)
{
    sqlite3_stmt *row = il__sq_use(c, stmt);

    if (il__sq_step(c, row) != SQLITE_ROW)
        return false;
    *ret = sqlite3_column_int64(row, 0);
    return il__sq_run(c, row);
}

static bool
exec_text(struct sq_conn *c, const char *text)
{
    int rc = sqlite3_exec(c->db, text, NULL, NULL, NULL);

    if (rc != SQLITE_OK)
        c->rc = rc;
    return rc == SQLITE_OK;
}

/* In a write transaction: from `version` to the newest. */
static bool
migrate(struct sq_store *s, int64_t version, bool test_clock)
{
    struct sq_conn *c     = &s->conn;
    bool            fresh = version == 0;

    for (; version < SQ_SCHEMA_VERSION; version++) {
        if (!exec_text(c, migrations[version]))
            return false;
    }
    return !fresh || il__sq_state_create(c, s->clock, test_clock);
}

/* Under the lock file: look again, then create or migrate. */
static il_status
update_locked(struct sq_store *s, bool test_clock, il_error *reterr)
{
    struct sq_conn *c = &s->conn;
    int64_t         version;
    int64_t         ours;

    if (!read_int(c, SQ_version, &version) || !read_int(c, SQ_is_ours, &ours))
        return il__sq_conn_error(c, s->file.path, reterr);
    if (version >= SQ_SCHEMA_VERSION)
        return IL_OK; /* somebody else was faster; or it is newer, which the caller sees */
    if (ours == 1)
        return il__error_set(reterr, IL_STORE,
                             "%s: a database of another program; Interlock keeps its own file",
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

    bool newer  = version > SQ_SCHEMA_VERSION;
    bool loaded = il__sq_state_load(&s->conn, s->clock, &st);
    if (!loaded && !newer)
        return il__sq_conn_error(&s->conn, s->file.path, reterr);
    if (newer && (!loaded || st.version != version || st.min_version > SQ_SCHEMA_VERSION))
        return il__error_set(
            reterr, IL_NEWER,
            "%s: schema version %lld was written by a newer Interlock; this one knows %d",
            s->file.path, (long long)version, SQ_SCHEMA_VERSION);
    if (st.test_clock != test_clock)
        return il__error_set(reterr, IL_INVAL, "%s: the store was made %s ?clock=test",
                             s->file.path, st.test_clock ? "with" : "without");
    return IL_OK;
}

il_status
il__sq_schema_prepare(struct sq_store *s, bool test_clock, il_error *reterr)
{
    struct sq_conn *c = &s->conn;
    int64_t         version;

    if (!read_int(c, SQ_version, &version))
        return il__sq_conn_error(c, s->file.path, reterr);
    if (version < SQ_SCHEMA_VERSION) {
        il_status st = il__sq_file_lock(&s->file, reterr);
        if (st != IL_OK)
            return st;
        st = update_locked(s, test_clock, reterr);
        il__sq_file_unlock(&s->file);
        if (st != IL_OK)
            return st;
        if (!read_int(c, SQ_version, &version))
            return il__sq_conn_error(c, s->file.path, reterr);
    }
    return check_state(s, version, test_clock, reterr);
}
