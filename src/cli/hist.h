/* hist.h: a mergeable latency histogram of fixed size, accurate to 3 %. The maximum is exact. */
#ifndef IL_CLI_HIST_H
#define IL_CLI_HIST_H

#include "base/base.h"

#define CLI_HIST_SUB_BITS 5 /* 32 steps per power of two */
#define CLI_HIST_BUCKETS ((64 - CLI_HIST_SUB_BITS + 1) << CLI_HIST_SUB_BITS)

struct cli_hist {
    uint64_t n;
    uint64_t max;
    uint32_t counts[CLI_HIST_BUCKETS];
};

void il__cli_hist_add(struct cli_hist *h, uint64_t value);
void il__cli_hist_merge(struct cli_hist *into, const struct cli_hist *from);
/* The value that `per_mille` of the values do not exceed; 0 if empty. */
uint64_t il__cli_hist_quantile(const struct cli_hist *h, unsigned per_mille);

#endif
