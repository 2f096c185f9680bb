/*
 * usage.h: a tenant's storage, added up one page of rows at a time. An engine walks the kinds in
 * this order, each along an index that starts with the tenant, and stops after `limit` rows; the
 * cursor records where. So a page costs only its rows, and no write has to update a counter. Rows
 * that are added, moved or purged between pages may be missed or counted twice.
 */
#ifndef IL_CORE_USAGE_H
#define IL_CORE_USAGE_H

#include "base/base.h"

enum il__usage_kind {
    IL__USAGE_CACHE,
    IL__USAGE_ONCE,
    IL__USAGE_JOBS,
    IL__USAGE_RUNS,
    IL__USAGE_CRONS,
    IL__USAGE_KINDS
};

/* The row before a page: a name and a number chosen by the engine. name "": none. */
struct il__usage_place {
    enum il__usage_kind kind;
    const char         *name;
    uint64_t            number; /* below 2^56 */
};

/* Check limit and cursor. IL_INVAL. */
il_status il__usage_check(il_op *op, il_error *reterr) MUST_USE;
/* Where the op's page begins; its name lives as long as the op's cursor. */
struct il__usage_place il__usage_place(const il_op *op);
/* The page ends after this row. False: out of memory. */
bool il__usage_next(il_op *op, const struct il__usage_place *last) MUST_USE;

#endif
