/*
 * statements.c: every statement of the SQLite engine can be prepared on a fresh store. They are
 * prepared on first use, so a mistake in a rarely used one would go unnoticed.
 */
#include "harness/tmp.h"
#include "harness/unit.h"
#include "store/sqlite/sqlite_internal.h"

U_TEST(every_statement_can_be_prepared)
{
    char     dir[T_PATH_BYTES];
    char     url[T_PATH_BYTES];
    il      *h  = NULL;
    sqlite3 *db = NULL;

    t_tmp_make(dir);
    t_path(url, "sqlite:%s/x.db", dir);
    T_EQ(il_open(url, NULL, &h, NULL), IL_OK);
    T_EQ(sqlite3_open(url + strlen("sqlite:"), &db), SQLITE_OK);
    for (int i = 0; i < SQ_STMT_COUNT; i++) {
        sqlite3_stmt *stmt = NULL;
        const char   *tail = NULL;
        if (sqlite3_prepare_v2(db, il__sq_sql((enum sq_stmt)i), -1, &stmt, &tail) != SQLITE_OK)
            T_FAIL("%s: %s", il__sq_sql((enum sq_stmt)i), sqlite3_errmsg(db));
        T_TRUE(stmt != NULL);
        while (*tail == ' ' || *tail == '\n')
            tail++;
        T_STREQ(tail, ""); /* one per marker, or the second would never be carried out */
        T_EQ(sqlite3_finalize(stmt), SQLITE_OK);
    }
    T_EQ(sqlite3_close(db), SQLITE_OK);
    il_close(h);
    t_tmp_remove(dir);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(every_statement_can_be_prepared) };

    return cmocka_run_group_tests_name("statements", tests, NULL, NULL);
}
