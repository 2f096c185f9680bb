/*
 * curl.c: loads libcurl once per process.
 */
#include "net/curl.h"

#include <pthread.h>
#include <stdio.h>

#include "base/dl.h"
#include "base/error.h"

const struct net_curl *il__curl;

static pthread_once_t  once = PTHREAD_ONCE_INIT;
static struct net_curl functions;
static char            why_not[160];

static void
load(void)
{
    static const struct il__dl_symbol symbols[] = {
#define X(name) IL__DL_SYMBOL(struct net_curl, name)
#include "net/curl.def"
#undef X
    };
    static const struct il__dl dl = { "libcurl.so.4", "libcurl4", symbols, ARRAY_LEN(symbols) };

    if (!il__dl_load(&dl, &functions, why_not, sizeof why_not))
        return;
    if (functions.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        (void)snprintf(why_not, sizeof why_not, "cannot initialize libcurl");
    else
        il__curl = &functions;
}

il_status
il__net_load(il_error *reterr)
{
    CHECK(pthread_once(&once, load) == 0);
    if (il__curl == NULL)
        return il__error_set(reterr, IL_STORE, "%s", why_not);
    return IL_OK;
}
