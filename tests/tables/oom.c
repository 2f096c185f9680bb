/*
 * oom.c: each allocation fails in turn, ours and SQLite's, while tables are created and opened: an
 * error, no crash, no leak and no half of a schema.
 */
#include "fault/alloc_inject.h"
#include "harness/rng.h"
#include "harness/unit.h"
#include "tables/rig.h"

#define N_MAX 40000

static il_status
open_all(const char *url, il_error *err)
{
    struct tables_place *p = NULL;
    il_guard            *g = NULL;

    il_status st = il__tables_place_open(url, NULL, false, &p, err);
    if (st == IL_OK)
        st = il__tables_open(&t_toy_next, p, NULL, &g, err);
    il_guard_close(g);
    il__tables_place_close(p);
    return st;
}

/* One try with the n-th allocation failing. False: none was left to fail. */
static bool
try_once(const struct t_rig *r, enum alloc_inject_of of, enum alloc_inject_mode mode, unsigned n)
{
    il_error err    = { .message = "" };
    long     n_live = alloc_inject_n_live();

    alloc_inject_arm(of, mode, n);
    il_status st    = open_all(r->url, &err);
    bool      fired = alloc_inject_fired();
    alloc_inject_disarm();
    /* SQLite can do without some of its memory. If it has none left to roll back a read, the next
     * transaction finds that one open (IL_STATE). */
    if (st != IL_OK &&
        (!fired || (st != IL_NOMEM && (st != IL_STATE || mode == ALLOC_INJECT_ONCE))))
        T_FAIL("allocation %u: status %d, %s", n, (int)st, err.message);
    T_EQ(alloc_inject_n_live(), n_live);
    /* The next one finds all or nothing. */
    if (open_all(r->url, &err) != IL_OK)
        T_FAIL("after allocation %u: %s", n, err.message);
    T_EQ(alloc_inject_n_live(), n_live);
    return fired;
}

static void
try_all(enum alloc_inject_of of, enum alloc_inject_mode mode, unsigned step)
{
    unsigned n = 1;

    for (bool fired = true; fired; n += step) {
        struct t_rig r;
        t_rig_make(&r);
        fired = try_once(&r, of, mode, n);
        t_rig_release(&r);
        T_TRUE(n < N_MAX);
    }
    print_message("# %u allocations\n", n);
}

U_TEST(ours)
{
    try_all(ALLOC_INJECT_OURS, ALLOC_INJECT_ONCE, 1);
    try_all(ALLOC_INJECT_OURS, ALLOC_INJECT_FROM_ON, 1);
}

/* Many hundreds of them, most of the same kind. */
U_TEST(sqlites)
{
    unsigned step = t_stride(7);

    try_all(ALLOC_INJECT_SQLITE, ALLOC_INJECT_ONCE, step);
    try_all(ALLOC_INJECT_SQLITE, ALLOC_INJECT_FROM_ON, step);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(ours), U_ROW(sqlites) };

    alloc_inject_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
