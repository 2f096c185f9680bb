/*
 * hostile.c: pages that are made to hurt, each given to every parser. Each must be refused or read,
 * within the limits; pages that libxml2 alone needs minutes for would exceed the test's timeout.
 */
#include <stdio.h>

#include "apps/ingest/html.h"
#include "base/arena.h"
#include "ingest/page.h"

#define PAGE_BYTES (LIVERC_BODY_BYTES_MAX / 4)
/* What a page may cost beside libxml2's tree, which the scan bounds. */
#define ARENA_BYTES_MAX (64 << 20)

/* A page: a head, then a part again and again until the page is full; a %zu in it is a number. */
static char *
fill(const char *head, const char *part, size_t n_max)
{
    char  *page = malloc(PAGE_BYTES + 1);
    char   piece[2048];
    size_t at = 0;

    CHECK(page != NULL);
    at += (size_t)snprintf(page, PAGE_BYTES, "%s", head);
    const char *number = strstr(part, "%zu");
    int         before = number != NULL ? (int)(number - part) : (int)strlen(part);
    for (size_t i = 0; i < n_max; i++) {
        char digits[24] = "";
        if (number != NULL)
            (void)snprintf(digits, sizeof digits, "%zu", i);
        int n = snprintf(piece, sizeof piece, "%.*s%s%s", before, part, digits,
                         number != NULL ? number + 3 : "");
        CHECK(n > 0 && (size_t)n < sizeof piece);
        if (at + (size_t)n > PAGE_BYTES)
            break;
        memcpy(page + at, piece, (size_t)n);
        at += (size_t)n;
    }
    page[at] = '\0';
    return page;
}

static il_status
parse(int kind, const struct liverc_source *s)
{
    const struct liverc_event       *event;
    const struct liverc_entry_list  *entries;
    const struct liverc_race        *race;
    const struct liverc_event_links *events;
    const struct liverc_tracks      *tracks;

    switch (kind) {
    case LIVERC_EVENT:
        return il__liverc_event(&t_page, s, &event, &t_error);
    case LIVERC_ENTRIES:
        return il__liverc_entries(&t_page, s, &entries, &t_error);
    case LIVERC_RACE:
        return il__liverc_race(&t_page, s, &race, &t_error);
    case LIVERC_EVENTS:
        return il__liverc_events(&t_page, s, &events, &t_error);
    default:
        return il__liverc_tracks(&t_page, s, &tracks, &t_error);
    }
}

static void
survive(const char *page, size_t n_bytes)
{
    struct liverc_source s = { .body = page, .n_bytes = n_bytes, .slug = "x" };

    for (int kind = 0; kind < LIVERC_KIND_COUNT; kind++) {
        il__liverc_page_release(&t_page);
        il_status st = parse(kind, &s);
        T_TRUE(st == IL_OK || (st == IL_INVAL && t_page.code != LIVERC_OK));
        T_LESS(il__arena_bytes(t_page.mem), ARENA_BYTES_MAX);
    }
}

U_TEST(full_pages)
{
    static const struct {
        const char *head, *part;
    } pages[] = {
        { "<a ", "a%zu=1 " },
        { "", "<a b1 b2 b3 b4 b5 b6 b7 b8 b9 c1 c2 c3 c4 c5 c6 c7 c8 c9 d1 d2 d3 d4 d5 d6 d7 d8>" },
        { "", "<i>" },
        { "", "<b><div></b>" },
        { "", "<br>" },
        { "", "<" },
        { "", "<x%zu>" },
        { "<p>", "&amp;" },
        { "<p>", "&x" },
        { "", "<!-- " },
        { "", "<!---->" },
        { "", "<p>" },
        { "", "<ul><li>" },
        { "", "<table><th>" },
        { "<table>", "<tr><td>x" },
        { "", "<style>" },
        { "", "<script>" },
        { "<script>", "racerLaps[%zu]={'laps':[{}]};" },
        { "<script>", "racerLaps[1] = {laps:[" },
        { "<script>", "racerLaps['" },
        { "<script>", "racerLaps[/*" },
        { "<script>", "racerLaps[" },
        { "<script>racerLaps[1]={laps:[", "{lapNum:1}," },
        { "<script>racerLaps[1]={a:", "[" },
        { "<script>racerLaps[1]={laps:[{segments:[", "1," },
        { "<table><tr><th>Pos<th>Driver<th>Laps/Time<th>Behind", "<tr><td>1<td>A<td>1/1<td>" },
        { "<table><tr><th>Pos<th>Driver<th>Laps/Time<th>Behind<tr>", "<td>" },
        { "", "<table><tr><th>Pos<th>x</th></tr></table>" },
        { "<div class=class_header>X</div><table>", "<tr><td>%zu<td>A<td>" },
        { "<h1 class=page-header>", "x" },
        { "<h1 class=page-header>", "\xEF\xB7\xBA" }, /* becomes 18 characters */
        { "", "<a href='?p=view_event&id=%zu'>x</a>" },
        { "", "<a href='//a%zu.liverc.com/'>x</a>" },
        { "<h1 class=page-header>X</h1><h5 class=page-header>Nov 1, 2025</h5><a href='?p=view_event"
          "&id=1'></a><table class=entry_list_data>",
          "<tr><td><a href='?p=view_race_result&id=%zu'>x</a>" },
        { "", "\xFF" },
    };

    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        char *page = fill(pages[i].head, pages[i].part, SIZE_MAX);
        survive(page, strlen(page));
        free(page);
    }
}

/* Each end tag of an element that is not open makes libxml2 look at all that are. */
U_TEST(end_tags)
{
    char *open = fill("", "<i>", HTML_DEPTH_MAX - 10);
    char *page = fill(open, "</b>", SIZE_MAX);

    survive(page, strlen(page));
    free(open);
    free(page);
}

static void
refused(const char *page, size_t n_bytes, const char *part)
{
    struct liverc_source s = { .body = page, .n_bytes = n_bytes };

    T_EQ(parse(LIVERC_RACE, &s), IL_INVAL);
    T_EQ(t_page.code, LIVERC_RACE_PAGE_FORMAT_ERROR);
    T_HAS(t_error.message, part);
}

static void
fill_refused(const char *head, const char *part, size_t n, const char *why)
{
    char *page = fill(head, part, n);

    refused(page, strlen(page), why);
    free(page);
}

U_TEST(limits)
{
    char *large = malloc(LIVERC_BODY_BYTES_MAX + 1);

    CHECK(large != NULL);
    memset(large, ' ', LIVERC_BODY_BYTES_MAX + 1);
    refused(large, LIVERC_BODY_BYTES_MAX, "no result table");
    refused(large, LIVERC_BODY_BYTES_MAX + 1, "exceeds 2097152 bytes");
    memset(large, '&', HTML_PARTS_MAX + 1);
    refused(large, HTML_PARTS_MAX, "no result table");
    refused(large, HTML_PARTS_MAX + 1, "more than 200000 tags, attributes and entities");
    free(large);
    refused("<p>\0<p>", 7, "NUL");
    fill_refused("<a ", "b%zu ", 64, "no result table");
    fill_refused("<a ", "b%zu ", 65, "more than 64 attributes");
    fill_refused("<a b='", "x", 9000, "exceeds 8192 bytes");
    fill_refused("", "<b>", HTML_DEPTH_MAX + 20, "nested more than 256 deep");
}

U_TEST(long_texts)
{
    char *page = fill("<h5 class=page-header>Nov 1, 2025</h5><h1 class=page-header>", "x", 1024);

    T_EQU(strlen(t_event(page, "1")->name), 1024);
    free(page);
    for (size_t n = 1025; n < 100000; n *= 8) {
        page = fill("<h5 class=page-header>Nov 1, 2025</h5><h1 class=page-header>", "x", n);
        t_refused(LIVERC_EVENT, page, "1", LIVERC_VALIDATION_ERROR,
                  "a field is longer than 1024 bytes");
        free(page);
    }
}

/* Exactly at the limits of a tag. */
U_TEST(tags)
{
    char   page[HTML_TAG_BYTES_MAX + 64] = "<a";
    size_t at                            = 2;

    for (size_t i = 0; i < HTML_ATTRIBUTES_MAX; i++)
        at += (size_t)snprintf(page + at, sizeof page - at, " b%zu='>'", i);
    (void)snprintf(page + at, sizeof page - at, ">");
    refused(page, strlen(page), "no result table");
    (void)snprintf(page + at, sizeof page - at, " c>");
    refused(page, strlen(page), "more than 64 attributes");
    memset(page, 'x', sizeof page);
    memcpy(page, "<a b=", 5);
    page[HTML_TAG_BYTES_MAX - 1] = '>';
    refused(page, HTML_TAG_BYTES_MAX, "no result table");
    page[HTML_TAG_BYTES_MAX - 1] = 'x';
    page[HTML_TAG_BYTES_MAX]     = '>';
    refused(page, HTML_TAG_BYTES_MAX + 1, "exceeds 8192 bytes");
}

/* What the scan leaves out cannot come back as a tag. */
U_TEST(scan)
{
    static const struct {
        const char *page, *clean;
    } cases[] = {
        { "a<!-- <b> -->b", "ab" },
        { "<<!-- -->b c>", "&lt;b c>" },
        { "<!DOCTYPE html><?xml ?></ >x", "x" },
        { "<SCRIPT a='>'>1<2</b></script >y", "y" },
        { "<scripted>y", "<scripted>y" },
        { "<style>a>b</styles>y", "y" },
        { "1 < 2 <3 <b>x</b foo='>'>", "1 &lt; 2 &lt;3 <b>x</b>'>" },
        { "<a b='x>y' c=d/e>z", "<a b='x>y' c=d/e>z" },
        { "x<a b=\"", "x" },
        { "x<!--", "x" },
        { "x<", "x&lt;" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct html h = { 0 };
        T_EQ(il__html_scan(&h, cases[i].page, strlen(cases[i].page), &t_error), IL_OK);
        T_STREQ(il__buf_str(&h.clean), cases[i].clean);
        il__html_release(&h);
    }
}

U_TEST(other_encodings)
{
    const struct liverc_event *e = t_event("<meta charset=utf-16><h1 class=page-header>Caf\xE9</h1>"
                                           "<h5 class=page-header>Nov 16, 2025</h5>",
                                           "1");

    T_STREQ(e->name, "Caf\xC3\xA9");
    e = t_event("<meta charset=iso-8859-1><h1 class=page-header>Caf\xC3\xA9 &eacute;&#233;</h1>"
                "<h5 class=page-header>Nov 16, 2025</h5>",
                "1");
    T_STREQ(e->name, "Caf\xC3\xA9 \xC3\xA9\xC3\xA9");
}

/* A page that ends anywhere is read or refused. */
U_TEST(truncated)
{
    static const char page[] =
        "<h1 class=page-header>X &amp; Y</h1><script>racerLaps[5] = { 'driverName' : 'A\\'B', "
        "'laps' "
        ": [ { 'lapNum' : '1', 'pos' : '1', 'time' : '38.17', 'segments' : [ '1' ] } ] };</script>"
        "<table class=race_result><tr><th>Pos<th>Driver<th>Laps/Time<th>Behind</tr><tr><td>1<td>"
        "<span class='driver_name'>A'B \xC3\xA9</span><td>1/38.17<td></td></tr></table><!-- x -->";

    for (size_t n = 0; n < sizeof page; n++) {
        char *cut = malloc(n + 1); /* of its own, so that a byte too many is noticed */
        CHECK(cut != NULL);
        memcpy(cut, page, n);
        survive(cut, n);
        free(cut);
    }
}

/* ---- no memory ------------------------------------------------------------------------------- */

static size_t n_calls, fail_at;

static void *
failing_realloc(void *cookie UNUSED, void *p, size_t n_bytes)
{
    return ++n_calls == fail_at ? NULL : realloc(p, n_bytes);
}

static void *
failing_alloc(void *cookie, size_t n_bytes)
{
    return failing_realloc(cookie, NULL, n_bytes);
}

static void
plain_free(void *cookie UNUSED, void *p)
{
    free(p);
}

/* Fail the first allocation, the second, and so on, until a page is read. */
static void
without_memory(int kind, const char *page)
{
    struct liverc_source s = { .body = page, .n_bytes = strlen(page), .id = "1", .slug = "x" };

    for (fail_at = 1;; fail_at++) {
        n_calls      = 0;
        il_status st = parse(kind, &s);
        if (st != IL_NOMEM && (st != IL_OK || n_calls >= fail_at))
            T_FAIL("page %s without allocation %zu: status %u, %s", il__liverc_kinds[kind], fail_at,
                   st, t_error.message);
        il__liverc_page_release(&t_page);
        if (st == IL_OK)
            break;
    }
    fail_at = 0;
    T_LESS(1, n_calls);
}

U_TEST(no_memory)
{
    static const il_allocator failing = { failing_alloc, failing_realloc, plain_free, NULL };

    il__liverc_page_release(&t_page);
    il_set_allocator(&failing);
    without_memory(LIVERC_EVENT,
                   "<h1 class=page-header>X</h1><h5 class=page-header>Nov 16, 2025</h5><table "
                   "class=entry_list_data><tr><td><a href='?p=view_race_result&id=5'>Race 1: a "
                   "(\xC3\xA9)</a><td>soon</tr></table>\xFF");
    without_memory(LIVERC_ENTRIES,
                   "<div class=class_header>X</div><table><tr><td>1<td>Ann<td>5</tr></table>");
    without_memory(LIVERC_RACE,
                   "<script>racerLaps[5] = { 'laps' : [ { 'lapNum' : '1', 'time' : '38.17', "
                   "'segments' : [ '1' ] } ] };racerLaps[6] = {driverName:'A'}</script><table><tr>"
                   "<th>Pos<th>Driver<th>Laps/Time<th>Behind<tr><td>1<td><a data-driver-id=5></a>"
                   "<span class=driver_name>B</span><td>1/38.17<td><tr><td>2<td>A<td>0<td>"
                   "</table>");
    without_memory(LIVERC_EVENTS, "<a href='?p=view_event&id=5'>x</a>");
    without_memory(LIVERC_TRACKS, "<a href='//a.liverc.com/'>x</a>");
    il_set_allocator(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        U_ROW(full_pages), U_ROW(end_tags),        U_ROW(limits),    U_ROW(long_texts), U_ROW(tags),
        U_ROW(scan),       U_ROW(other_encodings), U_ROW(truncated), U_ROW(no_memory),
    };

    T_EQ(il__liverc_load(&t_error), IL_OK);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    il__liverc_page_release(&t_page);
    return failed;
}
