/*
 * http.c: the server, over loopback TCP: pairs with wrk, compared with bare libmicrohttpd
 * (http_bare.c); and the memory per connection and per waiter. Server, client and baseline share
 * the machine's CPUs.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"

#define N_CONNECTIONS "64"
#define N_IDLE 10000
#define N_IDLE_QUICK 50
#define LINE_BYTES 4096
#define WAITERS_BYTES_MAX (200.0 * 1024 * 1024)
#define SCRIPT BENCH_SOURCE "/wrk/pairs.lua"

/* ---- servers --------------------------------------------------------------------------------- */

/* Ours prints its address and, since there is none yet, the first key. */
static void
read_address(struct site *s)
{
    char line[LINE_BYTES];

    while (s->port == 0 || s->key[0] == '\0') {
        process_read_line(&s->process, line, sizeof line);
        const char *address = strstr(line, "http://127.0.0.1:");
        const char *key     = strstr(line, "sk_");
        if (address != NULL && sscanf(address, "http://127.0.0.1:%u", &s->port) != 1)
            die("interlock serve: %s", line);
        if (key != NULL)
            (void)snprintf(s->key, sizeof s->key, "%.*s",
                           (int)MIN(strcspn(key, " \"\n"), sizeof s->key - 1), key);
    }
}

void
site_open(struct site *s, const struct bench *b, const char *store, const char *pipelines)
{
    const char *const argv[] = { b->binary,      "serve",
                                 "--allow-root", "--listen",
                                 "127.0.0.1:0",  "--log-level",
                                 "error",        "--store",
                                 store,          pipelines != NULL ? "--pipelines" : NULL,
                                 pipelines,      NULL };

    *s = (struct site){ 0 };
    /* folders of runs: clean up afterwards */
    CHECK(setenv("INTERLOCK_RUN_DIR", b->dir, 1) == 0);
    s->process = process_start(argv, &(struct process_how){ .errors_too = true });
    read_address(s);
}

void
bare_open(struct site *s)
{
    static const char *const argv[] = { "/proc/self/exe", "--bare", NULL };
    char                     line[LINE_BYTES];

    *s         = (struct site){ .key = "none" };
    s->process = process_start(argv, &(struct process_how){ 0 });
    process_read_line(&s->process, line, sizeof line);
    if (sscanf(line, "%u", &s->port) != 1)
        die("the bare server says: %s", line);
}

/* ---- wrk ------------------------------------------------------------------------------------- */

/* "  99%    2.31ms" */
static int64_t
latency_of(const char *text, const char *percent)
{
    const char *at = strstr(text, percent);
    double      value;
    char        unit[8];

    if (at == NULL || sscanf(at + strlen(percent), "%lf%7s", &value, unit) != 2)
        return 0;
    double ns = strcmp(unit, "us") == 0 ? 1e3 : strcmp(unit, "ms") == 0 ? 1e6 : 1e9;
    return (int64_t)(value * ns);
}

double
hammer_round(void *cookie)
{
    struct hammer  *h = cookie;
    static unsigned n_rounds;
    char            url[64], round[16];
    char            out[8192];
    double          rate = 0;

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", h->site->port);
    const char *const argv[] = { h->wrk,
                                 "-t1",
                                 "-c" N_CONNECTIONS,
                                 "-d",
                                 h->seconds,
                                 "--latency",
                                 "-s",
                                 h->script != NULL ? h->script : SCRIPT,
                                 url,
                                 NULL };
    (void)snprintf(round, sizeof round, "%u", n_rounds++);
    CHECK(setenv("BENCH_KEY", h->site->key, 1) == 0 && setenv("BENCH_ROUND", round, 1) == 0);
    if (!process_run(argv, &(struct process_how){ 0 }, out, sizeof out))
        die("wrk: %s", out);
    const char *at = strstr(out, "Requests/sec:");
    if (at == NULL || sscanf(at, "Requests/sec: %lf", &rate) != 1 ||
        strstr(out, "Non-2xx") != NULL || strstr(out, "Socket errors") != NULL)
        die("wrk: %s", out);
    samples_add(&h->p50, latency_of(out, "50%"));
    samples_add(&h->p99, latency_of(out, "99%"));
    return rate / 2;
}

/* The same requests, each counted. */
double
hammer_requests(void *cookie)
{
    return 2 * hammer_round(cookie);
}

/* The median over the rounds. */
struct quantiles
hammer_latency(struct hammer *h)
{
    struct quantiles p50 = samples_quantiles(&h->p50);
    struct quantiles p99 = samples_quantiles(&h->p99);

    samples_release(&h->p50);
    samples_release(&h->p99);
    return (struct quantiles){
        .n = p50.n, .p50_ns = p50.p50_ns, .p99_ns = p99.p50_ns, .max_ns = p99.max_ns
    };
}

void
bench_http(struct bench *b, unsigned engine)
{
    bool          sqlite = engine == ENGINE_SQLITE;
    struct result r      = { .name         = sqlite ? "http-sqlite" : "http-memory",
                             .what         = "acquires and releases over HTTP, 64 connections, wrk",
                             .against      = "libmicrohttpd alone, answers of the same size",
                             .durability   = sqlite ? BENCH_FULL : BENCH_MEMORY,
                             .unit         = UNIT_PAIRS_PER_S,
                             .wanted       = WANTED_RATIO_AT_LEAST,
                             .wanted_value = sqlite ? 0.4 : 0.6 };
    struct site   ours, bare;
    struct hammer hammers[2] = { { .site = &ours }, { .site = &bare } };
    char          path[BENCH_PATH_BYTES], url[BENCH_PATH_BYTES + 16];

    if (!program_find("wrk", hammers[0].wrk)) {
        report_leave_out(&b->report, r.name, "wrk is not installed");
        return;
    }
    memcpy(hammers[1].wrk, hammers[0].wrk, sizeof hammers[1].wrk);
    for (size_t i = 0; i < 2; i++)
        (void)snprintf(hammers[i].seconds, sizeof hammers[i].seconds, "%ds", b->quick ? 1 : 2);
    (void)snprintf(url, sizeof url, "sqlite:%s", temp_path(b, "http.db", path));
    site_open(&ours, b, sqlite ? url : "memory:", NULL);
    bare_open(&bare);
    compare(&r, b->n_rounds, (struct side){ hammer_round, &hammers[0] },
            (struct side){ hammer_round, &hammers[1] });
    r.ours_latency     = hammer_latency(&hammers[0]);
    r.baseline_latency = hammer_latency(&hammers[1]);
    process_stop(&ours.process);
    process_stop(&bare.process);
    temp_remove_database(path);
    report_add(&b->report, &r);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static double
resident_bytes(const struct site *s)
{
    char     path[64];
    unsigned pages = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)s->process.pid);
    FILE *f = fopen(path, "re");
    if (f == NULL || fscanf(f, "%*u %u", &pages) != 1)
        die("%s cannot be read", path);
    (void)fclose(f); /* was only read from */
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

int
connect_to(const struct site *s)
{
    struct sockaddr_in to = { .sin_family      = AF_INET,
                              .sin_port        = htons((uint16_t)s->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)
        die("cannot connect: %s", strerror(errno));
    return fd;
}

/* Send a request and, if a response is expected, read it (it is short). */
void
ask(int fd, const struct site *s, const char *method, const char *path, const char *body,
    char *answer, size_t n_answer)
{
    char request[1024];
    int  n = snprintf(
         request, sizeof request,
         "%s %s HTTP/1.1\r\nHost: localhost\r\nX-API-Key: %s\r\nContent-Type: application/json\r\n"
          "Content-Length: %zu\r\n\r\n%s",
         method, path, s->key, strlen(body), body);

    if (n < 0 || (size_t)n >= sizeof request || write(fd, request, (size_t)n) != n)
        die("cannot send a request");
    if (answer == NULL)
        return;
    ssize_t got = read(fd, answer, n_answer - 1);
    if (got <= 0)
        die("no answer to %s", path);
    answer[got] = '\0';
}

/* The current number of waiters, as reported by the server. */
static unsigned
count_waiters(int fd, const struct site *s)
{
    char     answer[16384];
    unsigned n = 0;

    ask(fd, s, "GET", "/api/v1/status", "", answer, sizeof answer);
    const char *at = strstr(answer, "\"waiters\":");
    if (at == NULL || sscanf(at, "\"waiters\":%u", &n) != 1)
        die("the status says nothing of waiters: %s", answer);
    return n;
}

void
allow_descriptors(void)
{
    struct rlimit limit;

    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void
add_memory(struct bench *b, const char *name, const char *what, double bytes, double at_most)
{
    struct result r = { .name         = name,
                        .what         = what,
                        .durability   = BENCH_MEMORY,
                        .unit         = UNIT_BYTES,
                        .wanted       = at_most > 0 ? WANTED_BYTES_AT_MOST : WANTED_NOTHING,
                        .wanted_value = at_most,
                        .n_rounds     = 1,
                        .ours         = { bytes } };

    report_add(&b->report, &r);
}

void
bench_http_waiters(struct bench *b, unsigned unused UNUSED)
{
    unsigned    n   = b->quick ? N_IDLE_QUICK : N_IDLE;
    int        *fds = must_calloc(n, sizeof *fds);
    char        answer[4096], body[256];
    struct site s;

    allow_descriptors();
    site_open(&s, b, "memory:", NULL);
    int control = connect_to(&s);
    ask(control, &s, "POST", "/api/v1/locks/acquire", "{\"key\":\"bench\",\"holder\":\"first\"}",
        answer, sizeof answer);
    double before = resident_bytes(&s);
    for (unsigned i = 0; i < n; i++)
        fds[i] = connect_to(&s);
    (void)count_waiters(control, &s); /* all of them have been accepted by now */
    double idle = resident_bytes(&s);
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(body, sizeof body,
                       "{\"key\":\"bench\",\"holder\":\"waiter-%u\",\"wait_ms\":60000}", i);
        ask(fds[i], &s, "POST", "/api/v1/locks/acquire", body, NULL, 0);
    }
    while (count_waiters(control, &s) < n)
        (void)usleep(20000);
    double waiting = resident_bytes(&s);
    add_memory(b, "http-idle", "memory of an idle connection", (idle - before) / n, 0);
    add_memory(b, "http-waiter", "memory of a connection that waits for a key",
               (waiting - before) / n, 0);
    add_memory(b, "http-waiters",
               "memory of the server with 10,000 connections that wait for one key", waiting,
               b->quick ? 0 : WAITERS_BYTES_MAX);
    for (unsigned i = 0; i < n; i++)
        (void)close(fds[i]);
    (void)close(control);
    process_stop(&s.process);
    free(fds);
}
