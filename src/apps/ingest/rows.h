/*
 * rows.h: many rows of one table: on SQLite a prepared statement is run for each, on PostgreSQL
 * many go in one statement, as one JSON value.
 */
#ifndef IL_APPS_INGEST_ROWS_H
#define IL_APPS_INGEST_ROWS_H

#include "apps/common/tables.h"
#include "base/buf.h"

#define ROWS_COLUMNS_MAX 20
#define ROWS_SHARED_MAX 4
#define ROWS_PER_STATEMENT_MAX 4096            /* of PostgreSQL */
#define ROWS_JSON_BYTES_MAX ((size_t)32 << 20) /* of PostgreSQL: one statement */

/* Set the values of the next row; they are used before the next call. ROWS_END: no more rows. */
enum rows_next {
    ROWS_END,
    ROWS_MORE,
    ROWS_NO_MEMORY
};
typedef enum rows_next rows_next_fn(void *cookie, il_guard_value *values);

/*
 * What is written. The statement has $1 .. $n_shared for the values that all rows have in common;
 * on SQLite, the columns follow as $n_shared+1, …; on PostgreSQL, $n_shared+1 is the rows as a JSON
 * list of objects with these names. A value of type JSON is put in as it is.
 */
struct rows {
    const struct app_statement *statement;
    const il_guard_value       *shared;
    size_t                      n_shared;
    const char *const          *columns;
    size_t                      n_columns;
    rows_next_fn               *next;
    void                       *cookie;
    /* Called between two statements; false: IL_CANCELLED. May be NULL. */
    bool (*go_on)(void *cookie);
    void *go_on_cookie;
};

/* What a write has done. */
struct rows_written {
    int64_t n;         /* rows there were */
    int64_t n_changed; /* of them, inserted or updated */
    int64_t n_new;     /* of them, inserted; 0 unless the statement returns 1 for such a row */
};
/* Returns as il_guard_exec(). */
il_status il__rows_write(il_guard_tx *tx, const struct rows *r, struct rows_written *ret,
                         il_error *reterr) MUST_USE;

#endif
