/*
 * postconditions.h: the postconditions of an op as a query, for engines whose results come from
 * another machine: a violation there is not a bug in this program. Engines that compute their own
 * results use il__store_check_result().
 */
#ifndef IL_STORE_POSTCONDITIONS_H
#define IL_STORE_POSTCONDITIONS_H

#include "base/base.h"

/* The postcondition that an executed op violates, as source text; NULL: none. */
const char *il__store_violation(const il_op *op);

#endif
