/*
 * http_auth.c: the buckets of addresses that present wrong keys, and the permissions of routes.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/hash.h"
#include "http/auth.h"
#include "http/auth_failures.h"

#include "harness/unit.h"

#define SECOND (INT64_C(1000) * IL__NS_PER_MS)

static void
wrong(struct http_failures *t, const char *address, int times, int64_t now_ns)
{
    for (int i = 0; i < times; i++)
        http_failures_add(t, address, 10, now_ns);
}

/* Ten at once, then one every six seconds; after a quiet minute ten again. */
U_TEST(a_bucket_of_ten_per_minute)
{
    struct http_failures t   = { .newest = NULL };
    int64_t              now = 1000 * SECOND;

    wrong(&t, "192.0.2.1", 9, now);
    assert_int_equal(http_failures_wait_ms(&t, "192.0.2.1", 10, now), 0);
    wrong(&t, "192.0.2.1", 1, now);
    assert_int_equal(http_failures_wait_ms(&t, "192.0.2.1", 10, now), 6000);
    assert_int_equal(http_failures_wait_ms(&t, "192.0.2.1", 10, now + 5 * SECOND), 1000);
    assert_int_equal(http_failures_wait_ms(&t, "192.0.2.1", 10, now + 6 * SECOND), 0);
    wrong(&t, "192.0.2.1", 1, now + 6 * SECOND);
    assert_int_equal(http_failures_wait_ms(&t, "192.0.2.1", 10, now + 6 * SECOND), 6000);
    /* However often it fails meanwhile, it never waits for more than that. */
    wrong(&t, "192.0.2.1", 1000, now + 6 * SECOND);
    assert_int_equal(http_failures_wait_ms(&t, "192.0.2.1", 10, now + 6 * SECOND), 6000);
    now += 100 * SECOND;
    wrong(&t, "192.0.2.1", 9, now);
    assert_int_equal(http_failures_wait_ms(&t, "192.0.2.1", 10, now), 0);
    http_failures_release(&t);
}

U_TEST(addresses_are_apart)
{
    struct http_failures t   = { .newest = NULL };
    int64_t              now = SECOND;

    wrong(&t, "192.0.2.1", 10, now);
    assert_int_equal(http_failures_wait_ms(&t, "192.0.2.2", 10, now), 0);
    assert_int_equal(http_failures_wait_ms(&t, "unix", 10, now), 0);
    assert_int_equal(http_failures_wait_ms(&t, NULL, 10, now), 0);
    wrong(&t, "unix", 10, now);
    assert_true(http_failures_wait_ms(&t, "unix", 10, now) > 0);
    /* One who has a network of IPv6 has one bucket; IPv4 addresses in the form of IPv6 have one
     * each. */
    wrong(&t, "2001:db8:1:2::1", 10, now);
    assert_true(http_failures_wait_ms(&t, "2001:db8:1:2:ffff::7", 10, now) > 0);
    assert_int_equal(http_failures_wait_ms(&t, "2001:db8:1:3::1", 10, now), 0);
    wrong(&t, "::ffff:192.0.2.9", 10, now);
    assert_int_equal(http_failures_wait_ms(&t, "::ffff:192.0.2.10", 10, now), 0);
    http_failures_release(&t);
}

U_TEST(no_limit)
{
    struct http_failures t = { .newest = NULL };

    for (int i = 0; i < 100; i++)
        http_failures_add(&t, "a", -1, SECOND);
    assert_int_equal(http_failures_wait_ms(&t, "a", -1, SECOND), 0);
    assert_int_equal(t.map.n, 0);
    http_failures_release(&t);
}

/* The table does not grow: whoever was quiet longest is forgotten. */
U_TEST(the_table_is_bounded)
{
    struct http_failures t = { .newest = NULL };
    char                 name[32];

    for (int i = 0; i < 3 * HTTP_FAILURES_MAX; i++) {
        (void)snprintf(name, sizeof name, "address-%d", i);
        wrong(&t, name, 10, SECOND);
        assert_true(t.map.n <= HTTP_FAILURES_MAX);
        /* one that goes on is never forgotten */
        wrong(&t, "busy", 1, SECOND);
    }
    assert_int_equal(t.map.n, HTTP_FAILURES_MAX);
    assert_true(http_failures_wait_ms(&t, "busy", 10, SECOND) > 0);
    assert_true(http_failures_wait_ms(&t, name, 10, SECOND) > 0);
    assert_int_equal(http_failures_wait_ms(&t, "address-0", 10, SECOND), 0);
    http_failures_release(&t);
}

/* ---- permissions ----------------------------------------------------------------------------- */

static bool
may(enum il__data_role role, const char *permissions, enum http_permission needed, const char *id)
{
    struct http_caller c     = { .role = role };
    struct http_route  route = { .permission.role = needed, .id = id };

    (void)snprintf(c.permissions, sizeof c.permissions, "%s", permissions);
    return http_may_call(&c, &route);
}

U_TEST(roles_contain_those_before_them)
{
    static const enum http_permission needed[] = { HTTP_MAY_read, HTTP_MAY_write, HTTP_MAY_operator,
                                                   HTTP_MAY_admin };

    for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
        for (int role = DATA_ROLE_NONE; role < DATA_ROLE_COUNT; role++)
            assert_int_equal(may((enum il__data_role)role, "", needed[i], "x_y"), role > (int)i);
    }
    assert_true(may(DATA_ROLE_NONE, "", HTTP_MAY_any, "batch"));
    /* What is not in the table is for nobody. */
    assert_false(may(DATA_ROLE_ADMIN, "", (enum http_permission)0, "x_y"));
    assert_false(may(DATA_ROLE_ADMIN, "", (enum http_permission)99, "x_y"));
    assert_false(may(DATA_ROLE_COUNT, "", HTTP_MAY_read, "x_y"));
}

U_TEST(named_permissions_are_whole_words)
{
    assert_true(may(DATA_ROLE_NONE, "queue:claim", HTTP_MAY_write, "queue_claim"));
    assert_true(may(DATA_ROLE_NONE, "queue_claim", HTTP_MAY_write, "queue_claim"));
    assert_true(may(DATA_ROLE_NONE, "a:b queue:claim c:d", HTTP_MAY_write, "queue_claim"));
    assert_true(may(DATA_ROLE_NONE, "admin:key_create", HTTP_MAY_admin, "admin_key_create"));
    assert_true(may(DATA_ROLE_NONE, "batch", HTTP_MAY_write, "batch"));
    assert_false(may(DATA_ROLE_NONE, "queue", HTTP_MAY_write, "queue_claim"));
    assert_false(may(DATA_ROLE_NONE, "queue:", HTTP_MAY_write, "queue_claim"));
    assert_false(may(DATA_ROLE_NONE, "queue:clai", HTTP_MAY_write, "queue_claim"));
    assert_false(may(DATA_ROLE_NONE, "queue:claimx", HTTP_MAY_write, "queue_claim"));
    assert_false(may(DATA_ROLE_NONE, "xqueue:claim", HTTP_MAY_write, "queue_claim"));
    assert_false(may(DATA_ROLE_NONE, "queue:claim", HTTP_MAY_write, "queue"));
    assert_false(may(DATA_ROLE_NONE, "  ", HTTP_MAY_write, "queue_claim"));
    assert_false(may(DATA_ROLE_READ, "queue:push", HTTP_MAY_write, "queue_claim"));
}

/* ---- keys with a prefix ---------------------------------------------------------------------- */

static bool
may_names(const char *prefix, struct http_names names)
{
    struct http_caller c     = { .role = DATA_ROLE_ADMIN };
    struct http_route  route = { .permission.names = names };

    (void)snprintf(c.prefix, sizeof c.prefix, "%s", prefix);
    return http_may_names(&c, &route);
}

static bool
yes(const struct http_request *r UNUSED, const char *name UNUSED)
{
    return true;
}

U_TEST(a_key_with_a_prefix_needs_a_route_that_judges_it)
{
    static const struct http_names all = HTTP_NAMES_ALL, under = HTTP_NAMES_UNDER("usage:"),
                                   others[] = { HTTP_NAMES_NONE, HTTP_NAMES_OPS,
                                                HTTP_NAMES_JUDGED(yes) };

    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        assert_true(may_names("", others[i]));
        assert_true(may_names("x:", others[i]));
    }
    assert_true(may_names("", all));
    assert_false(may_names("x:", all));
    assert_true(may_names("", under));
    assert_true(may_names("u", under));
    assert_true(may_names("usage:", under));
    assert_false(may_names("usage:2026", under)); /* covers only some of these names */
    assert_false(may_names("x:", under));
    /* What is not in the table is for nobody with a prefix. */
    assert_true(may_names("", (struct http_names){ .under = NULL }));
    assert_false(may_names("x:", (struct http_names){ .under = NULL }));
    assert_false(may_names("x:", (struct http_names){ .rule = (enum http_names_rule)99 }));
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(a_bucket_of_ten_per_minute),
        U_ROW(addresses_are_apart),
        U_ROW(no_limit),
        U_ROW(the_table_is_bounded),
        U_ROW(roles_contain_those_before_them),
        U_ROW(named_permissions_are_whole_words),
        U_ROW(a_key_with_a_prefix_needs_a_route_that_judges_it),
    };

    il__hash_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
