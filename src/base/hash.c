/*
 * hash.c: XXH3 from libxxhash, compiled in, with a random seed per process.
 */
#include "base/hash.h"

#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#pragma GCC diagnostic ignored "-Wundef"
#include <xxhash.h>
#pragma GCC diagnostic pop

static pthread_once_t seed_once = PTHREAD_ONCE_INIT;
static uint64_t       seed;

static void
seed_init(void)
{
    /* Early in boot random bytes may not be available yet; then the address layout has to do. */
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = (uint64_t)(uintptr_t)&seed_once ^ ((uint64_t)getpid() << 32);
}

void
il__hash_init(void)
{
    CHECK(pthread_once(&seed_once, seed_init) == 0);
}

uint64_t
il__hash_bytes(const void *data, size_t n_bytes)
{
    return XXH3_64bits_withSeed(data, n_bytes, seed);
}

uint64_t
il__hash_stable(const void *data, size_t n_bytes, uint64_t stable_seed)
{
    return XXH3_64bits_withSeed(data, n_bytes, stable_seed);
}
