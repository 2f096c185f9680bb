/*
 * libraries.h: libxml2 and utf8proc, loaded when a page is first parsed.
 */
#ifndef IL_APPS_INGEST_LIBRARIES_H
#define IL_APPS_INGEST_LIBRARIES_H

#include <libxml/HTMLparser.h>
#include <libxml/SAX2.h>
#include <utf8proc.h>

#include "base/base.h"

struct ingest_libxml2 {
#define XML(name) __typeof__(&name) name;
#define UTF8(name)
#include "apps/ingest/libraries.def"
#undef UTF8
#undef XML
};

struct ingest_utf8proc {
#define XML(name)
#define UTF8(name) __typeof__(&name) name;
#include "apps/ingest/libraries.def"
#undef UTF8
#undef XML
};

/* The functions; NULL before il__liverc_load() has returned IL_OK once. Never unloaded. */
extern const struct ingest_libxml2  *il__libxml2;
extern const struct ingest_utf8proc *il__utf8proc;

#endif
