/*
 * versions.c: checks that hold for the tables of every app: a fresh schema equals an upgraded one,
 * and tenants cannot meet. The toy is one of them, and its invariants find planted rows.
 */
#include <stdio.h>

#include "apps/app.h"
#include "apps/check/check.h"
#include "tables/rig.h"

typedef void check_fn(const struct t_rig *r, const struct app_tables *t);

/* Each app of apps.def that has tables, at a place of its own. */
static void
for_each_app(check_fn *fn)
{
    for (size_t i = 0; i <= IL_APP_COUNT; i++) {
        const struct app_tables *t = i < IL_APP_COUNT ? il__apps[i]->tables : &t_toy_next;
        struct t_rig             r;
        if (t == NULL)
            continue;
        t_rig_make(&r);
        print_message("# %s\n", t->name);
        fn(&r, t);
        t_rig_release(&r);
    }
}

/* ---- versions -------------------------------------------------------------------------------- */

static char *
shape_of(const struct t_rig *r, const struct app_tables *t)
{
    struct il__migration m;
    il_error             err;

    if (il__tables_migrate(t, r->place, false, &m, &err) != IL_OK)
        T_FAIL("%s", err.message);
    il_guard *g     = t_tables_open(r, t);
    char     *shape = t_look_shape(g);
    il_guard_close(g);
    return shape;
}

/* One version after the other. */
static void
upgrade_step_by_step(const struct t_rig *r, const struct app_tables *t)
{
    struct t_rig other;

    t_rig_make(&other);
    char *fresh = shape_of(&other, t);
    T_TRUE(fresh[0] != '\0');
    t_rig_release(&other);
    for (int version = 1; version <= t->sqlite->version; version++) {
        struct il__schema sqlite = *t->sqlite, postgres = *t->postgres;
        struct app_tables old = *t;
        sqlite.version = postgres.version = version;
        sqlite.min_version = postgres.min_version = MIN(version, t->sqlite->min_version);
        old.sqlite                                = &sqlite;
        old.postgres                              = &postgres;
        char *shape                               = shape_of(r, &old);
        if (version == t->sqlite->version)
            T_STREQ(shape, fresh);
        else
            T_TRUE(strcmp(shape, fresh) != 0); /* the comparison can tell */
        il__free(shape);
    }
    il__free(fresh);
}

static void
a_fresh_schema_equals_an_upgraded_one(void **state UNUSED)
{
    for_each_app(upgrade_step_by_step);
}

R_TEST(rows_survive_an_upgrade)
{
    char      out[4096];
    il_guard *g = t_tables_open(r, &t_toy);

    (void)t_run(g, &t_toy_course_add,
                APP_VALUES(il_guard_text("a"), il_guard_text("c"), il_guard_int(7)), out);
    il_guard_close(g);
    il__free(shape_of(r, &t_toy_next));
    g = t_tables_open(r, &t_toy_next);
    T_STREQ(t_run(g, &t_toy_seats, APP_VALUES(il_guard_text("a"), il_guard_text("c")), out), "7");
    T_STREQ(t_run(g, &t_toy_title, APP_VALUES(il_guard_text("a")), out), "c");
    il_guard_close(g);
}

/* ---- tenants --------------------------------------------------------------------------------- */

static void
check_keys(const struct t_rig *r, const struct app_tables *t)
{
    il__free(shape_of(r, t));
    il_guard *g    = t_tables_open(r, t);
    char     *keys = t_look_keys(g);

    T_STREQ(keys, "");
    il__free(keys);
    il_guard_close(g);
}

static void
every_key_begins_with_the_tenant(void **state UNUSED)
{
    for_each_app(check_keys);
}

R_TEST(keys_without_a_tenant_are_found)
{
    static const char *const texts[] = {
        "nobody needs a column tenant",
        "nobody: the primary key does not begin",
        "late: the primary key does not begin",
        "loose needs a column tenant that is NOT NULL",
        "twice: the unique index",
        "child: a foreign key to twice",
    };
    il_guard *g    = t_tables_open(r, &t_toy_mixed);
    char     *keys = t_look_keys(g);

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        T_HAS(keys, texts[i]);
    T_TRUE(strstr(keys, "late needs") == NULL);
    il__free(keys);
    il_guard_close(g);
}

R_TEST(two_tenants_never_meet)
{
    char      out[4096];
    il_error  err;
    il_guard *g = t_tables_open(r, &t_toy);

    for (int i = 0; i < 2; i++) /* the same code, and the same id */
        (void)t_run(
            g, &t_toy_course_add,
            APP_VALUES(il_guard_text(i == 0 ? "a" : "b"), il_guard_text("c"), il_guard_int(i + 5)),
            out);
    T_STREQ(t_run(g, &t_toy_seats, APP_VALUES(il_guard_text("a"), il_guard_text("c")), out), "5");
    T_STREQ(t_run(g, &t_toy_seats, APP_VALUES(il_guard_text("b"), il_guard_text("c")), out), "6");
    T_STREQ(t_run(g, &t_toy_courses, APP_VALUES(il_guard_text("a")), out), "1");
    /* A row cannot refer to one of another tenant. */
    (void)t_run(g, &t_toy_course_add,
                APP_VALUES(il_guard_text("a"), il_guard_text("only-a"), il_guard_int(1)), out);
    T_EQ(t_run_try(g, &t_toy_booking_add,
                   APP_VALUES(il_guard_text("b"), il_guard_text("1"), il_guard_text("only-a")),
                   &err),
         IL_FOREIGN_KEY);
    (void)t_run(g, &t_toy_booking_add,
                APP_VALUES(il_guard_text("a"), il_guard_text("1"), il_guard_text("only-a")), out);
    il_guard_close(g);
}

/* ---- invariants ------------------------------------------------------------------------------ */

static il_status
tables_of(void *cookie, const struct http_app *app, il_guard **ret, il_error *reterr)
{
    const struct t_rig *r = cookie;

    return il__tables_open(app->tables, r->place, &(struct tables_opts){ .existing = true }, ret,
                           reterr);
}

/* Run both invariants of the toy; release the results and the set. */
static void
run_invariants(struct t_rig *r, const char *tenant, struct check_set *set,
               struct check_result results[T_TOY_INVARIANTS])
{
    static const struct http_app app = { .name         = "toy",
                                         .tables       = &t_toy,
                                         .invariants   = t_toy_invariants,
                                         .n_invariants = T_TOY_INVARIANTS };
    const struct check_how       how = { .tables = tables_of, .cookie = r };
    const struct check          *checks[T_TOY_INVARIANTS];
    il_error                     err;

    *set = (struct check_set){ .items = NULL };
    T_EQ(il__checks_add_app(set, &app, tenant, &err), IL_OK);
    T_EQ(set->n, T_TOY_INVARIANTS);
    for (size_t i = 0; i < T_TOY_INVARIANTS; i++)
        checks[i] = &set->items[i];
    T_EQ(il__checks_run(checks, T_TOY_INVARIANTS, &how, results, &err), IL_OK);
}

static void
release_results(struct check_set *set, struct check_result results[T_TOY_INVARIANTS])
{
    for (size_t i = 0; i < T_TOY_INVARIANTS; i++)
        il__check_result_release(&results[i]);
    il__checks_release(set);
}

/* Two courses, one of them overbooked and one with a blank, of tenant a; b has neither. */
static void
plant(const struct t_rig *r)
{
    char      out[4096];
    il_guard *g = t_tables_open(r, &t_toy);

    for (int i = 0; i < 3; i++)
        (void)t_run(g, &t_toy_course_add,
                    APP_VALUES(il_guard_text(i < 2 ? "a" : "b"),
                               il_guard_text(i == 1 ? "d e" : "c"), il_guard_int(1)),
                    out);
    for (int i = 0; i < 3; i++)
        (void)t_run(g, &t_toy_booking_add,
                    APP_VALUES(il_guard_text(i < 2 ? "a" : "b"), il_guard_text(i == 1 ? "2" : "1"),
                               il_guard_text("c")),
                    out);
    il_guard_close(g);
}

R_TEST(invariants_find_planted_rows)
{
    struct check_set    set;
    struct check_result results[T_TOY_INVARIANTS];

    run_invariants(r, "a", &set, results);
    for (size_t i = 0; i < T_TOY_INVARIANTS; i++) /* there are no tables yet */
        T_EQ(results[i].outcome, CHECK_SKIPPED);
    release_results(&set, results);

    plant(r);
    run_invariants(r, "a", &set, results);
    T_STREQ(results[0].check->name, "toy.overbooked");
    T_STREQ(results[1].check->name, "toy.blank_codes");
    for (size_t i = 0; i < T_TOY_INVARIANTS; i++) {
        if (results[i].outcome != CHECK_BROKEN)
            T_FAIL("%s: %s", results[i].check->name, results[i].error.message);
        T_EQ(results[i].found.n_new, 1);
    }
    T_STREQ(results[0].found.offenders[0].key, "c");
    T_HAS(results[0].found.offenders[0].text, "2 bookings of 1 seats");
    T_STREQ(results[1].found.offenders[0].key, "d e");
    release_results(&set, results);

    run_invariants(r, "b", &set, results);
    for (size_t i = 0; i < T_TOY_INVARIANTS; i++)
        T_EQ(results[i].outcome, CHECK_PASSED);
    release_results(&set, results);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_schema_equals_an_upgraded_one),
        cmocka_unit_test(every_key_begins_with_the_tenant),
        R_ROW(rows_survive_an_upgrade),
        R_ROW(keys_without_a_tenant_are_found),
        R_ROW(two_tenants_never_meet),
        R_ROW(invariants_find_planted_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
