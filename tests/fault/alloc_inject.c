/*
 * alloc_inject.c: failing allocations. Counters are atomic, since the library's threads allocate,
 * too.
 */
#include "fault/alloc_inject.h"

#include <sqlite3.h>
#include <stdatomic.h>

static atomic_int             armed; /* enum alloc_inject_of + 1; 0 = not */
static enum alloc_inject_mode armed_mode;
static unsigned               armed_n;
static atomic_uint            n_calls;
static atomic_bool            fired;
static atomic_long            n_live;
static sqlite3_mem_methods    sqlite_before;

static bool
fails(enum alloc_inject_of of)
{
    if (atomic_load(&armed) != (int)of + 1)
        return false;
    unsigned n   = atomic_fetch_add(&n_calls, 1) + 1;
    bool     now = armed_mode == ALLOC_INJECT_ONCE ? n == armed_n : n >= armed_n;
    if (now)
        atomic_store(&fired, true);
    return now;
}

static void *
our_alloc(void *cookie UNUSED, size_t n_bytes)
{
    if (fails(ALLOC_INJECT_OURS))
        return NULL;
    void *p = malloc(n_bytes);
    CHECK(p != NULL);
    atomic_fetch_add(&n_live, 1);
    return p;
}

static void *
our_realloc(void *cookie UNUSED, void *old, size_t n_bytes)
{
    if (fails(ALLOC_INJECT_OURS))
        return NULL;
    void *p = realloc(old, n_bytes);
    CHECK(p != NULL);
    if (old == NULL)
        atomic_fetch_add(&n_live, 1);
    return p;
}

static void
our_free(void *cookie UNUSED, void *p)
{
    atomic_fetch_sub(&n_live, 1);
    free(p);
}

static void *
sqlite_alloc(int n_bytes)
{
    return fails(ALLOC_INJECT_SQLITE) ? NULL : sqlite_before.xMalloc(n_bytes);
}

static void *
sqlite_realloc(void *p, int n_bytes)
{
    return fails(ALLOC_INJECT_SQLITE) ? NULL : sqlite_before.xRealloc(p, n_bytes);
}

void
alloc_inject_install(void)
{
    static const il_allocator ours = { our_alloc, our_realloc, our_free, NULL };
    sqlite3_mem_methods       methods;

    il_set_allocator(&ours);
    CHECK(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_before) == SQLITE_OK);
    methods          = sqlite_before;
    methods.xMalloc  = sqlite_alloc;
    methods.xRealloc = sqlite_realloc;
    CHECK(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK);
    /* A pool of its own would hide most allocations from us. */
    CHECK(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) == SQLITE_OK);
    /* Its statistics cost a mutex for each allocation, and nobody reads them. */
    CHECK(sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK);
}

void
alloc_inject_arm(enum alloc_inject_of of, enum alloc_inject_mode mode, unsigned n)
{
    armed_mode = mode;
    armed_n    = n;
    atomic_store(&n_calls, 0);
    atomic_store(&fired, false);
    atomic_store(&armed, (int)of + 1);
}

void
alloc_inject_disarm(void)
{
    atomic_store(&armed, 0);
}

bool
alloc_inject_fired(void)
{
    return atomic_load(&fired);
}

long
alloc_inject_n_live(void)
{
    return atomic_load(&n_live);
}
