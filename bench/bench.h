/*
 * bench.h: one benchmark run, and what all benchmarks share: temporary files and error exit.
 * README.md explains the results and the baselines.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "base/base.h"
#include "base/clock.h"
#include "report.h"

#define BENCH_PATH_BYTES 512
#define BENCH_NS_PER_S INT64_C(1000000000)

/* Durability, as printed beside each number. */
#define BENCH_MEMORY "none (memory)"
#define BENCH_FULL "WAL, synchronous=FULL"

enum bench_engine {
    ENGINE_MEMORY,
    ENGINE_SQLITE,
};

struct servers;

struct bench {
    const char     *binary; /* the interlock under test; NULL = not given */
    const char     *json;   /* where to write JSON; NULL = nowhere */
    const char     *peers;  /* where npm packages are kept; NULL = in the temporary folder */
    const char     *only;   /* prefix of the names to run; NULL = all */
    bool            quick;  /* only checks that it works; the numbers mean nothing */
    unsigned        n_rounds;
    int64_t         round_ns;
    const char     *dir; /* for temporary files; removed at exit in any case */
    struct report   report;
    struct servers *servers; /* servers.c */
};

/* The benchmark areas. Each measures, adds its results to b->report and cleans up. */
void bench_memory(struct bench *b, unsigned n_threads);
void bench_sqlite(struct bench *b, unsigned n_threads);
void bench_grow(struct bench *b, unsigned engine);
void bench_grow_raw(struct bench *b, unsigned unused);
void bench_cache(struct bench *b, unsigned unused);
void bench_start(struct bench *b, unsigned unused);
void bench_command(struct bench *b, unsigned unused);
void bench_run(struct bench *b, unsigned whole);
void bench_handover(struct bench *b, unsigned engine);
void bench_ingest_parse(struct bench *b, unsigned unused);
void bench_queue(struct bench *b, unsigned claims);
void bench_queue_history(struct bench *b, unsigned unused);
/* These report it if a program they need is not installed. */
void bench_queue_beanstalkd(struct bench *b, unsigned unused);
void bench_postgres(struct bench *b, unsigned n_threads);
void bench_postgres_snapshot(struct bench *b, unsigned unused);
void bench_redis(struct bench *b, unsigned row);
void bench_guard(struct bench *b, unsigned is_postgres);
void bench_ingest_persist(struct bench *b, unsigned is_postgres);
/* The campus: CAMPUS_ROW_* */
#define CAMPUS_ROW_POSTGRES 1U
#define CAMPUS_ROW_HOLD 2U
void bench_campus(struct bench *b, unsigned row);
void bench_queue_postgres(struct bench *b, unsigned unused);
void bench_queue_redis(struct bench *b, unsigned unused);
void bench_http(struct bench *b, unsigned engine);
void bench_http_waiters(struct bench *b, unsigned unused);
void bench_http_trigger(struct bench *b, unsigned unused);
void bench_usage(struct bench *b, unsigned unused);
/* The spawner of bench_command() and bench_run(): this program again, as `interlock-bench
 * spawner`. */
int bench_spawner(void);
/* The other process of bench_handover(): this program again, as `interlock-bench --waiter URL`. */
int bench_handover_waiter(const char *url);

/* temp.c: create the folder for temporary files, on a real disk if possible, and have it removed
 * when the program exits, even by die() or a signal. Call before starting any thread. */
const char *temp_make(void);
void        temp_remove(void);
/* DIR/NAME in `out`. */
const char *temp_path(const struct bench *b, const char *name, char out[BENCH_PATH_BYTES]);
/* Can other users access this folder? */
bool temp_is_open(const char *path);
/* Remove a SQLite database and the files beside it. */
void temp_remove_database(const char *path);

/* The benchmark itself has failed: print the reason, clean up, exit with 1. Any thread. */
_Noreturn void die(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* die() unless the status is IL_OK. */
void must(il_status st, const char *what, const il_error *err);
/* calloc() that dies on failure. The caller frees with free(). */
void *must_calloc(size_t n, size_t size);

/* Open a store, or die. */
il *store_open(const char *url, const il_open_opts *opts);
/* The same as used by a long-running program: with a kept lease, so that the handle sweeps once a
 * second. */
struct kept {
    il       *h;
    il_lease *lease;
};
struct kept store_open_kept(const char *url);
void        store_close_kept(struct kept *s);
/* Apply a batch in which every op must succeed, and il_op_release() its ops; only their fences are
 * kept, in `fences` (n of them, may be NULL). */
void store_apply(il *h, il_op *ops, size_t n, uint64_t *fences, il_error *err);

#endif
