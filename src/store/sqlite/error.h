/*
 * error.h: native result codes as statuses and sentences. For the engine, and for whoever keeps something beside the store in its file (src/data).
 */
#ifndef IL_STORE_SQLITE_ERROR_H
#define IL_STORE_SQLITE_ERROR_H

#include "base/base.h"

/* Status of an extended result code. A full disk shows in several codes, but always in errno. */
il_status il__sq_map(int extended_rc, int system_errno);
/* The same as an error about the file at `path`. */
il_status il__sq_error(int extended_rc, int system_errno, const char *path, il_error *reterr);

#endif
