/*
 * http_trigger.c: pipeline triggers over HTTP, compared with acquires on the same server.
 *
 * The server executes one run at a time and is always busy with one, so this measures triggers and
 * not the runs they start (run-start does that). A tenant has at most 50 runs at once, so bursts go
 * to the pipelines of several tenants, and are cancelled before the next one.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http.h"

#define SCRIPT BENCH_SOURCE "/wrk/triggers.lua"
#define N_TENANTS 8
#define N_PIPELINES 40 /* of each */
#define N_ALL (N_TENANTS * N_PIPELINES)
#define N_BURSTS 20
#define ANSWER_BYTES 4096

/* DIR/TENANT/pN.yml: a pipeline that runs as long as the benchmark. */
static void
write_pipelines(const char *dir, const char *tenant, unsigned n)
{
    char path[BENCH_PATH_BYTES + 64];

    (void)snprintf(path, sizeof path, "%s/%s", dir, tenant);
    if ((mkdir(dir, 0700) != 0 && errno != EEXIST) || (mkdir(path, 0700) != 0 && errno != EEXIST))
        die("%s: %s", path, strerror(errno));
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(path, sizeof path, "%s/%s/p%u.yml", dir, tenant, i);
        FILE *f = fopen(path, "we");
        if (f == NULL) {
            die("%s: %s", path, strerror(errno));
            return;
        }
        (void)fprintf(f,
                      "pipeline_id: p%u\ntimeout_minutes: 60\n"
                      "steps:\n- {step_id: a, type: command, run: [sleep, \"3600\"]}\n",
                      i);
        if (fclose(f) != 0)
            die("%s: %s", path, strerror(errno));
    }
}

/* The text after `name` in a response. */
static const char *
told(const char *answer, const char *name, int *ret_n)
{
    const char *at = strstr(answer, name);

    if (at == NULL) {
        die("nothing of %s: %s", name, answer);
        return "";
    }
    at += strlen(name);
    *ret_n = (int)strcspn(at, ",}\"");
    return at;
}

/* The server, and a copy with the key of each tenant. */
static void
open_sites(struct site *s, struct site tenants[N_TENANTS], struct bench *b,
           char path[BENCH_PATH_BYTES])
{
    static const char *const settings[][2] = { { "INTERLOCK_LIMIT_TRIGGERS_PER_MINUTE", "0" },
                                               { "INTERLOCK_LIMIT_TRIGGERS_PER_HOUR", "0" },
                                               { "INTERLOCK_LIMIT_RUNS", "50" },
                                               { "INTERLOCK_RUNS_MAX", "1" } };
    char dir[BENCH_PATH_BYTES], url[BENCH_PATH_BYTES + 16], answer[ANSWER_BYTES], name[16],
        body[128];
    int n = 0;

    write_pipelines(temp_path(b, "http-pipelines", dir), "default", N_PIPELINES + 1);
    for (unsigned i = 0; i < N_TENANTS; i++) {
        (void)snprintf(name, sizeof name, "t%u", i);
        write_pipelines(dir, name, N_PIPELINES);
    }
    (void)snprintf(url, sizeof url, "sqlite:%s", temp_path(b, "trigger.db", path));
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        CHECK(setenv(settings[i][0], settings[i][1], 1) == 0);
    site_open(s, b, url, dir);
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        CHECK(unsetenv(settings[i][0]) == 0);
    int fd = connect_to(s);
    for (unsigned i = 0; i < N_TENANTS; i++) {
        (void)snprintf(body, sizeof body, "{\"id\":\"t%u\"}", i);
        ask(fd, s, "POST", "/admin/tenants", body, answer, sizeof answer);
        (void)snprintf(body, sizeof body, "{\"tenant\":\"t%u\",\"role\":\"write\"}", i);
        ask(fd, s, "POST", "/admin/api-keys", body, answer, sizeof answer);
        const char *key = told(answer, "\"key\":\"", &n);
        tenants[i]      = *s;
        (void)snprintf(tenants[i].key, sizeof tenants[i].key, "%.*s", n, key);
    }
    (void)snprintf(url, sizeof url, "/pipelines/run/p%d", N_PIPELINES);
    ask(fd, s, "POST", url, "", answer, sizeof answer);
    do
        ask(fd, s, "GET", "/pipelines/runs?status=RUNNING", "", answer, sizeof answer);
    while (strstr(answer, "\"RUNNING\"") == NULL);
    (void)close(fd);
}

/* ---- bursts ---------------------------------------------------------------------------------- */

/* Requests sent at once, each over its own connection. */
struct burst {
    const struct site *tenants;
    int                fds[N_ALL];
    bool               triggers; /* else acquires */
    unsigned           n_bursts;
    unsigned           n; /* so far: each has its own holders */
    struct samples     took;
    char               answers[N_ALL][ANSWER_BYTES];
};

enum kind {
    TRIGGER,
    CANCEL,
    ACQUIRE,
    RELEASE
};

static void
send_one(const struct burst *u, enum kind kind, unsigned i)
{
    char        path[128], body[256] = "{\"trigger_by\":\"bench\"}";
    const char *text;
    int         n = 0;

    switch (kind) {
    case TRIGGER:
        (void)snprintf(path, sizeof path, "/pipelines/run/p%u", i % N_PIPELINES);
        break;
    case CANCEL:
        text = told(u->answers[i], "\"pipeline_logging_id\":\"", &n);
        (void)snprintf(path, sizeof path, "/pipelines/runs/%.*s", n, text);
        (void)snprintf(body, sizeof body, "{}");
        break;
    case ACQUIRE:
        (void)snprintf(path, sizeof path, "/api/v1/locks/acquire");
        (void)snprintf(body, sizeof body,
                       "{\"key\":\"bench:%u\",\"holder\":\"w%u\",\"ttl_ms\":30000}", i, u->n);
        break;
    case RELEASE:
        text = told(u->answers[i], "\"fence\":", &n);
        (void)snprintf(path, sizeof path, "/api/v1/locks/release");
        (void)snprintf(body, sizeof body,
                       "{\"key\":\"bench:%u\",\"holder\":\"w%u\",\"fence\":%.*s}", i, u->n, n,
                       text);
        break;
    }
    ask(u->fds[i], &u->tenants[i / N_PIPELINES], kind == CANCEL ? "DELETE" : "POST", path, body,
        NULL, 0);
}

static void
send_all(struct burst *u, enum kind kind)
{
    for (unsigned i = 0; i < N_ALL; i++)
        send_one(u, kind, i);
    for (unsigned i = 0; i < N_ALL; i++) {
        ssize_t got = read(u->fds[i], u->answers[i], sizeof u->answers[i] - 1);
        if (got <= 0)
            die("no answer");
        u->answers[i][got] = '\0';
        if (strncmp(u->answers[i], "HTTP/1.1 200", 12) != 0)
            die("%s", u->answers[i]);
    }
}

static double
burst_round(void *cookie)
{
    struct burst *u       = cookie;
    int64_t       took_ns = 0;

    for (unsigned i = 0; i < u->n_bursts; i++) {
        int64_t start_ns = il__clock_boot_ns();
        send_all(u, u->triggers ? TRIGGER : ACQUIRE);
        int64_t ns = il__clock_boot_ns() - start_ns;
        samples_add(&u->took, ns);
        took_ns += ns;
        send_all(u, u->triggers ? CANCEL : RELEASE); /* a waiting run ends at once */
        u->n++;
    }
    return (double)u->n_bursts * N_ALL / ((double)took_ns / 1e9);
}

static void
bench_new(struct bench *b, const struct site tenants[N_TENANTS])
{
    struct result r      = { .name         = "http-trigger",
                             .what         = "320 triggers over HTTP at once, each a new run",
                             .against      = "320 acquires over HTTP at once, the same server",
                             .durability   = BENCH_FULL,
                             .unit         = UNIT_OPS_PER_S,
                             .wanted       = WANTED_RATIO_AT_LEAST,
                             .wanted_value = 0.5 };
    struct burst *bursts = must_calloc(2, sizeof *bursts);

    for (size_t i = 0; i < 2; i++) {
        bursts[i].tenants  = tenants;
        bursts[i].triggers = i == 0;
        bursts[i].n_bursts = b->quick ? 1 : N_BURSTS;
        for (size_t k = 0; k < N_ALL; k++)
            bursts[i].fds[k] = connect_to(&tenants[0]);
    }
    compare(&r, b->n_rounds, (struct side){ burst_round, &bursts[0] },
            (struct side){ burst_round, &bursts[1] });
    r.ours_latency     = samples_quantiles(&bursts[0].took);
    r.baseline_latency = samples_quantiles(&bursts[1].took);
    for (size_t i = 0; i < 2; i++) {
        samples_release(&bursts[i].took);
        for (size_t k = 0; k < N_ALL; k++)
            (void)close(bursts[i].fds[k]);
    }
    free(bursts);
    report_add(&b->report, &r);
}

/* ---- duplicates ------------------------------------------------------------------------------ */

/* Triggers that return an existing run, compared with acquires and releases on the same server,
 * each counted. */
static void
bench_join(struct bench *b, const struct site *site)
{
    struct result r = {
        .name         = "http-trigger-join",
        .what         = "triggers over HTTP, told of the run that is there, 64 connections, wrk",
        .against      = "acquires and releases over HTTP, the same server, each counted",
        .durability   = BENCH_FULL,
        .unit         = UNIT_OPS_PER_S,
        .wanted       = WANTED_RATIO_AT_LEAST,
        .wanted_value = 0.5
    };
    struct hammer hammers[2] = { { .site = site, .script = SCRIPT }, { .site = site } };
    char          number[16];

    for (size_t i = 0; i < 2; i++) {
        if (!program_find("wrk", hammers[i].wrk)) {
            report_leave_out(&b->report, r.name, "wrk is not installed");
            return;
        }
        (void)snprintf(hammers[i].seconds, sizeof hammers[i].seconds, "%ds", b->quick ? 1 : 2);
    }
    (void)snprintf(number, sizeof number, "%d", N_PIPELINES);
    CHECK(setenv("BENCH_PIPELINES", number, 1) == 0);
    compare(&r, b->n_rounds, (struct side){ hammer_requests, &hammers[0] },
            (struct side){ hammer_requests, &hammers[1] });
    r.ours_latency     = hammer_latency(&hammers[0]);
    r.baseline_latency = hammer_latency(&hammers[1]);
    report_add(&b->report, &r);
}

void
bench_http_trigger(struct bench *b, unsigned unused UNUSED)
{
    struct site site, tenants[N_TENANTS];
    char        path[BENCH_PATH_BYTES];

    open_sites(&site, tenants, b, path);
    bench_new(b, tenants);
    bench_join(b, &site);
    process_stop(&site.process);
    temp_remove_database(path);
}
