/*
 * integrity.c: runs SQLite's integrity check on a file.
 */
#include "fault/integrity.h"

#include <sqlite3.h>

#include "harness/check.h"

bool
db_is_whole(const char *path)
{
    sqlite3      *db  = NULL;
    sqlite3_stmt *row = NULL;

    bool whole = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
                 sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &row, NULL) == SQLITE_OK &&
                 sqlite3_step(row) == SQLITE_ROW &&
                 strcmp((const char *)sqlite3_column_text(row, 0), "ok") == 0;
    (void)sqlite3_finalize(row); /* repeats an error */
    CHECK(sqlite3_close(db) == SQLITE_OK);
    return whole;
}
