/*
 * status.c: the tables of interlock.h are consistent.
 */
#include "harness/unit.h"

static const struct row {
    il_status   status;
    int         num;
    const char *wire;
    int         http;
    int         exit_status;
} rows[] = {
#define X(name, num, wire, http, exit_status, retry, text) \
    { IL_##name, num, wire, http, exit_status },
    IL_STATUS_MAP(X)
#undef X
};

U_TEST(statuses)
{
    T_EQ(ARRAY_LEN(rows), IL_STATUS_COUNT);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        T_EQ(rows[i].status, i); /* no gaps: the numbers index tables */
        T_EQ(rows[i].num, i);
        T_STREQ(il_status_name(rows[i].status), rows[i].wire);
        T_EQ(il_status_http(rows[i].status), rows[i].http);
        T_EQ(il_status_exit(rows[i].status), rows[i].exit_status);
        T_TRUE(il_status_text(rows[i].status)[0] != '\0');
        T_TRUE(rows[i].http >= 200 && rows[i].http < 600);
        T_TRUE(rows[i].exit_status >= 0 && rows[i].exit_status < 126);
        T_TRUE(rows[i].exit_status != 0 || rows[i].http < 300); /* exit 0 is for what went well */
        for (size_t j = i + 1; j < ARRAY_LEN(rows); j++)
            T_TRUE(strcmp(rows[i].wire, rows[j].wire) != 0);
    }
}

/* The numbers that scripts rely on (docs/STATUSES.md). */
U_TEST(exit_statuses_are_fixed)
{
    T_EQ(il_status_exit(IL_INVAL), 64);
    T_EQ(il_status_exit(IL_STORE), 69);
    T_EQ(il_status_exit(IL_HELD), 75);
    T_EQ(il_status_exit(IL_LOST), 76);
    T_EQ(il_status_exit(IL_TIMEOUT), 77);
}

U_TEST(a_status_that_does_not_exist)
{
    static const il_status bad[] = { IL_STATUS_COUNT, (il_status)-1, (il_status)1000 };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        T_TRUE(il_status_name(bad[i]) != NULL);
        T_TRUE(il_status_text(bad[i]) != NULL);
        (void)il_status_http(bad[i]);
        (void)il_status_exit(bad[i]);
        (void)il_status_retryable(bad[i]);
    }
}

U_TEST(ops)
{
    T_STREQ(il_op_name(IL_OP_NONE), "none");
#define X(name, num, wire, writes, text)     \
    T_STREQ(il_op_name(IL_OP_##name), wire); \
    T_EQ(IL_OP_##name, num);
    IL_OP_MAP(X)
#undef X
    T_TRUE(il_op_name(IL_OP_COUNT) != NULL);
    T_TRUE(il_op_name((il_op_type)-1) != NULL);
}

U_TEST(uuids)
{
    char a[37];
    char b[37];

    for (unsigned i = 0; i < 100; i++) {
        T_EQ(il_uuid(a), IL_OK);
        T_EQ(il_uuid(b), IL_OK);
        T_EQ(strlen(a), 36);
        T_TRUE(strcmp(a, b) != 0);
        T_EQ(a[14], '7');
        T_TRUE(strchr("89ab", a[19]) != NULL);
        T_EQ(strspn(a, "0123456789abcdef-"), 36);
        T_TRUE(a[8] == '-' && a[13] == '-' && a[18] == '-' && a[23] == '-');
    }
    T_EQ(il_uuid(NULL), IL_INVAL);
    T_TRUE(il_version()[0] != '\0');
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(statuses),
        U_ROW(exit_statuses_are_fixed),
        U_ROW(a_status_that_does_not_exist),
        U_ROW(ops),
        U_ROW(uuids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
