/*
 * usage.c: the usage cache: hits over HTTP against bare libmicrohttpd with answers of the same
 * size; 1,000 callers of a day that is not stored; and the small parts of a build by themselves.
 */
#include "apps/usage/usage.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "http.h"

#define SCRIPT BENCH_SOURCE "/wrk/usage.lua"
#define DAYS "/api/v1/admin/usage/days/"
#define ANSWER_BYTES ((size_t)64 << 10)
#define N_CALLERS 1000
#define N_CALLERS_QUICK 50
#define COST_MS 1500 /* of the day that all wait for: long enough for all of them to ask */
#define LAST_NS_MAX 1e8
#define LEASES_WANTED 1000.0   /* per second: 1 ms each */
#define GRACES_WANTED 10000.0  /* 0.1 ms */
#define COUNTS_WANTED 100000.0 /* 0.01 ms */

/* ---- over HTTP ------------------------------------------------------------------------------- */

static void
open_server(struct site *s, struct bench *b, char path[BENCH_PATH_BYTES], const char *cost)
{
    char url[BENCH_PATH_BYTES + 16];

    CHECK(setenv("INTERLOCK_USAGE_SOURCE_TYPE", "generator", 1) == 0);
    CHECK(setenv("INTERLOCK_USAGE_SOURCE_COST", cost, 1) == 0);
    (void)snprintf(url, sizeof url, "sqlite:%s", temp_path(b, "usage.db", path));
    site_open(s, b, url, NULL);
    CHECK(unsetenv("INTERLOCK_USAGE_SOURCE_TYPE") == 0);
}

static void
close_server(struct site *s, const char *path)
{
    char tables[BENCH_PATH_BYTES + 16];

    process_stop(&s->process);
    temp_remove_database(path);
    (void)snprintf(tables, sizeof tables, "%.*s-usage.db", (int)(strlen(path) - strlen(".db")),
                   path);
    temp_remove_database(tables);
}

/* The bytes of the body, which is complete: it is read until then. */
static size_t
read_body(int fd, char answer[ANSWER_BYTES])
{
    size_t   n      = 0;
    unsigned length = 0;

    for (;;) {
        ssize_t got = read(fd, answer + n, ANSWER_BYTES - 1 - n);
        if (got <= 0)
            die("the server does not answer");
        n += (size_t)got;
        answer[n]        = '\0';
        const char *body = strstr(answer, "\r\n\r\n"), *at = strstr(answer, "Content-Length: ");
        if (body == NULL || at == NULL || sscanf(at, "Content-Length: %u", &length) != 1)
            continue;
        if (n - (size_t)(body + 4 - answer) >= length)
            return length;
    }
}

static size_t
body_bytes(const struct site *s, const char *date)
{
    char answer[ANSWER_BYTES], path[64];
    int  fd = connect_to(s);

    (void)snprintf(path, sizeof path, DAYS "%s", date);
    ask(fd, s, "GET", path, "", NULL, 0);
    size_t n = read_body(fd, answer);
    (void)close(fd);
    if (strstr(answer, " 200 ") == NULL)
        die("usage: %s", answer);
    return n;
}

static void
measure_hits(struct bench *b)
{
    struct result r = { .name         = "usage-hit",
                        .what         = "a stored day of usage over HTTP, 64 connections, wrk",
                        .against      = "libmicrohttpd alone, answers of the same size",
                        .durability   = BENCH_FULL,
                        .unit         = UNIT_OPS_PER_S,
                        .wanted       = WANTED_RATIO_AT_LEAST,
                        .wanted_value = 0.3 };
    struct site   ours, bare;
    struct hammer hammers[2] = { { .site = &ours, .script = SCRIPT },
                                 { .site = &bare, .script = SCRIPT } };
    char          path[BENCH_PATH_BYTES], bytes[24];

    if (!program_find("wrk", hammers[0].wrk)) {
        report_leave_out(&b->report, r.name, "wrk is not installed");
        return;
    }
    memcpy(hammers[1].wrk, hammers[0].wrk, sizeof hammers[1].wrk);
    for (size_t i = 0; i < 2; i++)
        (void)snprintf(hammers[i].seconds, sizeof hammers[i].seconds, "%ds", b->quick ? 1 : 2);
    open_server(&ours, b, path, "0");
    (void)snprintf(bytes, sizeof bytes, "%zu", body_bytes(&ours, "2025-01-15"));
    CHECK(setenv("BENCH_BARE_BYTES", bytes, 1) == 0);
    bare_open(&bare);
    compare(&r, b->n_rounds, (struct side){ hammer_requests, &hammers[0] },
            (struct side){ hammer_requests, &hammers[1] });
    r.ours_latency     = hammer_latency(&hammers[0]);
    r.baseline_latency = hammer_latency(&hammers[1]);
    process_stop(&bare.process);
    close_server(&ours, path);
    report_add(&b->report, &r);
}

/* ---- a crowd --------------------------------------------------------------------------------- */

static int64_t
build_end_ms(const char *answer)
{
    const char *at = strstr(answer, "\"updated_at\":\"");
    char        text[IL__TIME_TEXT_BYTES];
    int64_t     ms;

    if (at == NULL)
        die("usage: %s", answer);
    (void)snprintf(text, sizeof text, "%.24s", at + strlen("\"updated_at\":\""));
    if (!il__time_parse(text, &ms))
        die("usage: %s", text);
    return ms + COST_MS; /* when the source had the day; writing it is part of the answer */
}

static void
measure_crowd(struct bench *b)
{
    unsigned      n      = b->quick ? N_CALLERS_QUICK : N_CALLERS;
    int          *fds    = must_calloc(n, sizeof *fds);
    char         *answer = must_calloc(1, ANSWER_BYTES), path[BENCH_PATH_BYTES], cost[24];
    struct site   s;
    struct result r = { .name       = "usage-crowd",
                        .what       = "1,000 callers of a missing day, one build: from its end to "
                                      "the last answer",
                        .durability = BENCH_FULL,
                        .unit       = UNIT_NS,
                        .wanted     = b->quick ? WANTED_NOTHING : WANTED_P99_AT_MOST,
                        .wanted_value = LAST_NS_MAX,
                        .n_rounds     = 1 };

    (void)snprintf(cost, sizeof cost, "%dms", COST_MS);
    open_server(&s, b, path, cost);
    for (unsigned i = 0; i < n; i++)
        fds[i] = connect_to(&s);
    for (unsigned i = 0; i < n; i++)
        ask(fds[i], &s, "GET", DAYS "2025-01-15", "", NULL, 0);
    for (unsigned i = 0; i < n; i++)
        (void)read_body(fds[i], answer);
    double late_ns = (double)(il__clock_wall_ms() - build_end_ms(answer)) * 1e6;
    ask(fds[0], &s, "GET", "/api/v1/admin/usage/cache/metrics", "", answer, ANSWER_BYTES);
    if (strstr(answer, "\"cacheRebuilds\":1,") == NULL)
        die("usage: not one build: %s", answer);
    r.ours[0]      = late_ns;
    r.ours_latency = (struct quantiles){
        .n = n, .p50_ns = (int64_t)late_ns, .p99_ns = (int64_t)late_ns, .max_ns = (int64_t)late_ns
    };
    report_add(&b->report, &r);
    for (unsigned i = 0; i < n; i++)
        (void)close(fds[i]);
    close_server(&s, path);
    free(answer);
    free(fds);
}

/* ---- the parts ------------------------------------------------------------------------------- */

static unsigned
step_lease(void *cookie, struct caller *c)
{
    il_lease       *lease = NULL;
    il_acquire_opts o     = IL_ACQUIRE_OPTS_INIT;

    o.holder = c->names.holder;
    must(il_acquire(*(il **)cookie, c->names.key, &o, &lease, &c->err), "a lease", &c->err);
    IGNORE(il_lease_release(lease, &c->err)); /* else it expires */
    il_lease_free(lease);
    names_next(&c->names);
    return 1;
}

static unsigned
step_grace(void *cookie, struct caller *c)
{
    usage_date *date = cookie;

    if (usage_keep(*date, (int64_t)c->n_pairs * 1000, 5) == USAGE_KEEP_TODAY)
        ++*date;
    return 1;
}

static unsigned
step_count(void *cookie, struct caller *c UNUSED)
{
    usage_count(cookie, USAGE_COUNT_hits);
    return 1;
}

static void
measure_part(struct bench *b, const char *name, const char *what, double wanted,
             unsigned (*step)(void *cookie, struct caller *c), void *cookie)
{
    struct result r    = { .name         = name,
                           .what         = what,
                           .durability   = step == step_lease ? BENCH_FULL : BENCH_MEMORY,
                           .unit         = UNIT_OPS_PER_S,
                           .wanted       = WANTED_RATE_AT_LEAST,
                           .wanted_value = wanted,
                           .n_rounds     = b->n_rounds };
    struct load   load = { .n_threads    = 1,
                           .n_keys       = 64,
                           .sample_every = step == step_lease ? 1 : 64,
                           .round_ns     = b->round_ns / 2,
                           .step         = step,
                           .cookie       = cookie };

    load_init(&load);
    for (unsigned i = 0; i < b->n_rounds; i++)
        r.ours[i] = load_round(&load);
    r.ours_latency = load_latency(&load);
    load_release(&load);
    report_add(&b->report, &r);
}

static void
measure_parts(struct bench *b)
{
    char          path[BENCH_PATH_BYTES], url[BENCH_PATH_BYTES + 16];
    struct usage *u    = NULL;
    usage_date    date = 0;
    il_error      err;

    (void)snprintf(url, sizeof url, "sqlite:%s", temp_path(b, "usage-lease.db", path));
    il *store = store_open(url, NULL);
    measure_part(b, "usage-lease", "the lease of a day and its release, on SQLite, one caller",
                 LEASES_WANTED, step_lease, &store);
    il_close(store);
    temp_remove_database(path);
    measure_part(b, "usage-grace", "is the build of a day complete?", GRACES_WANTED, step_grace,
                 &date);
    struct usage_source *source = NULL;
    must(usage_source_open(&(struct usage_source_opts){ .type = USAGE_SOURCE_none }, &source, &err),
         "a source", &err);
    must(usage_open(&(struct usage_opts){ .n_threads = 1, .source = source }, &u, &err),
         "the cache", &err);
    measure_part(b, "usage-count", "a counter", COUNTS_WANTED, step_count, u);
    usage_close(u);
    usage_source_close(source);
}

void
bench_usage(struct bench *b, unsigned unused UNUSED)
{
    allow_descriptors();
    measure_hits(b);
    measure_crowd(b);
    measure_parts(b);
}
