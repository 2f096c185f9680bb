/*
 * run.c: invariants that apps register, as SQL and as a function, on each database: what they find,
 * what they must not do, and that one that hangs delays no other.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "apps/check/check.h"
#include "guard/ground.h"
#include "harness/check.h"
#include "harness/event.h"

#define TENANT "acme"

struct rig {
    const struct t_ground *g;
    bool                   without_tables;
    const char            *order[8]; /* names, as they end */
    size_t                 n_ended;
};

static il_status
tables(void *cookie, const struct http_app *app UNUSED, il_guard **ret, il_error *reterr)
{
    const struct rig *rig = cookie;

    if (rig->without_tables)
        return IL_NOT_FOUND;
    return t_guard_new(rig->g->url, G_LIMIT_MS, ret, reterr);
}

static il_status
url(void *cookie, const char *connection, char **ret, il_error *reterr UNUSED)
{
    const struct rig *rig = cookie;

    assert_string_equal(connection, "app");
    *ret = il__strdup(rig->g->url);
    return *ret != NULL ? IL_OK : IL_NOMEM;
}

static struct t_event quick; /* it has ended */

static void
ended(void *cookie, const struct check_result *r, size_t n_ended, size_t n)
{
    struct rig *rig = cookie;

    assert_int_equal(n_ended, ++rig->n_ended);
    assert_true(n_ended <= n);
    rig->order[n_ended - 1] = r->check->name;
    if (strstr(r->check->name, "quick") != NULL)
        t_event_add(&quick);
}

static atomic_uint n_told; /* how often the app was told of a broken invariant */

static void
broken(il_guard *tables, const char *tenant, const struct app_invariant *invariant,
       const char *text)
{
    T_TRUE(tables != NULL);
    T_STREQ(tenant, TENANT);
    if (strcmp(invariant->name, "known") == 0)
        T_STREQ(text, "toy.known: 1 new offenders, first: 2");
    atomic_fetch_add(&n_told, 1);
}

/* Run the invariants of a made-up app; the results are for the caller to release. */
static void
run(struct rig *rig, struct check_set *set, const struct app_invariant *invariants, size_t n,
    struct check_result *results)
{
    const struct http_app app = {
        .name = "toy", .invariants = invariants, .n_invariants = n, .broken = broken
    };
    const struct check_how how = { .url = url, .tables = tables, .ended = ended, .cookie = rig };
    const struct check    *chosen[8];
    il_error               err;

    assert_int_equal(il__checks_add_app(set, &app, TENANT, &err), IL_OK);
    assert_int_equal(set->n, n);
    for (size_t i = 0; i < n; i++)
        chosen[i] = &set->items[i];
    assert_int_equal(il__checks_run(chosen, n, &how, results, &err), IL_OK);
    assert_int_equal(rig->n_ended, n);
}

static void
release(struct check_set *set, struct check_result *results, size_t n)
{
    for (size_t i = 0; i < n; i++)
        il__check_result_release(&results[i]);
    il__checks_release(set);
}

/* Three rows of acme, one of globex. */
static void
make(const struct t_ground *g)
{
    char out[4096];

    (void)t_ground_ask(g, "CREATE TABLE toy (tenant text, id integer, bad integer)", out);
    (void)t_ground_ask(g,
                       "INSERT INTO toy VALUES ('acme', 1, 0), ('acme', 2, 1), ('acme', 3, 1), "
                       "('globex', 4, 1)",
                       out);
}

#define BAD "SELECT id, bad FROM toy WHERE tenant = $1 AND bad = 1 ORDER BY id"
#define NONE "SELECT id FROM toy WHERE tenant = $1 AND bad = 2"
#define SQL(text) .sqlite = (text), .postgres = (text), .severity = INVARIANT_ERROR

static int
count_row(void *cookie, const il_guard_row *row)
{
    il__invariant_found(cookie, row->values[0].data, "by a function");
    return 1;
}

static il_status
find_bad(il_guard_tx *tx, const char *tenant, struct invariant_found *found, il_error *reterr)
{
    const il_guard_value value = il_guard_text(tenant);
    const il_guard_query q     = { .sql      = BAD,
                                   .values   = &value,
                                   .n_values = 1,
                                   .flags    = IL_GUARD_AS_TEXT,
                                   .each     = count_row,
                                   .cookie   = found };

    return il_guard_exec(tx, &q, NULL, reterr);
}

static il_status
write_something(il_guard_tx *tx, const char *tenant UNUSED, struct invariant_found *found UNUSED,
                il_error *reterr)
{
    const il_guard_query q = { .sql = "DELETE FROM toy" };

    return il_guard_exec(tx, &q, NULL, reterr);
}

/* Does not return before the other one has ended: if it delayed it, neither would. */
static il_status
wait_for_quick(il_guard_tx *tx UNUSED, const char *tenant UNUSED,
               struct invariant_found *found UNUSED, il_error *reterr UNUSED)
{
    return t_event_wait(&quick, 1, G_LIMIT_MS / 2) ? IL_OK : IL_STATE;
}

G_TEST(sql_and_functions)
{
    static const char *const          known[]      = { "3", "9", NULL };
    static const struct app_invariant invariants[] = {
        { .name = "bad", SQL(BAD) },
        { .name = "good", SQL(NONE) },
        { .name = "fn", .fn = find_bad, .severity = INVARIANT_WARNING },
        { .name = "known", SQL(BAD), .baseline = known },
    };
    struct rig          rig = { .g = g };
    struct check_set    set = { 0 };
    struct check_result r[ARRAY_LEN(invariants)];

    make(g);
    atomic_store(&n_told, 0);
    run(&rig, &set, invariants, ARRAY_LEN(invariants), r);
    assert_int_equal(n_told, 3); /* not of the one that passed */
    assert_string_equal(r[0].check->name, "toy.bad");
    assert_int_equal(r[0].outcome, CHECK_BROKEN);
    assert_int_equal(r[0].found.n_new, 2);
    assert_string_equal(r[0].found.offenders[0].key, "2");
    assert_string_equal(r[0].found.offenders[0].text, "bad=1");
    assert_int_equal(r[1].outcome, CHECK_PASSED);
    assert_int_equal(r[2].outcome, CHECK_BROKEN);
    assert_string_equal(r[2].found.offenders[1].text, "by a function");
    assert_false(il__check_fails(&r[2], false));
    assert_true(il__check_fails(&r[2], true));
    assert_int_equal(r[3].found.n_new, 1);
    assert_int_equal(r[3].found.n_known, 1);
    /* nobody can shorten the baseline of an app: 9 is not reported as no longer needed */
    assert_int_equal(il__invariant_not_needed(&r[3].found, NULL, 0), 0);
    release(&set, r, ARRAY_LEN(r));
}

G_TEST(what_writes_is_refused)
{
    static const struct app_invariant invariants[] = {
        { .name = "writes", .fn = write_something, .severity = INVARIANT_ERROR },
        { .name = "bad", SQL(BAD) },
    };
    struct rig          rig = { .g = g };
    struct check_set    set = { 0 };
    struct check_result r[ARRAY_LEN(invariants)];

    make(g);
    run(&rig, &set, invariants, ARRAY_LEN(invariants), r);
    assert_int_equal(r[0].outcome, CHECK_ERROR);
    assert_int_not_equal(r[0].error.message[0], '\0');
    assert_int_equal(r[1].outcome, CHECK_BROKEN); /* runs although the other failed */
    assert_int_equal(t_ground_count(g, "SELECT count(*) FROM toy"), 4);
    release(&set, r, ARRAY_LEN(r));
}

G_TEST(an_app_without_tables_is_skipped)
{
    static const struct app_invariant invariants[] = { { .name = "bad", SQL(BAD) } };
    struct rig                        rig          = { .g = g, .without_tables = true };
    struct check_set                  set          = { 0 };
    struct check_result               r[1];

    run(&rig, &set, invariants, 1, r);
    assert_int_equal(r[0].outcome, CHECK_SKIPPED);
    release(&set, r, 1);
}

G_TEST(one_that_hangs_delays_no_other)
{
    static const struct app_invariant invariants[] = {
        { .name = "hangs", .fn = wait_for_quick, .severity = INVARIANT_ERROR },
        { .name = "quick", SQL(NONE) },
    };
    struct rig          rig = { .g = g };
    struct check_set    set = { 0 };
    struct check_result r[ARRAY_LEN(invariants)];

    make(g);
    run(&rig, &set, invariants, ARRAY_LEN(invariants), r);
    assert_string_equal(rig.order[0], "toy.quick");
    assert_int_equal(r[0].outcome, CHECK_PASSED);
    assert_int_equal(r[1].outcome, CHECK_PASSED);
    release(&set, r, ARRAY_LEN(r));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(sql_and_functions),
        G_ROW(what_writes_is_refused),
        G_ROW(an_app_without_tables_is_skipped),
        G_ROW(one_that_hangs_delays_no_other),
    };

    t_event_init(&quick);
    int status = cmocka_run_group_tests(tests, NULL, NULL);
    t_event_release(&quick);
    return status;
}
