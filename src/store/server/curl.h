/*
 * curl.h: libcurl, loaded when the first store behind a server is opened: it brings along thirty libraries, and the binary
 * must start without them.
 */
#ifndef IL_STORE_SERVER_CURL_H
#define IL_STORE_SERVER_CURL_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "base/base.h"

/* The header makes macros of some of them, to count their arguments. */
#undef curl_easy_setopt
#undef curl_easy_getinfo

struct server_curl {
#define X(name) __typeof__(&name) name;
#include "store/server/curl.def"
#undef X
};

/* The functions; NULL before il__server_curl_load() was IL_OK once. Never unloaded. */
extern const struct server_curl *il__curl;

/* Safe from any thread. IL_OK, or IL_STORE: it is not there. */
il_status il__server_curl_load(il_error *reterr) MUST_USE;

#endif
