/*
 * sqlite_error.c: what an error of SQLite means, and which constraint failed. SQLite names CHECK
 * constraints and unique indexes on expressions in its message; of other unique constraints it
 * names the columns, by which the index is found. Foreign keys have no names.
 */
#include <stdio.h>

#include "base/error.h"
#include "guard/sqlite_internal.h"
#include "store/sqlite/error.h"

#include "guard_sqlite_sql.inc"

#define COLUMNS_BYTES_MAX 2048

static int
take_name(void *cookie, const il_guard_row *row)
{
    il_error *err = cookie;

    (void)snprintf(err->constraint, sizeof err->constraint, "%s",
                   (const char *)row->values[0].data);
    return 0;
}

/* From "t.a, t.b" to table t and columns "a, b". */
static void
find_unique(struct sqlite_guard *g, const char *columns, il_error *reterr)
{
    struct il__buf AUTO_BUF list  = { 0 };
    size_t                  n_dot = strcspn(columns, ".");
    char                    table[IL_GUARD_NAME_BYTES_MAX + 1];

    if (columns[n_dot] == '\0' || n_dot >= sizeof table)
        return;
    (void)snprintf(table, sizeof table, "%.*s", (int)n_dot, columns);
    il__buf_init(&list, COLUMNS_BYTES_MAX);
    for (const char *at = columns; *at != '\0';) {
        size_t n = strcspn(at, ",");
        if (strncmp(at, table, n_dot) != 0 || at[n_dot] != '.')
            return;
        il__buf_addf(&list, "%s%.*s", at != columns ? ", " : "", (int)(n - n_dot - 1),
                     at + n_dot + 1);
        at += n;
        at += strspn(at, ", ");
    }
    il_guard_value         values[] = { il_guard_text(table), il_guard_text(il__buf_str(&list)) };
    struct guard_statement s        = { .sql      = sql_sqlite_unique_of,
                                        .values   = values,
                                        .n_values = 2,
                                        .each     = take_name,
                                        .cookie   = reterr };
    /* only for the message: an error has nothing to add */
    IGNORE(il__guard_sqlite_run(g, &s, NULL) != IL_OK);
}

static void
name_constraint(struct sqlite_guard *g, il_status st, il_error *reterr)
{
    char        text[sizeof reterr->message];
    const char *at;

    (void)snprintf(text, sizeof text, "%s", sqlite3_errmsg(g->db)); /* the next call replaces it */
    at = strstr(text, "constraint failed: ");
    if (at == NULL)
        return;
    at += strlen("constraint failed: ");
    if (st == IL_CHECK && strncmp(text, "CHECK", 5) == 0) {
        (void)snprintf(reterr->constraint, sizeof reterr->constraint, "%s", at);
    } else if (st == IL_UNIQUE && strncmp(at, "index '", 7) == 0) {
        (void)snprintf(reterr->constraint, sizeof reterr->constraint, "%.*s",
                       (int)strcspn(at + 7, "'"), at + 7);
    } else if (st == IL_UNIQUE) {
        find_unique(g, at, reterr);
    }
}

static il_status
map(const struct sqlite_guard *g, int rc)
{
    switch (rc) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
        return IL_UNIQUE;
    case SQLITE_CONSTRAINT_CHECK:
    case SQLITE_CONSTRAINT_NOTNULL:
        return IL_CHECK;
    case SQLITE_CONSTRAINT_FOREIGNKEY:
        return IL_FOREIGN_KEY;
    case SQLITE_BUSY_SNAPSHOT:
        return IL_SERIALIZATION;
    default:
        break;
    }
    switch (rc & 0xFF) {
    case SQLITE_INTERRUPT: /* of a connection of the caller's own: by its owner */
        return il__guard_is_late(&g->base) && !il__guard_is_stopped(g->base.g, g->base.limit)
                   ? IL_TIMEOUT
                   : IL_CANCELLED;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return il__guard_is_stopped(g->base.g, g->base.limit) ? IL_CANCELLED : IL_TIMEOUT;
    case SQLITE_AUTH:
    case SQLITE_CONSTRAINT:
    case SQLITE_ERROR:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
    case SQLITE_TOOBIG:
        return IL_INVAL;
    default:
        return IL_STORE;
    }
}

il_status
il__guard_sqlite_fail(struct sqlite_guard *g, int rc, il_error *reterr)
{
    /* A connection of the caller's own may report primary codes only. */
    if (g->db != NULL && (sqlite3_extended_errcode(g->db) & 0xFF) == rc)
        rc = sqlite3_extended_errcode(g->db);
    il_status st = map(g, rc);
    if (st == IL_CANCELLED)
        return il__guard_cancelled(reterr);
    if (st == IL_STORE)
        return il__sq_error(rc, g->db != NULL ? sqlite3_system_errno(g->db) : 0, g->path, reterr);
    if (st == IL_TIMEOUT && il__guard_is_late(&g->base))
        IGNORE(il__guard_check_deadline(&g->base, reterr));
    else if (st == IL_TIMEOUT)
        il__error_set(reterr, st, "%s: timed out waiting for another connection's lock on the file",
                      g->path);
    else
        il__error_set(reterr, st, "%s: %s", g->path,
                      g->refused != NULL ? g->refused : sqlite3_errmsg(g->db));
    if (reterr != NULL) {
        (void)snprintf(reterr->native, sizeof reterr->native, "%d", rc);
        name_constraint(g, st, reterr);
    }
    return st;
}
