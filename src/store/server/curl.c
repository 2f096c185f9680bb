/*
 * curl.c: loading libcurl, once in the life of a process.
 */
#include "store/server/curl.h"

#include <pthread.h>
#include <stdio.h>

#include "base/dl.h"
#include "base/error.h"

const struct server_curl *il__curl;

static pthread_once_t     once = PTHREAD_ONCE_INIT;
static struct server_curl functions;
static char               why_not[160];

static void
load(void)
{
    static const struct il__dl_symbol symbols[] = {
#define X(name) IL__DL_SYMBOL(struct server_curl, name)
#include "store/server/curl.def"
#undef X
    };
    static const struct il__dl dl = { "libcurl.so.4", "libcurl4", symbols, ARRAY_LEN(symbols) };

    if (!il__dl_load(&dl, &functions, why_not, sizeof why_not))
        return;
    if (functions.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        (void)snprintf(why_not, sizeof why_not, "libcurl cannot be initialised");
    else
        il__curl = &functions;
}

il_status
il__server_curl_load(il_error *reterr)
{
    CHECK(pthread_once(&once, load) == 0);
    if (il__curl == NULL)
        return il__error_set(reterr, IL_STORE, "server: %s", why_not);
    return IL_OK;
}
