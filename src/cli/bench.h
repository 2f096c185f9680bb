/* bench.h: measures a store through the public interface. */
#ifndef IL_CLI_BENCH_H
#define IL_CLI_BENCH_H

#include <stdatomic.h>

#include "cli/histogram.h"

#define CLI_BENCH_PREFIX "interlock-bench:"

struct cli_bench {
    il         *store;
    il         *other;      /* a second handle, as another process would have; or the same */
    int64_t     n_ns;       /* how long one measurement takes */
    char        run_id[37]; /* makes the keys of this run unique */
    unsigned    n_measured; /* ... and those of each measurement: holders are never reused */
    atomic_bool stop;       /* end early, releasing everything */
};

struct cli_bench_result {
    uint64_t             n_pairs; /* acquired and released, or handed over */
    int64_t              took_ns;
    struct cli_histogram latency; /* ns per pair, or from the release to the next holder's start */
};

/* Pairs of acquire and release on uncontended keys, by n_threads callers at once. */
MUST_USE il_status il__cli_bench_pairs(struct cli_bench *bench, size_t n_threads,
                                       struct cli_bench_result *ret, il_error *reterr);
/* One key between two callers: the time from one's release to the other's return from its wait. */
MUST_USE il_status il__cli_bench_handover(struct cli_bench *bench, struct cli_bench_result *ret,
                                          il_error *reterr);
/* Break whatever a failure left behind under this run's keys. */
MUST_USE il_status il__cli_bench_clean(struct cli_bench *bench, il_error *reterr);

#endif
