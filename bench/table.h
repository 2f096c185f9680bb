/*
 * table.h: the baselines of the memory engine: a lock table as one would write it without a library. One
 * mutex, a hash table, copies of the names; no TTL, no fence, no waiters, no memory of what ended.
 *
 * table_glib is what a C programmer has at hand: GLib's GHashTable. table_lean is made for this benchmark
 * and does nothing that the loop does not need: one allocation per entry, a fixed number of slots, a
 * hash computed outside the mutex.
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include "base/base.h"

struct table_kind {
    void *(*new)(void);
    void (*free)(void *t);
    /* Take the key; false when somebody has it. Thread-safe. */
    bool (*acquire)(void *t, const char *key, const char *holder);
    /* Give it back; false when it is not this holder's. Thread-safe. */
    bool (*release)(void *t, const char *key, const char *holder);
};

extern const struct table_kind table_glib;
extern const struct table_kind table_lean;

#endif
