/*
 * doctor.h: `interlock doctor --connection`: looks at the user's own tables, in SQLite and
 * PostgreSQL.
 *
 *   doctor_database.c    the command: opens the database, prints findings
 *   doctor_catalogue.c   a table as the database's catalogue describes it
 *   doctor_checks.c      what is wrong with it, and the statement that fixes it
 *   doctor_invariants.c  which invariant mentions a column
 *   doctor_file.c        the settings of a SQLite file
 *   doctor_checklist.c   the guard checklist
 *   doctor_pipelines.c   the pipelines of apps, in it
 *
 * Everything is read in one read-only transaction.
 */
#ifndef IL_CLI_DOCTOR_H
#define IL_CLI_DOCTOR_H

#include "cli/cli.h"
#include "guard/guard.h"
#include "runtime/handle.h"

#define DOCTOR_KEY_COLUMNS_MAX 32 /* of an index or a foreign key; further ones are left out */
#define DOCTOR_EXAMPLES_MAX 5
#define DOCTOR_TEXT_BYTES_MAX 65536

/* ---- doctor_catalogue.c ---------------------------------------------------------------------- */

struct doctor_invariant; /* doctor_invariants.c */

/* The database; `mem` is the arena of everything below. */
struct doctor_database {
    il_guard                *guard;
    il_guard_tx             *tx;
    void                    *mem;
    const char              *path; /* of a SQLite file; NULL: PostgreSQL */
    bool                     is_wal;
    struct doctor_invariant *invariants; /* that look at it */
};

struct doctor_column {
    struct doctor_column *next;
    const char           *name;
    bool                  is_int;
    size_t                place; /* in the primary key, from 1; 0: not part of it */
};

/* An index (the primary key is one, too) or a foreign key. */
struct doctor_key {
    struct doctor_key *next;
    const char        *name;
    bool               is_unique;
    bool               is_valid;
    const char        *where;  /* of a partial index; NULL: all rows */
    const char        *parent; /* of a foreign key: the table that it refers to */
    const char        *columns[DOCTOR_KEY_COLUMNS_MAX]; /* NULL: an expression */
    size_t             n_columns;
};

struct doctor_table {
    struct doctor_table  *next;
    const char           *schema, *name;
    const char           *quoted; /* "schema"."name" */
    const char           *target; /* as CREATE INDEX ... ON wants it */
    bool                  is_partitioned;
    struct doctor_column *columns;
    struct doctor_key    *primary; /* NULL: none; also among the indexes */
    struct doctor_key    *indexes;
    struct doctor_key    *foreign_keys;
    size_t                n_checks; /* CHECK constraints */
};

/* One table by its name, or (NULL) all tables of the schema. IL_NOT_FOUND: no such table. */
MUST_USE il_status          il__doctor_read(struct doctor_database *db, const char *name,
                                            struct doctor_table **ret, il_error *reterr);
const struct doctor_column *il__doctor_column(const struct doctor_table *t, const char *name);
/* Is there a table or index of this name in the schema of the table? */
MUST_USE il_status il__doctor_is_taken(struct doctor_database *db, const struct doctor_table *t,
                                       const char *name, bool *ret, il_error *reterr);
/* Run a statement; `each` gets all values as text. */
MUST_USE il_status il__doctor_ask(struct doctor_database *db, const char *sql,
                                  const char *const *values, size_t n_values, il_guard_row_fn *each,
                                  void *cookie, il_error *reterr);
/* A row's value; NULL is NULL. */
const char *il__doctor_text(const il_guard_row *row, size_t i);
/* Append a name, quoted. */
void il__doctor_quote(struct il__buf *out, const char *name);

/* ---- doctor_checks.c ------------------------------------------------------------------------- */

enum doctor_check {
    DOCTOR_PRIMARY_KEY,
    DOCTOR_IDEMPOTENCY_KEY,
    DOCTOR_WORKER_INDEX,
    DOCTOR_FOREIGN_KEY,
    DOCTOR_COUNTER,
    DOCTOR_FILE,
    DOCTOR_CHECK_COUNT
};

struct doctor_finding {
    enum il__finding_level level;
    enum doctor_check      check;
    const char            *table; /* NULL: the file */
    const char            *name;  /* what was looked for */
    const char            *value; /* what was found */
    const char            *means;
    const char            *fix; /* the statement; NULL: none */
    int64_t     n_violations;   /* rows that the statement would fail on; -1: not counted */
    const char *examples[DOCTOR_EXAMPLES_MAX]; /* values of such rows */
    size_t      n_examples;
};

/* The strings live for the call. */
typedef void doctor_finding_fn(void *cookie, const struct doctor_finding *f);

MUST_USE il_status il__doctor_check_table(struct doctor_database *db, const struct doctor_table *t,
                                          doctor_finding_fn *each, void *cookie, il_error *reterr);

/* ---- doctor_invariants.c --------------------------------------------------------------------- */

/* Read the invariants that look at the database, which has this URL. IL_INVAL: their folder cannot
 * be read. */
MUST_USE il_status il__doctor_invariants(const struct cli *cli, struct doctor_database *db,
                                         const char *url, il_error *reterr);
/* The name of an invariant whose query mentions the table and its column; NULL: none does. Those
 * that apps register count for tables of apps alone. */
MUST_USE il_status il__doctor_mentioned(struct doctor_database *db, const struct doctor_table *t,
                                        const char *column, const char **ret, il_error *reterr);

/* ---- doctor_file.c --------------------------------------------------------------------------- */

/* A transaction cannot be asked for its journal mode; the file's header has it. Not while the file
 * is open here: closing another descriptor of it would end SQLite's locks. */
bool il__doctor_is_wal(const char *path);
/* The settings of a SQLite file. */
MUST_USE il_status il__doctor_check_file(struct doctor_database *db, doctor_finding_fn *each,
                                         void *cookie, il_error *reterr);

/* ---- cmd_doctor.c ---------------------------------------------------------------------------- */

const char *il__doctor_level_name(enum il__finding_level level);

/* ---- doctor_database.c ----------------------------------------------------------------------- */

/* `doctor --connection`; returns the exit status. */
int il__doctor_database(struct cli *cli);

/* ---- doctor_checklist.c ---------------------------------------------------------------------- */

/* Print the checklist, with the answers that the database can give (db NULL: none), and the
 * pipelines of apps; with a table, only the answers about it. Returns the exit status. */
int il__doctor_checklist(struct cli *cli, struct doctor_database *db, const char *table);

/* ---- doctor_pipelines.c ---------------------------------------------------------------------- */

/* Append the pipelines of all apps to an array and, for people, to a grid, which is initialised
 * here. tx: the database in which their constraints are looked for; NULL: their own tables.
 * *ret_n_missing: how many constraints are missing in tables that exist. */
MUST_USE il_status il__doctor_pipelines(const struct cli *cli, il_guard_tx *tx, json_t *to,
                                        struct cli_grid *grid, size_t *ret_n_missing,
                                        il_error *reterr);

#endif
