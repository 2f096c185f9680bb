/*
 * table_lean.c: a mutex and a hash table tailored to this loop. It uses the library's hash function
 * (XXH3), so that the comparison is not about hashing. Hashing is done outside the mutex.
 */
#include "table.h"

#include <pthread.h>

#include "base/hash.h"
#include "bench.h"

#define N_SLOTS 4096 /* a power of two */

struct entry {
    uint64_t hash;
    size_t   n_key; /* bytes of the key, with its NUL; the holder follows it */
    char     text[];
};

struct table {
    pthread_mutex_t mutex;
    size_t          n;
    struct entry   *slots[N_SLOTS];
};

static void *new (void)
{
    struct table *t = must_calloc(1, sizeof *t);

    CHECK(pthread_mutex_init(&t->mutex, NULL) == 0);
    return t;
}

static void
table_free(void *table)
{
    struct table *t = table;

    for (size_t i = 0; i < N_SLOTS; i++)
        free(t->slots[i]);
    CHECK(pthread_mutex_destroy(&t->mutex) == 0);
    free(t);
}

/* The slot of the key, or the free slot where it would go. */
static size_t
find(const struct table *t, uint64_t hash, const char *key)
{
    size_t i = hash & (N_SLOTS - 1);

    for (; t->slots[i] != NULL; i = (i + 1) & (N_SLOTS - 1)) {
        if (t->slots[i]->hash == hash && strcmp(t->slots[i]->text, key) == 0)
            break;
    }
    return i;
}

static bool
acquire(void *table, const char *key, const char *holder)
{
    struct table *t        = table;
    size_t        n_key    = strlen(key) + 1;
    size_t        n_holder = strlen(holder) + 1;
    uint64_t      hash     = il__hash_bytes(key, n_key - 1);

    CHECK(pthread_mutex_lock(&t->mutex) == 0);
    size_t i     = find(t, hash, key);
    bool   taken = t->slots[i] == NULL;
    if (taken) {
        struct entry *e = malloc(sizeof *e + n_key + n_holder);
        if (e == NULL || t->n == N_SLOTS / 2)
            die("the table is full");
        e->hash  = hash;
        e->n_key = n_key;
        memcpy(e->text, key, n_key);
        memcpy(e->text + n_key, holder, n_holder);
        t->slots[i] = e;
        t->n++;
    }
    CHECK(pthread_mutex_unlock(&t->mutex) == 0);
    return taken;
}

/* Empty a slot, and close the gap for entries displaced past it. */
static void
empty(struct table *t, size_t i)
{
    size_t hole = i;

    free(t->slots[i]);
    t->n--;
    for (i = (i + 1) & (N_SLOTS - 1); t->slots[i] != NULL; i = (i + 1) & (N_SLOTS - 1)) {
        size_t home = t->slots[i]->hash & (N_SLOTS - 1);
        if (((i - home) & (N_SLOTS - 1)) < ((i - hole) & (N_SLOTS - 1)))
            continue;
        t->slots[hole] = t->slots[i];
        hole           = i;
    }
    t->slots[hole] = NULL;
}

static bool
release(void *table, const char *key, const char *holder)
{
    struct table *t    = table;
    uint64_t      hash = il__hash_bytes(key, strlen(key));

    CHECK(pthread_mutex_lock(&t->mutex) == 0);
    size_t              i    = find(t, hash, key);
    const struct entry *e    = t->slots[i];
    bool                ours = e != NULL && strcmp(e->text + e->n_key, holder) == 0;
    if (ours)
        empty(t, i);
    CHECK(pthread_mutex_unlock(&t->mutex) == 0);
    return ours;
}

const struct table_kind table_lean = { new, table_free, acquire, release };
