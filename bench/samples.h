/*
 * samples.h: measured latencies, and their exact quantiles.
 */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include "base/base.h"

struct samples {
    int64_t *ns;
    size_t   n, n_max;
};

struct quantiles {
    size_t  n;
    int64_t p50_ns, p99_ns, max_ns;
};

void samples_add(struct samples *s, int64_t ns);
void samples_add_all(struct samples *s, const struct samples *from);
void samples_release(struct samples *s);
/* Sorts them. All zeroes if there are none. */
struct quantiles samples_quantiles(struct samples *s);

/* The median; sorts the values. n > 0. */
double median(double *values, size_t n);

#endif
