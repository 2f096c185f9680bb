/*
 * memory.c: pairs on the memory engine, compared with a mutex and a hash table.
 *
 * The engine remembers ended leases for a minute, so a store used for all rounds would only measure
 * memory allocation from the system. Each round has a new store, opened and closed outside the
 * measured time; what it remembers within the round is part of the cost.
 */
#include "bench.h"
#include "load.h"
#include "table.h"

#define N_KEYS 1024
#define SAMPLE_EVERY 64 /* reading the clock twice costs as much as a baseline pair */

struct memory {
    il                      *store;
    const struct table_kind *kind;
    void                    *table;
    struct load              ours;
    struct load              baseline;
};

static double
round_of_ours(void *cookie)
{
    struct memory *m = cookie;

    m->store      = store_open("memory:", NULL);
    double result = load_round(&m->ours);
    il_close(m->store);
    return result;
}

static double
round_of_table(void *cookie)
{
    struct memory *m = cookie;

    m->table      = m->kind->new ();
    double result = load_round(&m->baseline);
    m->kind->free(m->table);
    return result;
}

static unsigned
table_pair(void *cookie, struct caller *c)
{
    struct memory *m = cookie;

    if (!m->kind->acquire(m->table, c->names.key, c->names.holder) ||
        !m->kind->release(m->table, c->names.key, c->names.holder))
        die("the table has lost %s", c->names.key);
    names_next(&c->names);
    return 1;
}

static void
measure(struct bench *b, unsigned n_threads, struct result r, const struct table_kind *kind)
{
    struct memory m = { .kind = kind };

    CHECK(n_threads == 1 || n_threads == 2);
    m.ours            = (struct load){ .n_threads    = n_threads,
                                       .n_keys       = N_KEYS,
                                       .sample_every = SAMPLE_EVERY,
                                       .round_ns     = b->round_ns / 2,
                                       .one_per_cpu  = n_threads > 1,
                                       .step         = load_il_pair,
                                       .cookie       = &m.store };
    m.baseline        = m.ours;
    m.baseline.step   = table_pair;
    m.baseline.cookie = &m;
    load_init(&m.ours);
    load_init(&m.baseline);
    struct side ours     = { round_of_ours, &m };
    struct side baseline = { round_of_table, &m };
    compare(&r, b->n_rounds, ours, baseline);
    r.ours_latency     = load_latency(&m.ours);
    r.baseline_latency = load_latency(&m.baseline);
    load_release(&m.ours);
    load_release(&m.baseline);
    report_add(&b->report, &r);
}

void
bench_memory(struct bench *b, unsigned n_threads)
{
    struct result r = {
        .name         = n_threads == 1 ? "memory-1" : "memory-2",
        .what         = n_threads == 1 ? "acquire+release, one op per call, 1 thread"
                                       : "acquire+release, one op per call, 2 threads, 2 CPUs",
        .against      = "one mutex and GLib's hash table of names",
        .durability   = BENCH_MEMORY,
        .unit         = UNIT_PAIRS_PER_S,
        .wanted       = WANTED_RATIO_AT_LEAST,
        .wanted_value = 0.25,
    };

    measure(b, n_threads, r, &table_glib);
    r.name    = n_threads == 1 ? "memory-1-lean" : "memory-2-lean";
    r.against = "one mutex and a table made for this loop";
    r.wanted  = WANTED_NOTHING;
    measure(b, n_threads, r, &table_lean);
}
