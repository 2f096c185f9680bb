/*
 * mhd.h: libmicrohttpd, loaded when a server starts: no other command needs it.
 */
#ifndef IL_HTTP_MHD_H
#define IL_HTTP_MHD_H

#include <microhttpd.h>

#include "base/base.h"

struct http_mhd {
#define X(name) __typeof__(&name) name;
#include "http/mhd.def"
#undef X
};

/* The functions; NULL before http_mhd_load() was IL_OK once. Never unloaded. */
extern const struct http_mhd *il__mhd;

/* Does it refuse heads that are not strictly HTTP by itself (1.0 and later)? If not, head.c does. */
extern bool http_mhd_strict;

/* IL_OK, or IL_INVAL: it is not there, or too old. */
il_status http_mhd_load(il_error *reterr) MUST_USE;

#endif
