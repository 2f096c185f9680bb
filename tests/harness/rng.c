/*
 * rng.c: splitmix64, by Sebastiano Vigna (public domain): small, and good enough to choose ops.
 */
#include "harness/rng.h"

#include <stdlib.h>

#include "base/base.h"

void
t_rng_init(struct t_rng *r, uint64_t seed)
{
    r->state = seed;
}

uint64_t
t_rng_next(struct t_rng *r)
{
    uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t
t_rng_below(struct t_rng *r, uint32_t n)
{
    CHECK(n > 0);
    return (uint32_t)((t_rng_next(r) >> 32) % n);
}

bool
t_rng_one_in(struct t_rng *r, uint32_t n)
{
    return t_rng_below(r, n) == 0;
}

uint64_t
t_env_u64(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    if (text == NULL || text[0] == '\0')
        return otherwise;
    return strtoull(text, NULL, 0);
}

unsigned
t_stride(unsigned otherwise)
{
    return (unsigned)t_env_u64("IL_TEST_STRIDE", otherwise * t_env_u64("IL_TEST_SLOW", 1));
}
