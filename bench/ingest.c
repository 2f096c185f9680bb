/*
 * ingest.c: parsing a race page of 13 drivers with 47 laps each, as large as the site's pages are.
 */
#include "apps/ingest/liverc.h"
#include "base/buf.h"
#include "bench.h"

#define N_DRIVERS 13
#define N_LAPS 47
#define PAGE_BYTES 190000
#define PAGES_PER_ROUND 200
#define PAGES_PER_S_WANTED 333 /* 3 ms each */

#define TABS "\t\t\t\t\t\t\t\t\t\t\t\t"

/* As the site prints it: most of such a page is indentation. */
static void
add_script(struct il__buf *b, unsigned driver)
{
    il__buf_addf(b,
                 "\t\t\t\t\t\t\tracerLaps[%u] = {\n\t\t\t\t\t\t\t\t'driverName' : 'DRIVER %u',\n"
                 "\t\t\t\t\t\t\t\t'fastLap' : '37.234',\n\t\t\t\t\t\t\t\t'laps' : [\n",
                 346000 + driver, driver);
    for (unsigned lap = 0; lap <= N_LAPS; lap++)
        il__buf_addf(b,
                     "%s{\n%s'lapNum' : '%u',\n%s'pos' : '%u',\n%s'time' : '%s',\n%s'pace' : "
                     "'17/10:28.285',\n%s'segments' : [\n%s%s]\n%s},\n",
                     TABS, TABS, lap, TABS, driver + 1, TABS, lap > 0 ? "38.532" : "0", TABS, TABS,
                     TABS, TABS, TABS);
    il__buf_adds(b, TABS "]\n" TABS "};\n");
    for (unsigned lap = 0; lap <= N_LAPS; lap++)
        il__buf_addf(b, "%s%spositionDataDriver.data.push([%u, %u]);\n", TABS, TABS, lap, driver);
}

static void
add_row(struct il__buf *b, unsigned driver)
{
    il__buf_addf(b,
                 "<tr>\n<td>%u</td>\n<td>\n<span class=\"car_num\">%u</span>\n<span class="
                 "\"driver_name\">DRIVER %u</span>\n<br /><span class=\"text-nowrap\"><small><a "
                 "href=\"#\" data-driver-id=\"%u\" class=\"driver_laps\"><span class=\"fa fa-eye\">"
                 "</span> View Laps</a></small></span>\n</td>\n<td>2</td>\n<td>47/30:11.004</td>\n"
                 "<td>12.052</td>\n<td>37.234<sup>10</sup></td>\n",
                 driver + 1, driver, driver, 346000 + driver);
    for (unsigned i = 0; i < 5; i++)
        il__buf_adds(b, "<td><div class=\"hidden\">112.036</div>1:52.036</td>\n");
    il__buf_adds(b, "<td>1.39</td>\n<td>92.82%</td>\n</tr>\n");
}

static void
make_page(struct il__buf *b)
{
    il__buf_init(b, 2 * PAGE_BYTES);
    il__buf_adds(b, "<!DOCTYPE html>\n<html>\n<body>\n<script>\nvar racerLaps = {};\n");
    for (unsigned i = 0; i < N_DRIVERS; i++)
        add_script(b, i);
    il__buf_adds(b,
                 "</script>\n<table class=\"table race_result\">\n<thead>\n<tr>\n<th>Pos</th><th>"
                 "Driver</th><th>Qual</th><th>Laps/Time</th><th>Behind</th><th>Fastest Lap</th>"
                 "<th>Avg Lap</th><th>Avg Top 5</th><th>Avg Top 10</th><th>Avg Top 15</th><th>"
                 "Top 3 Consecutive</th><th>Std. Deviation</th><th>Consistency</th></tr>\n"
                 "</thead>\n<tbody>\n");
    for (unsigned i = 0; i < N_DRIVERS; i++)
        add_row(b, i);
    il__buf_adds(b, "</tbody>\n</table>\n");
    while (b->n_bytes < PAGE_BYTES)
        il__buf_adds(b,
                     "<li><a href=\"/live/\"><i class=\"fa fa-road fa-fw\"></i> Live</a></li>\n");
    CHECK(!b->failed);
}

static int64_t
time_page(const struct liverc_source *s)
{
    struct liverc_page        page = { 0 };
    const struct liverc_race *race = NULL;
    il_error                  err  = { 0 };

    int64_t start_ns = il__clock_boot_ns();
    must(il__liverc_race(&page, s, &race, &err), "parse", &err);
    int64_t took_ns = il__clock_boot_ns() - start_ns;
    CHECK(race != NULL && race->n_results == N_DRIVERS && page.n_warnings == 0);
    for (size_t i = 0; i < N_DRIVERS; i++)
        CHECK(race->results[i].n_laps == N_LAPS);
    il__liverc_page_release(&page);
    return took_ns;
}

void
bench_ingest_parse(struct bench *b, unsigned unused UNUSED)
{
    AUTO_BUF struct il__buf page = { 0 };
    struct samples          all  = { 0 };
    il_error                err  = { 0 };
    struct result           r    = { .name         = "ingest-parse",
                                     .what         = "a race page, 13 drivers, 47 laps each",
                                     .durability   = BENCH_MEMORY,
                                     .unit         = UNIT_OPS_PER_S,
                                     .wanted       = WANTED_RATE_AT_LEAST,
                                     .wanted_value = PAGES_PER_S_WANTED,
                                     .n_rounds     = b->n_rounds };

    must(il__liverc_load(&err), "libraries", &err);
    make_page(&page);
    struct liverc_source s = { il__buf_str(&page), page.n_bytes, "1", "track" };
    (void)time_page(&s);
    for (unsigned i = 0; i < r.n_rounds; i++) {
        struct samples round = { 0 };
        for (unsigned k = 0; k < (b->quick ? 2 : PAGES_PER_ROUND); k++)
            samples_add(&round, time_page(&s));
        samples_add_all(&all, &round);
        r.ours[i] = (double)BENCH_NS_PER_S / (double)samples_quantiles(&round).p50_ns;
        samples_release(&round);
    }
    r.ours_latency = samples_quantiles(&all);
    samples_release(&all);
    report_add(&b->report, &r);
}
