/*
 * libsodium.c: loads libsodium once per process.
 */
#include "data/libsodium.h"

#include <pthread.h>

#include "base/dl.h"
#include "base/error.h"

const struct data_sodium *il__sodium;

static pthread_once_t     once = PTHREAD_ONCE_INIT;
static struct data_sodium functions;
static char               why_not[160];

static void
load(void)
{
    static const struct il__dl_symbol symbols[] = {
#define X(name) IL__DL_SYMBOL(struct data_sodium, name)
#include "data/libsodium.def"
#undef X
    };
    static const struct il__dl dl = { "libsodium.so.23", "libsodium23", symbols,
                                      ARRAY_LEN(symbols) };

    if (!il__dl_load(&dl, &functions, why_not, sizeof why_not))
        return;
    if (functions.sodium_init() < 0)
        (void)snprintf(why_not, sizeof why_not, "cannot initialize %s", dl.soname);
    else
        il__sodium = &functions;
}

il_status
il__data_sodium_load(il_error *reterr)
{
    CHECK(pthread_once(&once, load) == 0);
    if (il__sodium == NULL)
        return il__error_set(reterr, IL_STORE, "%s", why_not);
    return IL_OK;
}
