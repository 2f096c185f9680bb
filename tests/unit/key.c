/*
 * key.c: names: valid ones, classes, roots.
 */
#include "core/key.h"

#include "harness/unit.h"

U_TEST(classes)
{
    T_EQ(il__key_class_bytes("event:101"), 5);
    T_EQ(il__key_class_bytes("event:101:2"), 5);
    T_EQ(il__key_class_bytes("event"), 5);
    T_EQ(il__key_class_bytes(":x"), 0);
    T_EQ(il__key_class_bytes("a/b:c"), 3);
}

U_TEST(roots)
{
    T_EQ(il__holder_root_bytes("job"), 3);
    T_EQ(il__holder_root_bytes("job/1"), 3);
    T_EQ(il__holder_root_bytes("job/1/2"), 3);
    T_EQ(il__holder_root_bytes("/x"), 0);
    T_TRUE(il__holder_same_root("job", "job/1"));
    T_TRUE(il__holder_same_root("job/1", "job/2"));
    T_TRUE(!il__holder_same_root("job", "job2"));
    T_TRUE(!il__holder_same_root("job2", "job"));
    T_TRUE(!il__holder_same_root("job/1", "jo/b1"));
}

U_TEST(ancestors)
{
    T_TRUE(il__holder_is_ancestor("job", "job/1"));
    T_TRUE(il__holder_is_ancestor("job", "job/1/2"));
    T_TRUE(il__holder_is_ancestor("job/1", "job/1/2"));
    T_TRUE(!il__holder_is_ancestor("job", "job"));
    T_TRUE(!il__holder_is_ancestor("job/1", "job"));
    T_TRUE(!il__holder_is_ancestor("job/1", "job/12"));
    T_TRUE(!il__holder_is_ancestor("job/1", "job/2/1"));
    T_TRUE(!il__holder_is_ancestor("jo", "job/1"));
}

U_TEST(limits)
{
    char     text[600];
    il_error err;

    memset(text, 'x', sizeof text);
    text[512] = '\0';
    T_EQ(il_check_key(text, NULL), IL_OK);
    text[512] = 'x';
    text[513] = '\0';
    T_EQ(il_check_key(text, &err), IL_INVAL);
    T_HAS(err.message, "512");
    text[257] = '\0';
    T_EQ(il_check_holder(text, &err), IL_INVAL);
    text[256] = '\0';
    T_EQ(il_check_holder(text, &err), IL_OK);
    text[65] = '\0';
    T_EQ(il_check_tenant(text, &err), IL_INVAL);
    text[64] = '\0';
    T_EQ(il_check_tenant(text, &err), IL_OK);
    T_EQ(il_check_tenant("", &err), IL_INVAL);
    T_EQ(il_check_tenant(NULL, &err), IL_INVAL);
}

U_TEST(a_bad_name_is_not_echoed_raw)
{
    il_error err;

    T_EQ(il_check_key("a\x1b[31m", &err), IL_INVAL);
    T_TRUE(strchr(err.message, '\x1b') == NULL); /* fit to print as it is */
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(classes),
        U_ROW(roots),
        U_ROW(ancestors),
        U_ROW(limits),
        U_ROW(a_bad_name_is_not_echoed_raw),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
