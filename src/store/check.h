/*
 * check.h: what every engine must have kept, as a question: for engines whose answers come from elsewhere, where a
 * broken one is no error of this program. il__store_check_result() is for those that have none but their own.
 */
#ifndef IL_STORE_CHECK_H
#define IL_STORE_CHECK_H

#include "base/base.h"

/* The post-condition that an op which was carried out breaks, as it is written here; NULL: none. */
const char *il__store_broken(const il_op *op);

#endif
