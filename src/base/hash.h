/*
 * hash.h: a fast hash for in-memory tables. Never used as an identity: equal hashes are followed by
 * a comparison of the full names. Seeded per process, so that an attacker cannot prepare colliding
 * names.
 */
#ifndef IL_BASE_HASH_H
#define IL_BASE_HASH_H

#include "base/base.h"

/* Call before the first use in a process; may be called again. */
void     il__hash_init(void);
uint64_t il__hash_bytes(const void *data, size_t n_bytes);

/* Combine two hashes. */
static inline uint64_t
il__hash_mix(uint64_t a, uint64_t b)
{
    uint64_t h = a ^ (b * UINT64_C(0x9E3779B97F4A7C15));

    h ^= h >> 32;
    h *= UINT64_C(0xD6E8FEB86659FD93);
    return h ^ (h >> 32);
}

/* No process seed: the same result in every process, forever. For data shared through a file. */
uint64_t il__hash_stable(const void *data, size_t n_bytes, uint64_t seed);

#endif
