/*
 * table.h: the baseline of the memory engine: a lock table as one would write it without a library.
 * One mutex; open addressing with linear probing; copies of the names. No TTL, no fence, no
 * waiters.
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include "base/base.h"

struct table;

/* Room for a fixed number of keys that are held at once; the caller ends it with table_free(). */
struct table *table_new(void);
void          table_free(struct table *t);

/* Take the key; false when somebody has it. Thread-safe. */
bool table_acquire(struct table *t, const char *key, const char *holder);
/* Give it back; false when it is not this holder's. Thread-safe. */
bool table_release(struct table *t, const char *key, const char *holder);

#endif
