/*
 * error.h: filling in an il_error. Library code never logs; it returns a status and a message.
 */
#ifndef IL_BASE_ERROR_H
#define IL_BASE_ERROR_H

#include "base/base.h"

/* il_error.native: the store was never reached, nothing was changed */
#define IL__NATIVE_BUSY "busy"
#define IL__NATIVE_GONE "gone" /* the store no longer exists: no call will succeed again */

/* Fill in *reterr (may be NULL) and return `status`, so that failing takes one return statement. */
il_status il__error_set(il_error *reterr, il_status status, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* IL_NOMEM: "out of memory". */
il_status il__error_nomem(il_error *reterr);

#endif
