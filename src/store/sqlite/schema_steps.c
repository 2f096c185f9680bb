/*
 * schema_steps.c: the versions of the SQLite schema; see core/schema.h.
 */
#include "core/schema.h"
#include "store/sqlite/sqlite_internal.h"

#include "sqlite_schema.inc"

static const char *const steps[] = { sql_schema };

const struct il__schema il__sq_schema = {
    .version     = ARRAY_LEN(steps),
    .min_version = 1,
    .steps       = steps,
};
