/*
 * table.h: the baselines of the memory engine: lock tables as one would write them without a
 * library. One mutex, a hash table, copies of the names; no TTL, no fence, no waiters, no memory of
 * ended leases.
 *
 * table_glib uses what a C programmer has at hand: GLib's GHashTable. table_lean is tailored to
 * this benchmark and does only what the loop needs: one allocation per entry, a fixed number of
 * slots, a hash computed outside the mutex.
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include "base/base.h"

struct table_kind {
    void *(*new)(void);
    void (*free)(void *t);
    /* Take the key; false if it is taken. Thread-safe. */
    bool (*acquire)(void *t, const char *key, const char *holder);
    /* Release it; false if this holder does not have it. Thread-safe. */
    bool (*release)(void *t, const char *key, const char *holder);
};

extern const struct table_kind table_glib;
extern const struct table_kind table_lean;

#endif
