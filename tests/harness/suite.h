/*
 * suite.h: a cmocka suite that runs on an engine, each test with a new store.
 */
#ifndef T_SUITE_H
#define T_SUITE_H

#include "harness/cmocka.h"
#include "harness/store.h"

/* A test `static void name(struct t_store *s)`. */
#define T_TEST(name)                     \
    static void name(struct t_store *);  \
    static void name##_run(void **state) \
    {                                    \
        name(*state);                    \
    }                                    \
    static void name(struct t_store *s)

#define T_ROW(name)                                  \
    {                                                \
#name, name##_run, t_setup, t_teardown, NULL \
    }

int t_setup(void **state);
int t_teardown(void **state);

/* Run on the engine of IL_TEST_STORE, else on every one. For main() to return. */
int t_suite(const char *name, const struct CMUnitTest *tests, size_t n_tests);

#define T_SUITE(name, tests) t_suite(name, tests, sizeof(tests) / sizeof((tests)[0]))

/* Leave a test that makes no sense on this engine. */
#define T_NEEDS(s, what)                                                            \
    do {                                                                            \
        if (!(s)->engine->what) {                                                   \
            print_message("# not on %s: it is not " #what "\n", (s)->engine->name); \
            return;                                                                 \
        }                                                                           \
    } while (0)

/* The store is a file. */
#define T_NEEDS_FILE(s)                                                                      \
    do {                                                                                     \
        T_NEEDS(s, durable);                                                                 \
        if ((s)->engine->server != NULL) {                                                   \
            print_message("# not on %s: it is a server's, not a file\n", (s)->engine->name); \
            return;                                                                          \
        }                                                                                    \
    } while (0)

/* Time is that of the machine's boots: a server has a clock of its own, which our boots do not
 * touch. */
#define T_NEEDS_BOOTS(s)                                                                 \
    do {                                                                                 \
        T_NEEDS(s, durable);                                                             \
        if ((s)->engine->server != NULL) {                                               \
            print_message("# not on %s: its time is the server's\n", (s)->engine->name); \
            return;                                                                      \
        }                                                                                \
    } while (0)

#endif
