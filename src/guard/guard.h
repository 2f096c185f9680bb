/*
 * guard.h: what callers inside this tree need beside include/interlock-guard.h: statements with the
 * names of tables and columns in them, scripts, and what a URL says.
 */
#ifndef IL_GUARD_GUARD_H
#define IL_GUARD_GUARD_H

#include "base/base.h"
#include "base/buf.h"
#include "interlock-guard.h"

bool il__guard_is_postgres(const il_guard *g); /* of a URL */
bool il__guard_tx_is_postgres(const il_guard_tx *tx);

/* A PostgreSQL URL: the schema of its store (?schema=), and how messages show the server. */
struct il__guard_url {
    char schema[64];
    char shown[192];
};
/* IL_OK, IL_INVAL, IL_STORE (libpq is missing). */
il_status il__guard_url_parse(const char *url, struct il__guard_url *ret, il_error *reterr)
    MUST_USE;

/* Run several statements of our own, without values and rows: steps of a schema. They may change
 * the tables of the kit, but neither begin nor end a transaction. */
il_status il__guard_script(il_guard_tx *tx, const char *sql, il_error *reterr) MUST_USE;
/* Append an identifier ("table", "schema.table") to *out, quoted, if it exists in the catalogue
 * (else IL_NOT_FOUND; the transaction continues). column NULL: the table; else only that column. */
il_status il__guard_quote(il_guard_tx *tx, const char *table, const char *column,
                          struct il__buf *out, il_error *reterr) MUST_USE;
/* Append `text` to *out with @table and @column replaced (column NULL: none). */
void il__guard_fill(const char *text, const char *table, const char *column, struct il__buf *out);

#endif
