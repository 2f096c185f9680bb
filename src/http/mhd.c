/*
 * mhd.c: loads libmicrohttpd, once per process.
 */
#include "http/mhd.h"

#include <pthread.h>
#include <stdio.h>

#include "base/dl.h"
#include "base/error.h"

#define OLDEST_MAJOR 0
#define OLDEST_MINOR 9
#define OLDEST_PATCH 71 /* MHD_Result, and epoll from outside as it is used here */

const struct http_mhd *il__mhd;
bool                   http_mhd_strict;

static pthread_once_t  once = PTHREAD_ONCE_INIT;
static struct http_mhd functions;
static char            why_not[160];

static void
load(void)
{
    static const struct il__dl_symbol symbols[] = {
#define X(name) IL__DL_SYMBOL(struct http_mhd, name)
#include "http/mhd.def"
#undef X
    };
    static const struct il__dl dl = { "libmicrohttpd.so.12", "libmicrohttpd12", symbols,
                                      ARRAY_LEN(symbols) };
    unsigned                   major, minor, patch;

    if (!il__dl_load(&dl, &functions, why_not, sizeof why_not))
        return;
    const char *version = functions.MHD_get_version();
    if (sscanf(version, "%u.%u.%u", &major, &minor, &patch) != 3)
        major = minor = patch = 0;
    if (major == OLDEST_MAJOR && minor * 1000 + patch < OLDEST_MINOR * 1000 + OLDEST_PATCH) {
        (void)snprintf(why_not, sizeof why_not,
                       "libmicrohttpd %.20s is too old: %d.%d.%d or newer is needed", version,
                       OLDEST_MAJOR, OLDEST_MINOR, OLDEST_PATCH);
        return;
    }
    http_mhd_strict = major >= 1;
    il__mhd         = &functions;
}

il_status
http_mhd_load(il_error *reterr)
{
    CHECK(pthread_once(&once, load) == 0);
    if (il__mhd == NULL)
        return il__error_set(reterr, IL_INVAL, "%s", why_not);
    return IL_OK;
}
