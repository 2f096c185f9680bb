/*
 * table_glib.c: a mutex and GLib's hash table.
 */
#include <pthread.h>

#include <glib.h>

/* Both have them. */
#undef MIN
#undef MAX
#include "bench.h"
#include "table.h"

struct table {
    pthread_mutex_t mutex;
    GHashTable     *holders; /* of keys; both copied */
};

static void *new (void)
{
    struct table *t = must_calloc(1, sizeof *t);

    CHECK(pthread_mutex_init(&t->mutex, NULL) == 0);
    t->holders = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return t;
}

static void
table_free(void *table)
{
    struct table *t = table;

    g_hash_table_destroy(t->holders);
    CHECK(pthread_mutex_destroy(&t->mutex) == 0);
    free(t);
}

static bool
acquire(void *table, const char *key, const char *holder)
{
    struct table *t = table;

    CHECK(pthread_mutex_lock(&t->mutex) == 0);
    bool taken = !g_hash_table_contains(t->holders, key);
    if (taken)
        g_hash_table_insert(t->holders, g_strdup(key), g_strdup(holder));
    CHECK(pthread_mutex_unlock(&t->mutex) == 0);
    return taken;
}

static bool
release(void *table, const char *key, const char *holder)
{
    struct table *t = table;

    CHECK(pthread_mutex_lock(&t->mutex) == 0);
    const char *held_by = g_hash_table_lookup(t->holders, key);
    bool        ours    = held_by != NULL && strcmp(held_by, holder) == 0;
    if (ours)
        (void)g_hash_table_remove(t->holders, key);
    CHECK(pthread_mutex_unlock(&t->mutex) == 0);
    return ours;
}

const struct table_kind table_glib = { new, table_free, acquire, release };
