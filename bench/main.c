/*
 * main.c: interlock-bench: parses options and runs the areas one after another.
 */
#include <errno.h>
#include <getopt.h>
#include <unistd.h>

#include "http_bare.h"
#include "servers.h"

#define EXIT_USAGE 64

static const struct area {
    const char *name;
    void (*run)(struct bench *b, unsigned which);
    unsigned    which;
    bool        needs_binary;
    const char *text;
} areas[] = {
    { "memory-1", bench_memory, 1, false, "pairs on memory, 1 thread" },
    { "memory-2", bench_memory, 2, false, "pairs on memory, 2 threads" },
    { "sqlite-64", bench_sqlite, 64, false, "pairs on SQLite, 64 threads" },
    { "sqlite-1", bench_sqlite, 1, false, "pairs on SQLite, one caller alone" },
    { "postgres-8", bench_postgres, 8, false, "pairs on PostgreSQL, 8 threads, against pgbench" },
    { "postgres-64", bench_postgres, 64, false,
      "pairs on PostgreSQL, 64 threads, against pgbench" },
    { "postgres-snapshot", bench_postgres_snapshot, 0, false, "the same beside an old snapshot" },
    { "guard-sqlite", bench_guard, false, false,
      "guarded transactions on SQLite, against the same by hand" },
    { "guard-postgres", bench_guard, true, false, "the same on PostgreSQL" },
    { "campus-enroll-sqlite", bench_campus, 0, false, "enrollments on SQLite, against by hand" },
    { "campus-enroll-postgres", bench_campus, CAMPUS_ROW_POSTGRES, false, "on PostgreSQL" },
    { "campus-hold-sqlite", bench_campus, CAMPUS_ROW_HOLD, false,
      "lock of a license in a finalization, on SQLite" },
    { "campus-hold-postgres", bench_campus, CAMPUS_ROW_HOLD | CAMPUS_ROW_POSTGRES, false,
      "the same on PostgreSQL" },
    { "redis-1", bench_redis, 0, false, "pairs on Redis, against SET NX PX and a script" },
    { "redis-16", bench_redis, 1, false, "the same in batches of 16" },
    { "redis-aof", bench_redis, 2, false, "the same with appendfsync always" },
    { "grow-memory", bench_grow, ENGINE_MEMORY, false, "memory with 1,000,000 leases against few" },
    { "grow-sqlite", bench_grow, ENGINE_SQLITE, false, "SQLite with 1,000,000 leases against few" },
    { "grow-raw", bench_grow_raw, 0, false, "the same with raw SQLite" },
    { "cache-hit", bench_cache, 0, false, "hits of the cache, on memory and on SQLite" },
    { "queue-push", bench_queue, false, false, "pushes of jobs in batches, against raw SQLite" },
    { "queue-claim", bench_queue, true, false,
      "claims and finishes in batches, against raw SQLite" },
    { "queue-history", bench_queue_history, 0, false, "jobs beside 1,000,000 finished ones" },
    { "queue-beanstalkd", bench_queue_beanstalkd, 0, false, "jobs, beside beanstalkd" },
    { "queue-postgres", bench_queue_postgres, 0, false,
      "jobs on PostgreSQL, beside graphile-worker and pg-boss" },
    { "queue-redis", bench_queue_redis, 0, false, "jobs on Redis, beside BullMQ" },
    { "http-memory", bench_http, ENGINE_MEMORY, true, "pairs over HTTP, against a bare server" },
    { "http-sqlite", bench_http, ENGINE_SQLITE, true, "the same on SQLite" },
    { "http-trigger", bench_http_trigger, 0, true,
      "triggers of pipelines over HTTP, against acquires" },
    { "http-waiters", bench_http_waiters, 0, true, "memory of connections that wait" },
    { "usage", bench_usage, 0, true,
      "the usage cache: hits over HTTP, a crowd, a lease, counters" },
    { "run", bench_start, 0, true, "interlock run against flock(1)" },
    { "ingest-parse", bench_ingest_parse, 0, false, "parsing a race page of LiveRC" },
    { "ingest-persist-sqlite", bench_ingest_persist, false, false,
      "writing a large event on SQLite, against inserts by hand" },
    { "ingest-persist-postgres", bench_ingest_persist, true, false, "the same on PostgreSQL" },
    { "command", bench_command, 0, true, "a command of a server, against posix_spawn()" },
    { "run-start", bench_run, 0, true, "starting a pipeline of one step, against posix_spawn()" },
    { "run-whole", bench_run, 1, true, "the same to the run's end" },
    { "handover-sqlite", bench_handover, ENGINE_SQLITE, false, "release to next process" },
    { "handover-memory", bench_handover, ENGINE_MEMORY, false, "release to next thread" },
};

static void
usage(FILE *f)
{
    (void)fputs("usage: interlock-bench [--binary PATH] [--json FILE] [--only NAME] [--peers DIR] "
                "[--quick]\n"
                "\n"
                "Measures the library beside bare loops that do the same work by hand, in turn, "
                "and prints the\n"
                "ratios. Exit status 0 also when one is MISSED: machines are noisy.\n"
                "\n"
                "  --binary PATH  the interlock to start\n"
                "  --json FILE    write the results there too\n"
                "  --only NAME    only what starts with NAME\n"
                "  --peers DIR    keep the npm packages there, for the next run\n"
                "  --quick        see that it works; the numbers mean nothing\n"
                "\n",
                f);
    for (size_t i = 0; i < ARRAY_LEN(areas); i++)
        (void)fprintf(f, "  %-24s %s\n", areas[i].name, areas[i].text);
}

static bool
is_wanted(const struct bench *b, const struct area *a)
{
    return b->only == NULL || strncmp(a->name, b->only, strlen(b->only)) == 0;
}

static void
refuse(const char *what, const char *name)
{
    (void)fprintf(stderr, "interlock-bench: %s%s\n", what, name);
    exit(EXIT_USAGE);
}

static void
parse(struct bench *b, int argc, char **argv)
{
    static const struct option options[] = {
        { "binary", required_argument, NULL, 'b' },
        { "json", required_argument, NULL, 'j' },
        { "only", required_argument, NULL, 'o' },
        { "peers", required_argument, NULL, 'p' },
        { "quick", no_argument, NULL, 'q' },
        { "waiter", required_argument, NULL, 'w' },
        { "bare", no_argument, NULL, 'e' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'b':
            b->binary = optarg;
            break;
        case 'j':
            b->json = optarg;
            break;
        case 'o':
            b->only = optarg;
            break;
        case 'p':
            b->peers = optarg;
            break;
        case 'q':
            b->quick = true;
            break;
        case 'w':
            exit(bench_handover_waiter(optarg));
        case 'e':
            exit(http_bare_main());
        case 'h':
            usage(stdout);
            exit(0);
        default:
            exit(EXIT_USAGE); /* getopt_long() has printed the reason */
        }
    }
    if (optind < argc)
        refuse("unexpected argument ", argv[optind]);
    unsigned n_wanted = 0;
    for (size_t i = 0; i < ARRAY_LEN(areas); i++) {
        n_wanted += is_wanted(b, &areas[i]);
        if (is_wanted(b, &areas[i]) && areas[i].needs_binary && b->binary == NULL)
            refuse("--binary PATH is needed for ", areas[i].name);
    }
    if (n_wanted == 0)
        refuse("there is no benchmark that starts with ", b->only);
}

/* Better fail now than after two minutes. */
static void
check_json(const char *path)
{
    FILE *f = fopen(path, "ae");

    if (f == NULL)
        refuse(path, ": cannot be written");
    (void)fclose(f); /* nothing was written */
}

int
main(int argc, char **argv)
{
    struct bench b        = { 0 };
    bool         progress = isatty(STDERR_FILENO) != 0 && isatty(STDOUT_FILENO) == 0;

    if (argc == 2 && strcmp(argv[1], "spawner") == 0)
        return bench_spawner();
    parse(&b, argc, argv);
    if (b.json != NULL)
        check_json(b.json);
    b.n_rounds = b.quick ? 2 : 7;
    b.round_ns = b.quick ? BENCH_NS_PER_S / 50 : BENCH_NS_PER_S;
    b.dir      = temp_make();
    report_begin(&b.report, b.dir, b.quick);
    for (size_t i = 0; i < ARRAY_LEN(areas); i++) {
        if (!is_wanted(&b, &areas[i]))
            continue;
        if (progress)
            (void)fprintf(stderr, "%s: %s\n", areas[i].name, areas[i].text);
        areas[i].run(&b, areas[i].which);
    }
    servers_stop(&b);
    report_end(&b.report);
    if (b.json != NULL && !report_write_json(&b.report, b.json))
        die("%s: %s", b.json, strerror(errno));
    temp_remove();
    return 0;
}
