/* libyaml.c: loads libyaml once per process. */
#include "config/libyaml.h"

#include <pthread.h>

#include "base/dl.h"
#include "base/error.h"

static pthread_once_t  once = PTHREAD_ONCE_INIT;
static struct il__yaml functions;
static bool            loaded;
static char            why_not[160];

static void
load(void)
{
    static const struct il__dl_symbol symbols[] = {
#define X(name) IL__DL_SYMBOL(struct il__yaml, name)
#include "config/libyaml.def"
#undef X
    };
    static const struct il__dl dl = { "libyaml-0.so.2", "libyaml-0-2", symbols,
                                      ARRAY_LEN(symbols) };

    loaded = il__dl_load(&dl, &functions, why_not, sizeof why_not);
}

const struct il__yaml *
il__config_yaml(il_error *reterr)
{
    CHECK(pthread_once(&once, load) == 0);
    if (loaded)
        return &functions;
    (void)il__error_set(reterr, IL_STORE, "%s", why_not);
    return NULL;
}
