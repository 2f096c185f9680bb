/*
 * suite.c: runs a suite on each engine.
 */
#include "harness/suite.h"

#include <stdlib.h>

#include "harness/postgres.h"
#include "harness/server.h"

static const struct t_engine *engine;

int
t_setup(void **state)
{
    *state = t_store_new(engine);
    return 0;
}

int
t_teardown(void **state)
{
    t_store_free(*state);
    return 0;
}

int
t_suite(const char *name, const struct CMUnitTest *tests, size_t n_tests)
{
    const char *only   = getenv("IL_TEST_STORE");
    const char *filter = getenv("IL_TEST_FILTER"); /* a cmocka pattern: one test, by hand */
    int         n_bad  = 0;

    if (filter != NULL)
        cmocka_set_test_filter(filter);
    for (const struct t_engine *e = t_engines; e->name != NULL; e++) {
        if (only != NULL && only[0] != '\0' && strcmp(only, e->name) != 0)
            continue;
        print_message("# %s on %s\n", name, e->name);
        engine = e;
        /* `pages` counts rows that plans read: a connection that has planned for a small table
         * keeps its plans. */
        if (e->server == &t_server_postgres && strcmp(name, "pages") != 0)
            t_postgres_reuse();
        n_bad += _cmocka_run_group_tests(name, tests, n_tests, NULL, NULL);
    }
    if (engine == NULL)
        T_FAIL("there is no engine '%s'", only);
    return n_bad == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
