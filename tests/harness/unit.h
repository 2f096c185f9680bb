/*
 * unit.h: a cmocka suite without a store.
 */
#ifndef T_UNIT_H
#define T_UNIT_H

#include <stdio.h>

#include "harness/check.h"
#include "harness/cmocka.h"

/* A test `static void name(void)`. */
#define U_TEST(name)                            \
    static void name(void);                     \
    static void name##_run(void **state UNUSED) \
    {                                           \
        name();                                 \
    }                                           \
    static void name(void)

#define U_ROW(name) cmocka_unit_test(name##_run)

#endif
