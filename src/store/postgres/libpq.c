/*
 * libpq.c: loading libpq, once in the life of a process.
 */
#include "store/postgres/libpq.h"

#include <dlfcn.h>
#include <pthread.h>

#include "base/error.h"

#define LIBPQ "libpq.so.5"

const struct pg_libpq *il__pq;

static pthread_once_t  once = PTHREAD_ONCE_INIT;
static struct pg_libpq functions;
static char            why_not[160];

static bool
find(void *library, const char *name, void *ret_pointer)
{
    void *at = dlsym(library, name);

    if (at == NULL) {
        (void)snprintf(why_not, sizeof why_not, "%s has no %s", LIBPQ, name);
        return false;
    }
    memcpy(ret_pointer, &at, sizeof at); /* ISO C has no cast from void * to a function */
    return true;
}

static void
load(void)
{
    void *library = dlopen(LIBPQ, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        (void)snprintf(why_not, sizeof why_not,
                       "%s cannot be loaded; is libpq (package libpq5) installed?", LIBPQ);
        return;
    }
    bool ok = true;
#define X(name) ok = ok && find(library, #name, &functions.name);
#include "store/postgres/libpq.def"
#undef X
    if (ok)
        il__pq = &functions;
}

il_status
il__pg_libpq_load(il_error *reterr)
{
    CHECK(pthread_once(&once, load) == 0);
    if (il__pq == NULL)
        return il__error_set(reterr, IL_STORE, "postgres: %s", why_not);
    return IL_OK;
}
