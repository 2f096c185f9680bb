/*
 * robots.c: addresses of pages, and the rules of robots.txt.
 */
#include "apps/ingest/robots.h"
#include "apps/ingest/address.h"
#include "harness/unit.h"

/* ---- robots.txt ------------------------------------------------------------------------------ */

static bool
allows(const char *text, const char *path)
{
    struct robots r;

    T_TRUE(il__robots_parse(&r, text, strlen(text), "interlock"));
    bool allow = il__robots_allow(&r, path);
    il__robots_release(&r);
    return allow;
}

U_TEST(robots_without_rules_allow_everything)
{
    T_TRUE(allows("", "/x"));
    T_TRUE(allows("Hello\n\n:\nfoo: bar\nDisallow: /\n", "/x")); /* a rule of no group */
    T_TRUE(allows("User-agent: *\nDisallow:\n", "/x"));
    T_TRUE(allows("User-agent: other\nDisallow: /\n", "/x"));
}

U_TEST(robots_rules_for_us_come_first)
{
    static const char text[] = "User-agent: *\nDisallow: /\n\n"
                               "user-AGENT: Interlock/2.0 # us\r\nDisallow: /private\r\n";

    T_TRUE(allows(text, "/results/?p=view_event&id=1"));
    T_TRUE(!allows(text, "/private/x"));
    T_TRUE(!allows("User-agent: a\nUser-agent: interlock\nUser-agent: b\nDisallow: /\n", "/x"));
    T_TRUE(allows("User-agent: interlocking\nDisallow: /\n", "/x"));
    /* several groups for us are one; another agent after a rule begins a new group */
    T_TRUE(!allows("User-agent: interlock\nAllow: /a\nUser-agent: x\nDisallow: /b\n"
                   "User-agent: interlock\nDisallow: /c\n",
                   "/c"));
    T_TRUE(allows("User-agent: interlock\nAllow: /a\nUser-agent: x\nDisallow: /b\n", "/b"));
    T_TRUE(!allows("\xef\xbb\xbfUser-agent: *\nSitemap: /s\nDisallow: /\n", "/x"));
}

U_TEST(robots_the_longest_pattern_decides)
{
    static const char text[] =
        "User-agent: *\nDisallow: /results\nAllow: /results/?p=view_event\n"
        "Disallow: /*.php$\nDisallow: /a*b*c\nAllow: /same\nDisallow: /same\n";

    T_TRUE(!allows(text, "/results/?p=view_race_result&id=1"));
    T_TRUE(allows(text, "/results/?p=view_event&id=1"));
    T_TRUE(allows(text, "/results/?p=view%5Fevent&id=1")); /* as it is written does not matter */
    T_TRUE(!allows(text, "/x/y.php"));
    T_TRUE(allows(text, "/x/y.php?z"));
    T_TRUE(!allows(text, "/a1b2c3"));
    T_TRUE(allows(text, "/a1c2b3"));
    T_TRUE(allows(text, "/same"));
    T_TRUE(!allows("User-agent: *\nDisallow: /caf\xc3\xa9\n", "/caf%c3%A9"));
    T_TRUE(allows("User-agent: *\nDisallow: /x%2Fy\n", "/x/y")); /* an escape with a meaning */
}

U_TEST(robots_beyond_a_limit_deny_everything)
{
    AUTO_BUF struct il__buf text = { 0 };

    il__buf_init(&text, 1 << 20);
    il__buf_adds(&text, "User-agent: *\n");
    for (int i = 0; i < ROBOTS_RULES_MAX; i++)
        il__buf_addf(&text, "Disallow: /x%d\n", i);
    T_TRUE(allows(il__buf_str(&text), "/y"));
    il__buf_adds(&text, "Disallow: /z\n");
    T_TRUE(!allows(il__buf_str(&text), "/y"));
    il__buf_clear(&text);
    il__buf_adds(&text, "User-agent: *\nDisallow: /");
    for (int i = 1; i < ROBOTS_PATTERN_BYTES_MAX; i++)
        il__buf_addc(&text, '*');
    T_TRUE(!allows(il__buf_str(&text), "/y")); /* and quickly */
    il__buf_addc(&text, 'q');
    T_TRUE(!allows(il__buf_str(&text), "/y"));
}

/* ---- addresses ------------------------------------------------------------------------------- */

static const char *
url(const char *base, enum liverc_kind kind, const char *slug, const char *id)
{
    static struct address a;
    il_error              err = { .message = "" };

    T_EQ(il__address_check(base, &err), IL_OK);
    if (il__address_of(base, kind, slug, id, &a, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return a.url;
}

U_TEST(addresses_of_pages)
{
    static const char  own[] = "http://127.0.0.1:9000/{slug}/";
    static const char *site  = ADDRESS_BASE_DEFAULT;
    struct address     a, robots;
    il_error           err;

    T_STREQ(url(site, LIVERC_EVENT, "canberra", "7"),
            "https://canberra.liverc.com/results/?p=view_event&id=7");
    T_STREQ(url(site, LIVERC_ENTRIES, "canberra", "7"),
            "https://canberra.liverc.com/results/?p=view_entry_list&id=7");
    T_STREQ(url(site, LIVERC_RACE, "canberra", "6304822"),
            "https://canberra.liverc.com/results/?p=view_race_result&id=6304822");
    T_STREQ(url(site, LIVERC_EVENTS, "canberra", NULL), "https://canberra.liverc.com/events");
    T_STREQ(url(site, LIVERC_TRACKS, NULL, NULL), "https://live.liverc.com/");
    T_STREQ(url(own, LIVERC_EVENTS, "x-1", NULL), "http://127.0.0.1:9000/x-1/events");
    T_STREQ(url(own, LIVERC_TRACKS, NULL, NULL), "http://127.0.0.1:9000/");
    T_STREQ(url("http://[::1]:80", LIVERC_RACE, "x", "1"),
            "http://[::1]:80/results/?p=view_race_result&id=1");
    T_EQ(il__address_of(own, LIVERC_EVENTS, "x", NULL, &a, &err), IL_OK);
    T_STREQ(a.host, "127.0.0.1:9000");
    il__address_robots(&a, &robots);
    T_STREQ(robots.url, "http://127.0.0.1:9000/robots.txt");
}

/* No request can be made to go anywhere else. */
U_TEST(addresses_are_not_forged)
{
    static const char *const slugs[] = { "",   "a/b", "a.b", "a@b", "A",    "x#", "x?y",
                                         "..", "a b", "-a",  "a-",  "a%2f", "ä",  "localhost:80" };
    static const char *const ids[]   = { "", "1&x=2", "-1", "1 ", "0x1", "123456789012345678901" };
    static const char *const bases[] = { "ftp://x",        "//x",        "https://",
                                         "https://u@x",    "http://x?q", "http://x/#f",
                                         "http://x y",     "https:///x", "https://{slug}/{slug}",
                                         "http://x/%2e%2e" };
    struct address           a;
    il_error                 err;

    for (size_t i = 0; i < ARRAY_LEN(slugs); i++)
        T_EQ(il__address_of(ADDRESS_BASE_DEFAULT, LIVERC_EVENTS, slugs[i], NULL, &a, &err),
             IL_INVAL);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        T_EQ(il__address_of(ADDRESS_BASE_DEFAULT, LIVERC_RACE, "x", ids[i], &a, &err), IL_INVAL);
    for (size_t i = 0; i < ARRAY_LEN(bases); i++)
        T_EQ(il__address_check(bases[i], &err), IL_INVAL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        U_ROW(robots_without_rules_allow_everything),
        U_ROW(robots_rules_for_us_come_first),
        U_ROW(robots_the_longest_pattern_decides),
        U_ROW(robots_beyond_a_limit_deny_everything),
        U_ROW(addresses_of_pages),
        U_ROW(addresses_are_not_forged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
