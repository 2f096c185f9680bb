/*
 * libraries.c: loads libxml2, utf8proc and libsodium once per process.
 */
#include "apps/ingest/libraries.h"

#include <pthread.h>

#include "apps/ingest/liverc.h"
#include "base/dl.h"
#include "base/error.h"
#include "data/libsodium.h"

const struct ingest_libxml2  *il__libxml2;
const struct ingest_utf8proc *il__utf8proc;

static pthread_once_t         once = PTHREAD_ONCE_INIT;
static struct ingest_libxml2  xml_functions;
static struct ingest_utf8proc utf8_functions;
static char                   why_not[160];

static void
load(void)
{
    static const struct il__dl_symbol xml_symbols[] = {
#define XML(name) IL__DL_SYMBOL(struct ingest_libxml2, name)
#define UTF8(name)
#include "apps/ingest/libraries.def"
#undef UTF8
#undef XML
    };
    static const struct il__dl_symbol utf8_symbols[] = {
#define XML(name)
#define UTF8(name) IL__DL_SYMBOL(struct ingest_utf8proc, name)
#include "apps/ingest/libraries.def"
#undef UTF8
#undef XML
    };
    static const struct il__dl xml  = { "libxml2.so.2", "libxml2", xml_symbols,
                                        ARRAY_LEN(xml_symbols) };
    static const struct il__dl utf8 = { "libutf8proc.so.2", "libutf8proc2", utf8_symbols,
                                        ARRAY_LEN(utf8_symbols) };

    if (!il__dl_load(&xml, &xml_functions, why_not, sizeof why_not) ||
        !il__dl_load(&utf8, &utf8_functions, why_not, sizeof why_not))
        return;
    xml_functions.xmlInitParser();
    il__libxml2  = &xml_functions;
    il__utf8proc = &utf8_functions;
}

il_status
il__liverc_load(il_error *reterr)
{
    CHECK(pthread_once(&once, load) == 0);
    if (il__utf8proc == NULL)
        return il__error_set(reterr, IL_STORE, "ingest: %s", why_not);
    return il__data_sodium_load(reterr);
}
