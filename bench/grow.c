/*
 * grow.c: does the cost grow with the amount of data? The same work alternately on a store with
 * 1,000,000 live leases and on one with 100: single pairs, pairs in batches, and sweeps.
 *
 * The keys of the pairs are scattered among the live ones, and their leases expire before those:
 * the worst case for a tree and for a heap. (On SQLite any program then writes a page for each key;
 * grow_raw.c measures how much a raw loop slows down.) The stores use a clock that follows the
 * machine's and can be advanced, so that leases expire and ended ones are forgotten without
 * waiting.
 */
#include <stdatomic.h>

#include "bench.h"
#include "load.h"

#define LIVE_TTL_MS IL_TTL_MS_MAX /* outlives the run */
#define FEW_LIVE 100
#define FEW_LIVE_SWEEP 1000
#define N_EXPIRED 1000 /* and the bound of a sweep */
#define N_BATCH 100
#define FORGET_MS 180000 /* after this ended leases are forgotten */
#define KEY_BYTES 40

struct store {
    il                *h;
    _Atomic int64_t    ahead_ms; /* offset to the machine's clock */
    il_clock           clock;
    unsigned           n_live;
    uint64_t           n_names;     /* holders created so far; makes every name unique */
    uint64_t           n_forgotten; /* of those, live ones included */
    uint64_t           random;
    bool               in_order; /* new keys adjacent, like sequential ids; else scattered */
    char               path[BENCH_PATH_BYTES]; /* "" for memory */
    const struct plan *plan;
};

/* Sizes by engine. */
struct plan {
    enum bench_engine engine;
    unsigned          n_live;
    unsigned          n_singles; /* hundreds of pairs of a round, one by one */
    unsigned          n_batches; /* of a round, of a hundred pairs */
};

/* A batch under construction, with its names. */
struct batch {
    il_op    ops[IL_BATCH_OPS_MAX];
    uint64_t fences[IL_BATCH_OPS_MAX];
    char     keys[IL_BATCH_OPS_MAX][KEY_BYTES];
    char     holders[IL_BATCH_OPS_MAX][KEY_BYTES];
    size_t   n;
    il_error err;
};

/* ---- the clock ------------------------------------------------------------------------------- */

static int64_t
boot_ms(void *cookie)
{
    const struct store *s = cookie;

    return il__clock_boot_ns() / IL__NS_PER_MS + atomic_load(&s->ahead_ms);
}

static int64_t
wall_ms(void *cookie)
{
    const struct store *s = cookie;

    return il__clock_wall_ms() + atomic_load(&s->ahead_ms);
}

static const char *
boot_id(void *cookie UNUSED)
{
    return "bench";
}

/* ---- batches --------------------------------------------------------------------------------- */

static uint64_t
next_random(struct store *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return s->random;
}

/* Add an acquire. Live keys are numbers; `beside` makes a key that sorts right after that
 * number. */
static void
add_acquire(struct batch *b, struct store *s, uint64_t number, bool beside, int64_t ttl_ms)
{
    size_t i = b->n++;

    CHECK(i < IL_BATCH_OPS_MAX);
    s->n_names++;
    if (beside)
        (void)snprintf(b->keys[i], KEY_BYTES, "grow:%08llu-%010llu", (unsigned long long)number,
                       (unsigned long long)s->n_names);
    else
        (void)snprintf(b->keys[i], KEY_BYTES, "grow:%08llu", (unsigned long long)number);
    (void)snprintf(b->holders[i], KEY_BYTES, "holder-%012llu", (unsigned long long)s->n_names);
    b->ops[i] = (il_op){ .type = IL_OP_ACQUIRE, .key = b->keys[i], .holder = b->holders[i] };
    b->ops[i].in.lock.ttl_ms = ttl_ms;
}

static void
add_pairs(struct batch *b, struct store *s, size_t n, int64_t ttl_ms)
{
    for (size_t i = 0; i < n; i++)
        add_acquire(b, s, s->in_order ? s->n_live : next_random(s) % s->n_live, true, ttl_ms);
}

static void
acquire_some(struct batch *b, struct store *s, size_t first, size_t n)
{
    store_apply(s->h, b->ops + first, n, b->fences + first, &b->err);
}

static void
release_some(struct batch *b, struct store *s, size_t first, size_t n)
{
    for (size_t i = first; i < first + n; i++) {
        b->ops[i].type  = IL_OP_RELEASE;
        b->ops[i].fence = b->fences[i];
    }
    store_apply(s->h, b->ops + first, n, NULL, &b->err);
}

/*
 * Create live leases up to `n`. Every second key first and then those in between, so that tree
 * pages fill up as with random keys, but at the speed of sorted keys.
 */
static void
fill(struct store *s, unsigned n)
{
    struct batch *b = must_calloc(1, sizeof *b);

    for (unsigned odd = 0; odd < 2; odd++) {
        for (unsigned i = s->n_live + (s->n_live + odd) % 2; i < n; i += 2) {
            add_acquire(b, s, i, false, LIVE_TTL_MS);
            if (b->n == IL_BATCH_OPS_MAX) {
                acquire_some(b, s, 0, b->n);
                b->n = 0;
            }
        }
    }
    if (b->n > 0)
        acquire_some(b, s, 0, b->n);
    free(b);
    s->n_live      = n;
    s->n_forgotten = s->n_names;
}

static il_op
sweep(struct store *s)
{
    il_error err = { 0 };
    il_op    op  = { .type = IL_OP_SWEEP };

    op.in.list.limit = N_EXPIRED;
    must(il_apply(s->h, &op, 1, &err), "sweep", &err);
    must(op.status, "sweep", &err);
    il_op result = op; /* its numbers; a sweep has none */
    il_op_release(&op);
    return result;
}

/* Make the store forget all leases that have ended since the last time. Not measured. */
static void
forget(struct store *s)
{
    atomic_fetch_add(&s->ahead_ms, FORGET_MS);
    for (; s->n_forgotten < s->n_names; s->n_forgotten += N_EXPIRED)
        IGNORE(sweep(s).status); /* checked already */
}

/* ---- rounds: ns per pair, ns per sweep ------------------------------------------------------- */

/* Names are generated beforehand, a batch at a time, so that only the store is measured. */
static double
round_one_by_one(void *cookie)
{
    struct store *s       = cookie;
    struct batch *b       = must_calloc(1, sizeof *b);
    int64_t       took_ns = 0;

    for (unsigned i = 0; i < s->plan->n_singles; i++) {
        add_pairs(b, s, N_BATCH, IL_TTL_MS_DEFAULT);
        int64_t start_ns = il__clock_boot_ns();
        for (size_t j = 0; j < N_BATCH; j++) {
            acquire_some(b, s, j, 1);
            release_some(b, s, j, 1);
        }
        took_ns += il__clock_boot_ns() - start_ns;
        b->n = 0;
    }
    free(b);
    forget(s);
    return (double)took_ns / (s->plan->n_singles * N_BATCH);
}

static double
round_in_batches(void *cookie)
{
    struct store *s       = cookie;
    struct batch *b       = must_calloc(1, sizeof *b);
    int64_t       took_ns = 0;

    for (unsigned i = 0; i < s->plan->n_batches; i++) {
        add_pairs(b, s, N_BATCH, IL_TTL_MS_DEFAULT);
        int64_t start_ns = il__clock_boot_ns();
        acquire_some(b, s, 0, N_BATCH);
        release_some(b, s, 0, N_BATCH);
        took_ns += il__clock_boot_ns() - start_ns;
        b->n = 0;
    }
    free(b);
    forget(s);
    return (double)took_ns / (s->plan->n_batches * N_BATCH);
}

static double
round_of_sweep(void *cookie)
{
    struct store *s = cookie;
    struct batch *b = must_calloc(1, sizeof *b);

    add_pairs(b, s, N_EXPIRED, IL_TTL_MS_MIN);
    acquire_some(b, s, 0, N_EXPIRED);
    free(b);
    atomic_fetch_add(&s->ahead_ms, 2 * IL_TTL_MS_MIN);
    int64_t start_ns = il__clock_boot_ns();
    il_op   op       = sweep(s);
    int64_t took_ns  = il__clock_boot_ns() - start_ns;
    if (op.out.sweep.n_expired != N_EXPIRED)
        die("a sweep ended %u of %d leases", op.out.sweep.n_expired, N_EXPIRED);
    forget(s);
    return (double)took_ns;
}

/* ---- both stores ----------------------------------------------------------------------------- */

static void
open_store(struct store *s, const struct bench *b, const struct plan *plan, const char *name)
{
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    char         url[BENCH_PATH_BYTES + 32];

    *s       = (struct store){ .plan = plan, .random = UINT64_C(0x9E3779B97F4A7C15) };
    s->clock = (il_clock){ boot_ms, wall_ms, boot_id, s };
    if (plan->engine == ENGINE_SQLITE)
        (void)snprintf(url, sizeof url, "sqlite:%s?clock=test", temp_path(b, name, s->path));
    else
        (void)snprintf(url, sizeof url, "memory:?clock=test");
    opts.clock = &s->clock;
    opts.flags = IL_OPEN_NO_SWEEP;
    s->h       = store_open(url, &opts);
}

static void
close_store(struct store *s)
{
    il_close(s->h);
    if (s->path[0] != '\0')
        temp_remove_database(s->path);
}

struct measurement {
    const char *names[2]; /* memory, SQLite; NULL = not measured there */
    const char *what;
    const char *against;
    double (*round)(void *cookie);
    bool   in_order;
    double wanted; /* may take at most this many times as long */
};

static const struct measurement pairs[] = {
    { { "grow-memory-one", "grow-sqlite-one" },
      "a pair, one op per call, 1,000,000 live leases, keys scattered among theirs",
      "the same with 100 live leases",
      round_one_by_one,
      false,
      1.5 },
    { { "grow-memory-batch", "grow-sqlite-batch" },
      "a pair of 100 in a batch, 1,000,000 live leases, keys scattered among theirs",
      "the same with 100 live leases",
      round_in_batches,
      false,
      3 },
    { { NULL, "grow-sqlite-ordered" },
      "a pair of 100 in a batch, 1,000,000 live leases, keys side by side",
      "the same with 100 live leases",
      round_in_batches,
      true,
      3 },
};

static const struct measurement sweeps[] = {
    { { "grow-memory-sweep", "grow-sqlite-sweep" },
      "a sweep that ends 1,000 leases scattered among 1,000,000 live ones",
      "the same among 1,000 live ones",
      round_of_sweep,
      false,
      3 },
    { { NULL, "grow-sqlite-swept" },
      "a sweep that ends 1,000 leases side by side, 1,000,000 others live",
      "the same with 1,000 others live",
      round_of_sweep,
      true,
      3 },
};

static void
measure(struct bench *b, const struct measurement *m, size_t n, struct store *many,
        struct store *few)
{
    bool sqlite = many->plan->engine == ENGINE_SQLITE;

    for (const struct measurement *end = m + n; m < end; m++) {
        struct result r = { .name         = m->names[sqlite],
                            .what         = m->what,
                            .against      = m->against,
                            .durability   = sqlite ? BENCH_FULL : BENCH_MEMORY,
                            .unit         = UNIT_NS,
                            .wanted       = WANTED_RATIO_AT_MOST,
                            .wanted_value = m->wanted };
        if (r.name == NULL)
            continue;
        many->in_order = few->in_order = m->in_order;
        compare(&r, b->n_rounds, (struct side){ m->round, many }, (struct side){ m->round, few });
        report_add(&b->report, &r);
    }
}

void
bench_grow(struct bench *b, unsigned engine)
{
    static const struct plan full[] = {
        { ENGINE_MEMORY, 1000000, 2000, 2000 },
        { ENGINE_SQLITE, 1000000, 5, 20 },
    };
    static const struct plan quick[] = {
        { ENGINE_MEMORY, 10000, 10, 10 },
        { ENGINE_SQLITE, 10000, 1, 2 },
    };
    const struct plan *plan = b->quick ? &quick[engine] : &full[engine];
    struct store       many;
    struct store       few;

    open_store(&many, b, plan, "many.db");
    open_store(&few, b, plan, "few.db");
    fill(&many, plan->n_live);
    fill(&few, FEW_LIVE);
    measure(b, pairs, ARRAY_LEN(pairs), &many, &few);
    fill(&few, FEW_LIVE_SWEEP);
    measure(b, sweeps, ARRAY_LEN(sweeps), &many, &few);
    close_store(&many);
    close_store(&few);
}
