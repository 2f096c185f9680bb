/*
 * libpq.c: loads libpq once per process.
 */
#include "store/postgres/libpq.h"

#include <pthread.h>

#include "base/dl.h"
#include "base/error.h"

const struct pg_libpq *il__pq;

static pthread_once_t  once = PTHREAD_ONCE_INIT;
static struct pg_libpq functions;
static char            why_not[160];

static void
load(void)
{
    static const struct il__dl_symbol symbols[] = {
#define X(name) IL__DL_SYMBOL(struct pg_libpq, name)
#include "store/postgres/libpq.def"
#undef X
    };
    static const struct il__dl dl = { "libpq.so.5", "libpq5", symbols, ARRAY_LEN(symbols) };

    if (il__dl_load(&dl, &functions, why_not, sizeof why_not))
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
