/* options.h: the options of ingestions from the configuration. */
#ifndef IL_APPS_INGEST_OPTIONS_H
#define IL_APPS_INGEST_OPTIONS_H

#include "apps/ingest/ingest.h"
#include "http/app.h"

/* All but h, data, place, mode, note and observe. Texts are those of the configuration, which must
 * live until il__ingest_open() has returned. IL_OK; IL_INVAL: the message begins with the key. */
il_status il__ingest_options_read(const struct http_app_config *config, struct ingest_options *ret,
                                  il_error *reterr) MUST_USE;

#endif
