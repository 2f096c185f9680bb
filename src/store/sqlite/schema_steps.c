/*
 * schema_steps.c: the versions of the SQLite schema; see core/schema.h.
 */
#include "core/schema.h"
#include "store/sqlite/sqlite_internal.h"

#include "sqlite_schema.inc"

static const char *const steps[] = { sql_schema };

const struct il__schema il__sq_schema = IL__SCHEMA(1, steps);
