/*
 * history.c: results that are kept, on each database: pages, one invariant, other tenants, the end.
 */
#include <stdio.h>

#include "apps/check/check.h"
#include "apps/check/history.h"
#include "guard/ground.h"

/* What a listing gave: "name@started " of each. */
struct seen {
    char    text[256];
    char    id[64];
    int64_t started_ms;
};

static void
see(void *cookie, const struct check_record *r)
{
    struct seen *s = cookie;
    size_t       n = strlen(s->text);

    (void)snprintf(s->text + n, sizeof s->text - n, "%s@%d ", r->name, (int)r->started_ms);
    (void)snprintf(s->id, sizeof s->id, "%s", r->id);
    s->started_ms = r->started_ms;
}

static void
see_all(void *cookie, const struct check_record *r)
{
    char *out = cookie;

    (void)snprintf(out, 1024, "%s %s %s %d %d %s %s %s '%s' %d", r->name, r->severity, r->outcome,
                   (int)r->n_new, (int)r->n_known, r->offenders, r->not_needed, r->runs, r->error,
                   (int)r->took_ms);
}

static il_guard *
make(const struct t_ground *g)
{
    const char *step =
        g->is_postgres ? il__check_tables.postgres->steps[0] : il__check_tables.sqlite->steps[0];
    char out[4096], one[4096];

    for (const char *end; (end = strchr(step, ';')) != NULL; step = end + 1) {
        (void)snprintf(one, sizeof one, "%.*s", (int)(end - step), step);
        (void)t_ground_ask(g, one, out);
    }
    return t_ground_open(g, 0);
}

static void
add(il_guard *h, const char *tenant, const char *name, int64_t started_ms)
{
    const struct check        c = { .tenant = tenant, .name = name, .severity = INVARIANT_ERROR };
    const struct check_result r = { .check      = &c,
                                    .outcome    = CHECK_PASSED,
                                    .started_ms = started_ms };
    il_error                  err;

    assert_int_equal(il__check_history_add(h, &r, NULL, NULL, &err), IL_OK);
}

static void
expect(il_guard *h, const char *name, struct seen *s, bool go_on, int64_t limit, const char *text)
{
    char                      id[64];
    const struct check_cursor after = { s->started_ms, id };
    il_error                  err;

    (void)snprintf(id, sizeof id, "%s", s->id); /* s changes while it is read */
    s->text[0]            = '\0';
    struct check_wanted w = { .tenant = "acme", .name = name, .limit = limit };
    w.after               = go_on ? &after : NULL;
    assert_int_equal(il__check_history_list(h, &w, see, s, &err), IL_OK);
    assert_string_equal(s->text, text);
}

G_TEST(a_result_is_kept_as_it_was)
{
    static const char *const known[] = { "8", "9" };
    const struct check       c = { .tenant = "acme", .name = "n", .severity = INVARIANT_INFO };
    struct check_result r = { .check = &c, .outcome = CHECK_BROKEN, .started_ms = 1, .took_ms = 7 };
    il_guard           *h = make(g);
    char                text[1024];
    il_error            err;

    assert_true(il__invariant_found_init(&r.found, known, 2));
    il__invariant_found(&r.found, "8", NULL);
    il__invariant_found(&r.found, "é'\"", "x=1");
    assert_int_equal(il__check_history_add(h, &r, "one", "[\"run-1\"]", &err), IL_OK);
    const struct check_wanted w = { .tenant = "acme", .name = "n", .limit = 10 };
    assert_int_equal(il__check_history_list(h, &w, see_all, text, &err), IL_OK);
    assert_string_equal(text, "n info broken 1 1 [{\"key\":\"é'\\\"\",\"text\":\"x=1\"}] "
                              "{\"count\":1,\"keys\":[\"9\"]} [\"run-1\"] '' 7");
    text[0] = '\0';
    assert_int_equal(il__check_history_get(h, "acme", "one", NULL, see_all, text, &err), IL_OK);
    assert_int_equal(strncmp(text, "n info broken 1 1 ", 18), 0);
    text[0] = '\0';
    assert_int_equal(il__check_history_get(h, "globex", "one", NULL, see_all, text, &err), IL_OK);
    assert_string_equal(text, "");
    il__check_result_release(&r);
    il_guard_close(h);
}

static void
add_outcome(il_guard *h, const char *tenant, enum check_outcome outcome, int64_t started_ms)
{
    const struct check        c = { .tenant = tenant, .name = "n", .severity = INVARIANT_ERROR };
    const struct check_result r = { .check = &c, .outcome = outcome, .started_ms = started_ms };
    il_error                  err;

    assert_int_equal(il__check_history_add(h, &r, NULL, NULL, &err), IL_OK);
}

static void
see_broken(void *cookie, const char *tenant, const char *name)
{
    char  *text = cookie;
    size_t n    = strlen(text);

    (void)snprintf(text + n, 256 - n, "%s/%s ", tenant, name);
}

static void
expect_last(il_guard *h, enum check_outcome last, const char *broken)
{
    enum check_outcome found     = CHECK_ERROR;
    char               text[256] = "";
    il_error           err;

    assert_int_equal(il__check_history_last(h, "acme", "n", &found, &err), IL_OK);
    assert_int_equal(found, last);
    assert_int_equal(il__check_history_broken(h, see_broken, text, &err), IL_OK);
    assert_string_equal(text, broken);
}

static void
expect_newest(il_guard *h, int64_t started_ms, const char *outcome)
{
    struct invariant_last last = { .started_ms = 99 };
    il_error              err;

    assert_int_equal(il__check_history_newest(h, "acme", "n", &last, &err), IL_OK);
    assert_int_equal(last.started_ms, started_ms);
    assert_string_equal(last.outcome, outcome);
}

G_TEST(the_newest_result)
{
    il_guard *h = make(g);

    add_outcome(h, "globex", CHECK_BROKEN, 9);
    expect_newest(h, 0, "");
    add_outcome(h, "acme", CHECK_PASSED, 3);
    add_outcome(h, "acme", CHECK_BROKEN, 2);
    expect_newest(h, 3, "passed");
    add_outcome(h, "acme", CHECK_ERROR, 4);
    expect_newest(h, 4, "error");
    il_guard_close(h);
}

/* The last result that could look decides. */
G_TEST(what_is_broken_now)
{
    il_guard *h = make(g);

    add_outcome(h, "globex", CHECK_BROKEN, 1);
    expect_last(h, CHECK_NOT_RUN, "globex/n ");
    add_outcome(h, "globex", CHECK_PASSED, 2);
    add_outcome(h, "acme", CHECK_PASSED, 1);
    expect_last(h, CHECK_PASSED, "");
    add_outcome(h, "acme", CHECK_BROKEN, 2);
    expect_last(h, CHECK_BROKEN, "acme/n ");
    add_outcome(h, "acme", CHECK_ERROR, 3);
    expect_last(h, CHECK_BROKEN, "acme/n ");
    add_outcome(h, "acme", CHECK_PASSED, 4);
    expect_last(h, CHECK_PASSED, "");
    il_guard_close(h);
}

G_TEST(pages_tenants_and_the_end)
{
    il_guard   *h = make(g);
    struct seen s = { .text = "" };
    int64_t     n = 0;
    il_error    err;

    for (int i = 1; i <= 5; i++)
        add(h, "acme", i % 2 == 1 ? "odd" : "even", i);
    add(h, "globex", "odd", 9);
    add(h, "globex", "odd", 2);
    expect(h, NULL, &s, false, 10, "odd@5 even@4 odd@3 even@2 odd@1 ");
    expect(h, NULL, &s, false, 2, "odd@5 even@4 ");
    expect(h, NULL, &s, true, 2, "odd@3 even@2 ");
    expect(h, NULL, &s, true, 2, "odd@1 ");
    expect(h, "odd", &s, false, 1, "odd@5 ");
    expect(h, "odd", &s, true, 5, "odd@3 odd@1 ");
    assert_int_equal(il__check_history_purge(h, 5, 4, &n, &err), IL_OK);
    assert_int_equal(n, 4);
    expect(h, NULL, &s, false, 10, "odd@5 even@4 ");
    assert_int_equal(il__check_history_purge(h, 5, 4, &n, &err), IL_OK);
    assert_int_equal(n, 1);
    assert_int_equal(t_ground_count(g, "SELECT count(*) FROM check_result"), 2);
    il_guard_close(h);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(a_result_is_kept_as_it_was),
        G_ROW(pages_tenants_and_the_end),
        G_ROW(what_is_broken_now),
        G_ROW(the_newest_result),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
