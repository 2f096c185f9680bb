/* mhd.h: libmicrohttpd, loaded when a server starts, since no other command needs it. */
#ifndef IL_HTTP_MHD_H
#define IL_HTTP_MHD_H

#include <microhttpd.h>

#include "base/base.h"

struct http_mhd {
#define X(name) __typeof__(&name) name;
#include "http/mhd.def"
#undef X
};

/* The functions; NULL until http_mhd_load() has returned IL_OK. Never unloaded. */
extern const struct http_mhd *il__mhd;

/* Does it reject malformed heads itself (1.0 and later)? If not, head.c does. */
extern bool http_mhd_strict;

/* IL_OK, or IL_INVAL: not installed, or too old. */
il_status http_mhd_load(il_error *reterr) MUST_USE;

#endif
