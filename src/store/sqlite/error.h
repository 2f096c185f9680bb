/*
 * error.h: turns native result codes into errors. Also used outside the engine, by code that keeps
 * its own tables in the store's file (src/data, src/guard).
 */
#ifndef IL_STORE_SQLITE_ERROR_H
#define IL_STORE_SQLITE_ERROR_H

#include "base/base.h"

/* The status of an extended result code, as an error about the file at `path`. */
il_status il__sq_error(int extended_rc, int system_errno, const char *path, il_error *reterr);

#endif
