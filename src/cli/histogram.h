/* histogram.h: a mergeable latency histogram of fixed size, accurate to 3 %. The maximum is
 * exact. */
#ifndef IL_CLI_HISTOGRAM_H
#define IL_CLI_HISTOGRAM_H

#include "base/base.h"

#define CLI_HISTOGRAM_SUB_BITS 5 /* 32 steps per power of two */
#define CLI_HISTOGRAM_BUCKETS ((64 - CLI_HISTOGRAM_SUB_BITS + 1) << CLI_HISTOGRAM_SUB_BITS)

struct cli_histogram {
    uint64_t n;
    uint64_t max;
    uint32_t counts[CLI_HISTOGRAM_BUCKETS];
};

void il__cli_histogram_add(struct cli_histogram *h, uint64_t value);
void il__cli_histogram_merge(struct cli_histogram *into, const struct cli_histogram *from);
/* The value that `per_mille` of the values do not exceed; 0 if empty. */
uint64_t il__cli_histogram_quantile(const struct cli_histogram *h, unsigned per_mille);

#endif
