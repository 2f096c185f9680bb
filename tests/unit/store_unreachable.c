/*
 * store_unreachable.c: which errors from opening a store are worth a retry.
 */
#include <stdio.h>

#include "base/error.h"
#include "cli/store.h"
#include "harness/unit.h"

#define PG "postgres://h/db"
#define REACH PG ": connection to server at \"h\", port 5432 failed: "

static const struct {
    const char *url, *native, *message;
    il_status   status;
    bool        away;
} rows[] = {
    { PG, "busy", REACH "Connection refused", IL_STORE, true },
    { PG, "busy", PG ": could not translate host name \"h\" to address: unknown", IL_STORE, true },
    { PG, "busy", PG ": the server does not respond", IL_STORE, true },
    { PG, "busy", REACH "FATAL:  the database system is starting up", IL_STORE, true },
    { PG, "busy", REACH "FATAL:  the database system is shutting down", IL_STORE, true },
    { PG, "busy", REACH "FATAL:  the database system is in recovery mode", IL_STORE, true },
    { PG, "busy", REACH "FATAL:  the database system is not accepting connections", IL_STORE,
      true },
    { PG, "busy", REACH "FATAL:  sorry, too many clients already", IL_STORE, true },
    { PG, "busy", REACH "WAŻNE:  system bazy danych się uruchamia", IL_STORE, true },
    { PG, "57P01", PG ": terminating connection due to administrator command", IL_STORE, true },
    { PG, "55P03", PG ": a migration of the schema is under way", IL_STORE, true },
    { "postgresql://h/db", "busy", REACH "Connection refused", IL_STORE, true },
    { PG, "28P01", REACH "FATAL:  password authentication failed for user \"u\"", IL_STORE, false },
    { PG, "28P01", REACH "WAŻNE:  autoryzacja hasłem nie powiodła się", IL_STORE, false },
    { PG, "28P01", REACH "fe_sendauth: no password supplied", IL_STORE, false },
    { PG, "3D000", REACH "FATAL:  database \"db\" does not exist", IL_STORE, false },
    { PG, "42501", PG ": permission denied for schema interlock", IL_STORE, false },
    { PG, "", PG ": the schema 'interlock' has version 1, this one needs 2", IL_STORE, false },
    { PG, "", PG ": version 9 of the schema was made by a newer Interlock", IL_NEWER, false },
    { PG, "", "store URL: what", IL_INVAL, false },
    { "redis://h", "", "redis://h:6379/0: cannot connect: Connection refused", IL_STORE, true },
    { "redis://h", "", "redis://h:6379/0: the server is loading its data", IL_STORE, true },
    { "rediss://h", "LOADING", "x", IL_STORE, true },
    { "redis+unix:///s", "MASTERDOWN", "x", IL_STORE, true },
    { "redis://h", "NOAUTH", "x", IL_STORE, false },
    { "redis://h", "WRONGPASS", "x", IL_STORE, false },
    { "redis://h", "NOPERM", "x", IL_STORE, false },
    { "redis://h", "", "made by a newer version", IL_NEWER, false },
    { "http://h", "", "http://h: Couldn't connect to server", IL_STORE, true },
    { "http+unix:/s", "503", "http+unix:/s: answered 503", IL_STORE, true },
    { "https://h", "401", "https://h: answered 401", IL_STORE, false },
    { "sqlite:/x.db", "", "/x.db: permission denied", IL_STORE, false },
    { "sqlite:/x.db", "5", "/x.db: locked by another process", IL_STORE, false },
    { "memory:", "", "x", IL_STORE, false },
};

U_TEST(errors)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        il_error err = { .status = rows[i].status };
        (void)snprintf(err.native, sizeof err.native, "%s", rows[i].native);
        (void)snprintf(err.message, sizeof err.message, "%s", rows[i].message);
        if (il__cli_store_is_unreachable(rows[i].url, &err) != rows[i].away)
            T_FAIL("%s (%s): expected %s", rows[i].message, rows[i].native,
                   rows[i].away ? "to wait" : "to give up");
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(errors) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
