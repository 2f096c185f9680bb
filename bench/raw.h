/*
 * raw.h: the baseline of the SQLite engine: a hand-written row lease for one thread, with the same
 * durability. It stores key, holder, fence and expiry; it has no waiters, no memory of ended
 * leases, no modes.
 */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include "load.h"

struct raw;

/* Create a new database; the caller calls raw_close(), which does not delete it. */
struct raw *raw_open(const char *path);
void        raw_close(struct raw *r);

/* One transaction is begin, any number of the next two, commit. Any failure exits the program. */
void raw_begin(struct raw *r);
void raw_commit(struct raw *r);
/* The fence. */
int64_t raw_acquire(struct raw *r, const char *key, const char *holder, int64_t ttl_ms);
void    raw_release(struct raw *r, const char *key, const char *holder, int64_t fence);

#define RAW_PAIRS_PER_COMMIT 32

/* Steps of a single-threaded load; the cookie is a struct raw. */
unsigned raw_pair(void *cookie, struct caller *c);  /* a pair, two transactions */
unsigned raw_pairs(void *cookie, struct caller *c); /* RAW_PAIRS_PER_COMMIT of them, one */

#endif
