/*
 * tables.h: the tables of apps in the data store: where they are, creating and upgrading them,
 * and running their statements. Apps reach them only through the guard kit.
 *
 * --data URL, by default the store's URL, decides where they are:
 *
 *   sqlite:/x.db       one file per app beside it: /x-ingest.db
 *   postgres://…       one schema per app: SCHEMA_ingest, where SCHEMA is that of the URL
 *                      (?schema=, by default `interlock`)
 *   memory:            files in a temporary folder of this process, gone when it ends
 *   redis://…          as sqlite:data.db in the user's state folder
 *
 * Rules for the SQL of an app:
 *   - each table has a column `tenant`, NOT NULL, which comes first in the primary key, in every
 *     unique index and in every foreign key. So a row of one tenant can neither collide with nor
 *     refer to one of another. tests/tables checks this for all apps.
 *   - names that begin with `interlock_` belong to the kit;
 *   - the steps (core/schema.h) of both engines have the same versions. A step that has been
 *     released never changes.
 */
#ifndef IL_APPS_COMMON_TABLES_H
#define IL_APPS_COMMON_TABLES_H

#include "core/schema.h"
#include "guard/guard.h"

/* SCHEMA_NAME fits the longest identifier of PostgreSQL: 48 + 1 + 14 bytes. */
#define APP_TABLES_NAME_BYTES_MAX 14

struct app_tables {
    const char              *name; /* of the app: lower-case letters */
    const struct il__schema *sqlite, *postgres;
    const il_guard_rank     *ranks; /* of the rows that it locks */
    size_t                   n_ranks;
};

/* ---- where they are: tables_place.c ---------------------------------------------------------- */

struct tables_place;

/*
 * The place that belongs to a store and data_url (NULL: none given). `existing`: do not create
 * anything, not even a folder. Close it after all handles on its tables.
 *
 * For a memory store it is a new folder in $TMPDIR, which il__tables_place_close() removes. Folders
 * of processes that were killed are removed when the next one is created.
 *
 * IL_OK, IL_INVAL (the URL cannot hold tables), IL_STORE, IL_NOMEM.
 */
il_status il__tables_place_open(const char *store_url, const char *data_url, bool existing,
                                struct tables_place **ret, il_error *reterr) MUST_USE;
void      il__tables_place_close(struct tables_place *p); /* NULL is fine */

/*
 * The same place for all apps of a server, so that they share the temporary folder of a memory
 * store: the first caller with these URLs opens it, the last il__tables_place_unshare() closes it.
 * Any thread.
 */
il_status il__tables_place_share(const char *store_url, const char *data_url, bool existing,
                                 struct tables_place **ret, il_error *reterr) MUST_USE;
void      il__tables_place_unshare(struct tables_place *p); /* NULL is fine */

/* ---- opening: tables.c ----------------------------------------------------------------------- */

struct tables_opts {
    int64_t              timeout_ms; /* longest wait for a lock; 0 = 5,000 */
    uint32_t             conns_max;  /* 0 = 8 */
    il_guard_observe_fn *observe;    /* may be NULL */
    void                *cookie;
    bool                 existing; /* do not create them */
};

/*
 * Open the tables of an app; il_guard_close() the handle. Missing tables are created. Tables of an
 * older version are upgraded in SQLite; in PostgreSQL that is IL_STORE, until somebody runs
 * `interlock migrate`. opts may be NULL. Several processes may do this at once. Blocks.
 *
 * IL_OK, IL_NOT_FOUND (`existing`, and they are missing), IL_NEWER, IL_STORE, IL_TIMEOUT (another
 * process upgrades them for too long), IL_FULL, IL_CORRUPT, IL_INVAL, IL_NOMEM.
 */
il_status il__tables_open(const struct app_tables *t, const struct tables_place *p,
                          const struct tables_opts *opts, il_guard **ret, il_error *reterr)
    MUST_USE;

/* Do the tables of an app exist? Creates nothing. In a memory store: in this process. The results
 * are those of il__tables_open(). */
il_status il__tables_exist(const struct app_tables *t, const char *store_url, const char *data_url,
                           bool *ret, il_error *reterr) MUST_USE;

/* il_error.native of il__tables_migrate(): the role may not create them, or not use them. */
#define TABLES_NO_PRIVILEGE "42501"

/* Create or upgrade the tables in PostgreSQL; `check`: only report what would be done. Elsewhere
 * ret->by_itself. The results are those of il__tables_open(). */
il_status il__tables_migrate(const struct app_tables *t, const struct tables_place *p, bool check,
                             struct il__migration *ret, il_error *reterr) MUST_USE;

/* ---- statements ------------------------------------------------------------------------------ */

/*
 * A statement of an app's sql/ folder, embedded with the prefix `sql`: one text for both engines
 * ("-- name: add"), or one for each ("-- name: add_sqlite" and "-- name: add_postgres").
 *
 *   static const struct app_statement add = APP_STATEMENT(add);
 *   st = il__tables_run(tx, &add, APP_VALUES(il_guard_text(tenant), il_guard_int(7)), NULL, NULL,
 *                       NULL, reterr);
 */
struct app_statement {
    const char *sqlite, *postgres;
};
#define APP_STATEMENT(name)    \
    {                          \
        sql_##name, sql_##name \
    }
#define APP_STATEMENT_EACH(name)                   \
    {                                              \
        sql_##name##_sqlite, sql_##name##_postgres \
    }
#define APP_VALUES(...)                      \
    (const il_guard_value[]){ __VA_ARGS__ }, \
        sizeof((const il_guard_value[]){ __VA_ARGS__ }) / sizeof(il_guard_value)
#define APP_NO_VALUES NULL, 0

/* As il_guard_exec(). each and ret_n_changed may be NULL. */
il_status il__tables_run(il_guard_tx *tx, const struct app_statement *s,
                         const il_guard_value *values, size_t n_values, il_guard_row_fn *each,
                         void *cookie, int64_t *ret_n_changed, il_error *reterr) MUST_USE;
/* As il_guard_lock_read(). */
il_status il__tables_lock_read(il_guard_tx *tx, const il_guard_target *row,
                               const struct app_statement *s, const il_guard_value *values,
                               size_t n_values, il_guard_row_fn *each, void *cookie,
                               il_error *reterr) MUST_USE;

#endif
