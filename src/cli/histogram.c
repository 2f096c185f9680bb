/*
 * histogram.c: a latency histogram with logarithmic buckets: the leading bits of a value select its
 * bucket.
 */
#include "cli/histogram.h"

#define SUB (UINT64_C(1) << CLI_HISTOGRAM_SUB_BITS)

static size_t
bucket_of(uint64_t value)
{
    if (value < SUB)
        return (size_t)value;
    unsigned shift = 63U - (unsigned)__builtin_clzll(value) - CLI_HISTOGRAM_SUB_BITS;
    return (size_t)(((uint64_t)(shift + 1) << CLI_HISTOGRAM_SUB_BITS) + ((value >> shift) - SUB));
}

/* The greatest value of a bucket. */
static uint64_t
bucket_top(size_t i)
{
    if (i < SUB)
        return i;
    unsigned shift = (unsigned)(i >> CLI_HISTOGRAM_SUB_BITS) - 1;
    return ((SUB + (i & (SUB - 1)) + 1) << shift) - 1;
}

void
il__cli_histogram_add(struct cli_histogram *h, uint64_t value)
{
    size_t i = bucket_of(value);

    CHECK(i < CLI_HISTOGRAM_BUCKETS);
    h->counts[i]++;
    h->n++;
    h->max = MAX(h->max, value);
}

void
il__cli_histogram_merge(struct cli_histogram *into, const struct cli_histogram *from)
{
    for (size_t i = 0; i < CLI_HISTOGRAM_BUCKETS; i++)
        into->counts[i] += from->counts[i];
    into->n += from->n;
    into->max = MAX(into->max, from->max);
}

uint64_t
il__cli_histogram_quantile(const struct cli_histogram *h, unsigned per_mille)
{
    uint64_t wanted = (h->n * per_mille + 999) / 1000;
    uint64_t seen   = 0;

    CHECK(per_mille <= 1000);
    for (size_t i = 0; i < CLI_HISTOGRAM_BUCKETS; i++) {
        seen += h->counts[i];
        if (seen >= wanted && seen > 0)
            return MIN(bucket_top(i), h->max);
    }
    return 0;
}
