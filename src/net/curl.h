/*
 * curl.h: libcurl, loaded on the first request: it pulls in thirty libraries, and the binary must
 * start without them. Private to this folder.
 */
#ifndef IL_NET_CURL_H
#define IL_NET_CURL_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "net/net.h"

/* The header defines some of them as macros, to check their arguments. */
#undef curl_easy_setopt
#undef curl_easy_getinfo

struct net_curl {
#define X(name) __typeof__(&name) name;
#include "net/curl.def"
#undef X
};

/* The functions; NULL before il__net_load() has returned IL_OK once. Never unloaded. */
extern const struct net_curl *il__curl;

#endif
