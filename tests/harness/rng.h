/*
 * rng.h: reproducible random numbers: the seed is printed, IL_TEST_SEED replays it.
 */
#ifndef T_RNG_H
#define T_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct t_rng {
    uint64_t state;
};

void     t_rng_init(struct t_rng *r, uint64_t seed);
uint64_t t_rng_next(struct t_rng *r);
/* 0 .. n - 1 */
uint32_t t_rng_below(struct t_rng *r, uint32_t n);
/* true once in n times */
bool t_rng_one_in(struct t_rng *r, uint32_t n);

/* A number from the environment, or `otherwise`. */
uint64_t t_env_u64(const char *name, uint64_t otherwise);
/*
 * Of many places at which something may fail, every n-th is tried: IL_TEST_STRIDE (1 = all), or
 * this many; under a sanitizer, which makes each of them so much slower, IL_TEST_SLOW times as
 * many.
 */
unsigned t_stride(unsigned otherwise);

#endif
