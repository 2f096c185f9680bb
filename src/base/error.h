/*
 * error.h: filling an il_error. Library code never logs; it returns a status and a sentence.
 */
#ifndef IL_BASE_ERROR_H
#define IL_BASE_ERROR_H

#include "base/base.h"

#define IL__NATIVE_BUSY \
    "busy" /* il_error.native: the store was never reached, nothing has happened */

/* Fill *reterr (may be NULL) and return `status`, so that a failure is one return statement. */
il_status il__error_set(il_error *reterr, il_status status, const char *fmt, ...) PRINTF_LIKE(3, 4);

#endif
