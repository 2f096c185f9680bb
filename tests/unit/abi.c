/*
 * abi.c: sizes, offsets and numbers of the public header match abi.def. Checked at compile time.
 */
#include "harness/unit.h"
#include "interlock-guard.h"
#include "interlock.h"

#if UINTPTR_MAX == UINT64_MAX
#define SIZE(type, n_bytes) _Static_assert(sizeof(type) == (n_bytes), "size of " #type);
#define MEMBER(type, member, at) \
    _Static_assert(offsetof(type, member) == (at), "offset of " #type "." #member);
#else
#define SIZE(type, n_bytes)
#define MEMBER(type, member, at)
#endif
#define VALUE(name, number) _Static_assert((name) == (number), "value of " #name);
#include "abi.def"

/* Of the header, of the library and of the file VERSION. */
U_TEST(versions)
{
    char numbers[32];

    T_STREQ(IL_VERSION, PROJECT_VERSION);
    T_STREQ(il_version(), IL_VERSION);
    (void)snprintf(numbers, sizeof numbers, "%d.%d.%d", IL_VERSION_MAJOR, IL_VERSION_MINOR,
                   IL_VERSION_PATCH);
    T_STREQ(numbers, IL_VERSION);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(versions) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
