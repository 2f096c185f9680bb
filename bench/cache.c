/*
 * cache.c: cache hits: time to get a value, including the release of the answer. There is no
 * baseline: the target is a number of hits per second and thread.
 */
#include "bench.h"
#include "load.h"

#define N_KEYS 1000
#define VALUE_BYTES 100
#define DAY_MS 86400000
#define HITS_WANTED 1000000.0 /* per second and thread */

struct hits {
    il        *store;
    il_op_type type;
};

static unsigned
hit(void *cookie, struct caller *c)
{
    struct hits *h  = cookie;
    il_op        op = { .type = h->type, .key = c->names.key, .holder = c->names.holder };

    /* as a caller would: an early refresh is never due */
    op.in.cache.chance = 0x9E3779B9;
    must(il_apply(h->store, &op, 1, &c->err), "a look-up", &c->err);
    if (op.status != IL_HIT || op.out.value_bytes != VALUE_BYTES)
        die("%s: %s instead of a hit", c->names.key, il_status_name(op.status));
    il_op_release(&op);
    names_next(&c->names);
    return 1;
}

/* Give each caller's keys a value, with il_apply() in batches. */
static void
fill(const struct hits *h, const struct names *first, unsigned n_keys)
{
    static const char value[VALUE_BYTES] = "a value of 100 bytes";
    struct names      n                  = *first;
    il_error          err                = { 0 };

    for (unsigned i = 0; i < n_keys; i++, names_next(&n)) {
        il_op op = { .type = IL_OP_CACHE_LOOKUP, .key = n.key, .holder = "builder" };
        must(il_apply(h->store, &op, 1, &err), "a look-up", &err);
        uint64_t token = op.out.fence;
        il_op_release(&op);
        op = (il_op){ .type = IL_OP_CACHE_FILL, .key = n.key, .holder = "builder", .fence = token };
        op.in.cache =
            (il_cache_in){ .value = value, .value_bytes = sizeof value, .ttl_ms = DAY_MS };
        must(il_apply(h->store, &op, 1, &err), "a fill", &err);
        if (op.status != IL_OK)
            die("%s: %s", n.key, il_status_name(op.status));
        il_op_release(&op);
    }
}

static void
measure(struct bench *b, struct result *r, struct hits *h, unsigned n_threads, unsigned n_keys)
{
    struct load load = { .n_threads    = n_threads,
                         .n_keys       = n_keys,
                         .sample_every = 64,
                         .round_ns     = b->round_ns / 2,
                         .one_per_cpu  = n_threads > 1,
                         .step         = hit,
                         .cookie       = h };

    load_init(&load);
    for (unsigned i = 0; i < n_threads; i++)
        fill(h, &load.callers[i].names, n_keys);
    (void)load_round(&load); /* warms the caches */
    for (unsigned i = 0; i < b->n_rounds; i++)
        r->ours[i] = load_round(&load) / n_threads;
    r->n_rounds     = b->n_rounds;
    r->ours_latency = load_latency(&load);
    load_release(&load);
    report_add(&b->report, r);
}

static void
measure_memory(struct bench *b, unsigned n_threads)
{
    struct hits   h = { .store = store_open("memory:", NULL), .type = IL_OP_CACHE_LOOKUP };
    struct result r = {
        .name         = n_threads == 1 ? "cache-hit" : "cache-hit-2",
        .what         = n_threads == 1
                            ? "CACHE_LOOKUP hits and their release, 1,000 keys, 100 bytes, 1 thread"
                            : "the same by 2 threads, each on its CPU; hits per second and thread",
        .durability   = BENCH_MEMORY,
        .unit         = UNIT_OPS_PER_S,
        .wanted       = n_threads == 1 ? WANTED_RATE_AT_LEAST : WANTED_NOTHING,
        .wanted_value = HITS_WANTED,
    };

    measure(b, &r, &h, n_threads, N_KEYS);
    il_close(h.store);
}

static void
measure_sqlite(struct bench *b)
{
    struct result r = {
        .name       = "cache-hit-sqlite",
        .what       = "CACHE_GET hits and their release, through the read connection, 1 thread",
        .durability = BENCH_FULL,
        .unit       = UNIT_OPS_PER_S
    };
    char path[BENCH_PATH_BYTES];
    char url[BENCH_PATH_BYTES + 16];

    (void)temp_path(b, "cache.db", path);
    (void)snprintf(url, sizeof url, "sqlite:%s", path);
    struct hits h = { .store = store_open(url, NULL), .type = IL_OP_CACHE_GET };
    measure(b, &r, &h, 1, b->quick ? 10 : N_KEYS); /* filling takes two commits each */
    il_close(h.store);
    temp_remove_database(path);
}

void
bench_cache(struct bench *b, unsigned unused UNUSED)
{
    measure_memory(b, 1);
    measure_memory(b, 2);
    measure_sqlite(b);
}
