/*
 * metrics.h: the histograms of a handle: ops per batch, and time to commit a batch. The counters
 * are in il_metrics().
 */
#ifndef IL_RUNTIME_METRICS_H
#define IL_RUNTIME_METRICS_H

#include "base/base.h"

#define IL__BATCH_BOUNDS 13
#define IL__COMMIT_BOUNDS 15

struct il__histogram {
    const char   *name, *help;
    const double *bounds; /* n of them, growing */
    size_t        n;
    /* n + 1 counts: of values up to each bound and above the previous one; the last one: above
     * all */
    uint64_t counts[IL__COMMIT_BOUNDS + 1];
    double   sum;
};
typedef void il__histogram_fn(void *cookie, const struct il__histogram *histogram);

/* Calls fn once per histogram. */
void il__histograms(il *h, il__histogram_fn *fn, void *cookie);

#endif
