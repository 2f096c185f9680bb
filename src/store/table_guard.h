/*
 * table_guard.h: fences enforced on the user's own tables, for engines that support it: `interlock
 * guard`.
 */
#ifndef IL_STORE_TABLE_GUARD_H
#define IL_STORE_TABLE_GUARD_H

#include "base/base.h"

struct il__table_guard {
    const char *table;
    const char *key;       /* with columns in braces: event:{event_id}; NULL: remove the guard */
    const char *tenant;    /* of the key */
    uint64_t    n_refused; /* writes; when it is listed */
};

/* Called for each guard of a listing, by table name; the strings live for the call. */
typedef void il__table_guard_fn(void *cookie, const struct il__table_guard *g);

#endif
