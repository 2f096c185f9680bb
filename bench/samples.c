/*
 * samples.c: collects latencies and picks quantiles; see samples.h.
 */
#include "samples.h"

#include "bench.h"

#define SAMPLES_FIRST 1024

void
samples_add(struct samples *s, int64_t ns)
{
    if (s->n == s->n_max) {
        size_t   n_max = s->n_max == 0 ? SAMPLES_FIRST : s->n_max * 2;
        int64_t *grown = realloc(s->ns, n_max * sizeof *grown);
        if (grown == NULL)
            die("no memory for %zu samples", n_max);
        s->ns    = grown;
        s->n_max = n_max;
    }
    s->ns[s->n++] = ns;
}

void
samples_add_all(struct samples *s, const struct samples *from)
{
    for (size_t i = 0; i < from->n; i++)
        samples_add(s, from->ns[i]);
}

void
samples_release(struct samples *s)
{
    free(s->ns);
    *s = (struct samples){ 0 };
}

static int
compare_ns(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return (*x > *y) - (*x < *y);
}

struct quantiles
samples_quantiles(struct samples *s)
{
    if (s->n == 0)
        return (struct quantiles){ 0 };
    qsort(s->ns, s->n, sizeof *s->ns, compare_ns);
    return (struct quantiles){
        .n      = s->n,
        .p50_ns = s->ns[(s->n - 1) / 2],
        .p99_ns = s->ns[(s->n * 99 + 99) / 100 - 1],
        .max_ns = s->ns[s->n - 1],
    };
}

static int
compare_double(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

double
median(double *values, size_t n)
{
    CHECK(n > 0);
    qsort(values, n, sizeof *values, compare_double);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}
