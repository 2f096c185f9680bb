/*
 * sqlite.c: pairs on the SQLite engine, with many concurrent callers and with one, compared with a
 * raw loop on a separate database in the same folder. Both databases are used for all rounds.
 */
#include "bench.h"
#include "load.h"
#include "raw.h"

#define N_KEYS 1024 /* of a single caller; the raw loop in any case */

static void
describe(struct result *r, unsigned n_threads)
{
    *r = (struct result){ .durability = BENCH_FULL,
                          .unit       = UNIT_PAIRS_PER_S,
                          .wanted     = WANTED_RATIO_AT_LEAST };
    if (n_threads > 1) {
        r->name         = "sqlite-64";
        r->what         = "acquire+release, one op per call, 64 threads on one handle";
        r->against      = "raw row lease, one thread, 32 pairs per transaction";
        r->wanted_value = 0.40;
    } else {
        r->name         = "sqlite-1";
        r->what         = "acquire+release, one op per call, one caller alone";
        r->against      = "raw row lease, one thread, two transactions per pair";
        r->wanted_value = 0.80;
    }
}

void
bench_sqlite(struct bench *b, unsigned n_threads)
{
    struct result r;
    char          path[BENCH_PATH_BYTES];
    char          raw_path[BENCH_PATH_BYTES];
    char          url[BENCH_PATH_BYTES + 16];

    CHECK(n_threads == 1 || n_threads == 64);
    describe(&r, n_threads);
    (void)temp_path(b, "pairs.db", path);
    (void)temp_path(b, "raw.db", raw_path);
    (void)snprintf(url, sizeof url, "sqlite:%s", path);
    il         *store = store_open(url, NULL);
    struct raw *raw   = raw_open(raw_path);
    struct load ours  = { .n_threads    = n_threads,
                          .n_keys       = n_threads > 1 ? 1 : N_KEYS,
                          .sample_every = 1,
                          .round_ns     = b->round_ns,
                          .step         = load_il_pair,
                          .cookie       = &store };
    struct load base  = { .n_threads    = 1,
                          .n_keys       = N_KEYS,
                          .sample_every = 1,
                          .round_ns     = b->round_ns,
                          .step         = n_threads > 1 ? raw_pairs : raw_pair,
                          .cookie       = raw };
    load_init(&ours);
    load_init(&base);
    compare(&r, b->n_rounds, (struct side){ load_side, &ours }, (struct side){ load_side, &base });
    r.ours_latency     = load_latency(&ours);
    r.baseline_latency = load_latency(&base);
    load_release(&ours);
    load_release(&base);
    il_close(store);
    raw_close(raw);
    temp_remove_database(path);
    temp_remove_database(raw_path);
    report_add(&b->report, &r);
}
