/*
 * postgres.c: pairs on the PostgreSQL engine, compared with pgbench and a hand-written row lease on
 * the same server; and compared with itself next to an old snapshot. Databases are used for all
 * rounds.
 */
#include <pthread.h>
#include <stdio.h>

#include "load.h"
#include "servers.h"

#include "bench_sql.inc"

#define N_KEYS 1024 /* of a caller */
#define N_CLIENTS "8"
#define ROUND_S 2 /* pgbench counts in seconds, and reconnects for each round */
#define SNAPSHOT_CALLERS 8
#define SNAPSHOT_S 60

/* ---- pgbench --------------------------------------------------------------------------------- */

struct pgbench {
    struct bench   *b;
    struct database database;
    char            program[BENCH_PATH_BYTES];
};

static double
pgbench_round(void *cookie)
{
    static const char key[] = "tps = ";
    struct pgbench   *p     = cookie;
    char              seconds[8];
    char              text[8192];

    (void)snprintf(seconds, sizeof seconds, "%d", ROUND_S);
    const char *const argv[] = { p->program,
                                 "-n",
                                 "-c",
                                 N_CLIENTS,
                                 "-j",
                                 "2",
                                 p->b->quick ? "-t" : "-T",
                                 p->b->quick ? "10" : seconds,
                                 "-f",
                                 BENCH_SOURCE "/sql/lease.pgbench",
                                 "-h",
                                 postgres_dir(p->b),
                                 "-U",
                                 "postgres",
                                 p->database.name,
                                 NULL };
    if (!process_run(argv, &(struct process_how){ 0 }, text, sizeof text))
        die("pgbench: %s", text);
    const char *tps  = strstr(text, key);
    double      rate = tps != NULL ? strtod(tps + strlen(key), NULL) : 0;
    if (rate <= 0)
        die("pgbench says no tps: %s", text);
    return rate;
}

void
bench_postgres(struct bench *b, unsigned n_threads)
{
    struct result  r    = { .name         = n_threads == 8 ? "postgres-8" : "postgres-64",
                            .what         = n_threads == 8 ? "acquire+release, 8 threads"
                                                           : "acquire+release, 64 threads",
                            .against      = "pgbench -c 8 -j 2: insert on conflict, then delete",
                            .durability   = BENCH_POSTGRES,
                            .unit         = UNIT_PAIRS_PER_S,
                            .wanted       = WANTED_RATIO_AT_LEAST,
                            .wanted_value = n_threads == 8 ? 0.8 : 2 };
    struct pgbench peer = { .b = b };
    const char    *why;

    CHECK(n_threads == 8 || n_threads == 64);
    if (!postgres_ready(b, &why) ||
        (!program_find("pgbench", peer.program) && (why = "pgbench is not installed"))) {
        report_leave_out(&b->report, r.name, why);
        return;
    }
    peer.database            = postgres_database(b, 1);
    struct database database = postgres_database(b, 0);
    PGconn         *c        = postgres_connect(b, peer.database.name);
    postgres_exec(c, sql_lease_create);
    PQfinish(c);
    struct kept store = store_open_kept(database.url);
    struct load ours  = { .n_threads    = n_threads,
                          .n_keys       = N_KEYS,
                          .sample_every = 1,
                          .round_ns     = b->round_ns * ROUND_S,
                          .step         = load_il_pair,
                          .cookie       = &store.h };
    load_init(&ours);
    compare(&r, b->n_rounds, (struct side){ load_side, &ours },
            (struct side){ pgbench_round, &peer });
    r.ours_latency = load_latency(&ours);
    load_release(&ours);
    store_close_kept(&store);
    postgres_drop(b, &database);
    postgres_drop(b, &peer.database);
    report_add(&b->report, &r);
}

/* ---- beside an old snapshot ------------------------------------------------------------------ */

/* A database with its load: callers with their own keys, and one caller with one hot key. A
 * snapshot only holds back vacuum in its own database, so one with and one without can be measured
 * alternately. */
struct site {
    struct database database;
    struct kept     store;
    struct load     spread;
    struct load     hot;
};

static void
site_open(struct bench *b, struct site *s, unsigned i)
{
    s->database        = postgres_database(b, i);
    s->store           = store_open_kept(s->database.url);
    s->spread          = (struct load){ .n_threads    = SNAPSHOT_CALLERS,
                                        .n_keys       = N_KEYS,
                                        .sample_every = 1,
                                        .step         = load_il_pair,
                                        .cookie       = &s->store.h };
    s->hot             = s->spread;
    s->hot.n_threads   = 1;
    s->hot.n_keys      = 1;
    s->hot.i_first     = SNAPSHOT_CALLERS;
    s->spread.round_ns = s->hot.round_ns = b->quick ? b->round_ns : SNAPSHOT_S * BENCH_NS_PER_S;
    load_init(&s->spread);
    load_init(&s->hot);
}

static void
site_close(struct bench *b, struct site *s)
{
    load_release(&s->spread);
    load_release(&s->hot);
    store_close_kept(&s->store);
    postgres_drop(b, &s->database);
}

static void *
load_main(void *cookie)
{
    (void)load_round(cookie); /* the speed does not matter here */
    return NULL;
}

/* Run both loads at once until the snapshot is old enough; after that their rounds have the usual
 * length. */
static void
site_age(const struct bench *b, struct site *s)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, load_main, &s->hot) != 0)
        die("cannot start a thread");
    (void)load_main(&s->spread);
    CHECK(pthread_join(thread, NULL) == 0);
    load_forget_latency(&s->spread);
    load_forget_latency(&s->hot);
    s->spread.round_ns = s->hot.round_ns = b->round_ns;
}

static void
measure_sites(struct bench *b, struct result r, struct load *with, struct load *without)
{
    compare(&r, b->n_rounds, (struct side){ load_side, with }, (struct side){ load_side, without });
    r.ours_latency     = load_latency(with);
    r.baseline_latency = load_latency(without);
    report_add(&b->report, &r);
}

void
bench_postgres_snapshot(struct bench *b, unsigned unused UNUSED)
{
    struct result r       = { .name         = "postgres-snapshot",
                              .what         = "acquire+release, 8 threads, beside an old snapshot",
                              .against      = "ours without the snapshot, in another database",
                              .durability   = BENCH_POSTGRES,
                              .unit         = UNIT_PAIRS_PER_S,
                              .wanted       = WANTED_RATIO_AT_LEAST,
                              .wanted_value = 0.8 };
    struct site   with    = { 0 };
    struct site   without = { 0 };
    const char   *why;

    if (!postgres_ready(b, &why)) {
        report_leave_out(&b->report, "postgres-snapshot", why);
        report_leave_out(&b->report, "postgres-snapshot-hot", why);
        return;
    }
    site_open(b, &without, 1);
    site_age(b, &without);
    site_open(b, &with, 0);
    PGconn *c = postgres_connect(b, with.database.name);
    postgres_exec(c, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    postgres_exec(c, "SELECT count(*) FROM pg_class"); /* from here on it sees the current state */
    site_age(b, &with);
    measure_sites(b, r, &with.spread, &without.spread);
    r.name = "postgres-snapshot-hot";
    r.what = "acquire+release of one key, one caller, beside that snapshot";
    measure_sites(b, r, &with.hot, &without.hot);
    postgres_exec(c, "COMMIT");
    PQfinish(c);
    site_close(b, &with);
    site_close(b, &without);
}
