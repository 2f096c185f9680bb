/*
 * cursor.h: cursors of listings: (key, number) of the last item of a page. The text is opaque to
 * users: the number in hex, a colon, the key.
 */
#ifndef IL_CORE_CURSOR_H
#define IL_CORE_CURSOR_H

#include "base/base.h"

/* In the op's memory; NULL: no memory. */
const char *il__op_cursor(il_op *op, const char *key, uint64_t number);
#define IL__NO_ID "-" /* the key of a cursor that is only a number: of a skipped row */
/* The key is a pointer into the cursor. False: invalid. */
bool il__cursor_parse(const char *cursor, const char **ret_key, uint64_t *ret_number);

#endif
