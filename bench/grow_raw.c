/*
 * grow_raw.c: how much a raw SQLite loop slows down when its keys are scattered among 1,000,000
 * rows: the lower bound for grow-sqlite-batch, since each key is then in a separate page, which is
 * read, logged twice and written back.
 */
#include "bench.h"
#include "load.h"
#include "raw.h"

#define N_BATCH 100
#define N_PER_COMMIT 10000 /* while filling */
#define HOLDER "holder-000000000000"
#define KEY_BYTES 40

struct rows {
    struct raw *raw;
    unsigned    n_live;
    unsigned    n_batches; /* of a round */
    uint64_t    n_keys;    /* made so far */
    uint64_t    random;
    char        path[BENCH_PATH_BYTES];
};

static double
round_in_batches(void *cookie)
{
    struct rows *s = cookie;
    char         keys[N_BATCH][KEY_BYTES];
    int64_t      fences[N_BATCH];
    int64_t      took_ns = 0;

    for (unsigned i = 0; i < s->n_batches; i++) {
        for (size_t j = 0; j < N_BATCH; j++) {
            s->random       = s->random * UINT64_C(6364136223846793005) + 1442695040888963407;
            unsigned number = (unsigned)((s->random >> 33) % s->n_live);
            (void)snprintf(keys[j], KEY_BYTES, "grow:%08u-%010llu", number,
                           (unsigned long long)s->n_keys++);
        }
        int64_t start_ns = il__clock_boot_ns();
        raw_begin(s->raw);
        for (size_t j = 0; j < N_BATCH; j++)
            fences[j] = raw_acquire(s->raw, keys[j], HOLDER, IL_TTL_MS_DEFAULT);
        raw_commit(s->raw);
        raw_begin(s->raw);
        for (size_t j = 0; j < N_BATCH; j++)
            raw_release(s->raw, keys[j], HOLDER, fences[j]);
        raw_commit(s->raw);
        took_ns += il__clock_boot_ns() - start_ns;
    }
    return (double)took_ns / (s->n_batches * N_BATCH);
}

/* Filled the way grow.c fills its stores. */
static void
open_rows(struct rows *s, const struct bench *b, const char *name, unsigned n_live)
{
    char key[KEY_BYTES];

    *s     = (struct rows){ .n_live = n_live, .n_batches = b->quick ? 2 : 20 };
    s->raw = raw_open(temp_path(b, name, s->path));
    raw_begin(s->raw);
    for (unsigned odd = 0; odd < 2; odd++) {
        for (unsigned i = odd; i < n_live; i += 2) {
            (void)snprintf(key, sizeof key, "grow:%08u", i);
            IGNORE(raw_acquire(s->raw, key, HOLDER, IL_TTL_MS_MAX)); /* stays */
            if (i / 2 % N_PER_COMMIT == 0) {
                raw_commit(s->raw);
                raw_begin(s->raw);
            }
        }
    }
    raw_commit(s->raw);
}

static void
close_rows(struct rows *s)
{
    raw_close(s->raw);
    temp_remove_database(s->path);
}

void
bench_grow_raw(struct bench *b, unsigned unused UNUSED)
{
    struct result r = { .name    = "grow-raw-batch",
                        .what    = "a raw pair of 100 in a batch, 1,000,000 rows, keys scattered",
                        .against = "the same with 100 rows",
                        .durability = BENCH_FULL,
                        .unit       = UNIT_NS,
                        .wanted     = WANTED_NOTHING };
    struct rows   many;
    struct rows   few;

    open_rows(&many, b, "many.db", b->quick ? 10000 : 1000000);
    open_rows(&few, b, "few.db", 100);
    compare(&r, b->n_rounds, (struct side){ round_in_batches, &many },
            (struct side){ round_in_batches, &few });
    close_rows(&many);
    close_rows(&few);
    report_add(&b->report, &r);
}
