/*
 * sqlite.c: versions of the schema, ending with a fictitious one; see core/schema.h.
 */
#include "store/sqlite/sqlite_internal.h"
#include "core/schema.h"

#include "next_steps.inc"
#include "sqlite_schema.inc"

static const char *const steps[] = { sql_schema, next_sqlite };

const struct il__schema il__sq_schema = IL__SCHEMA(2, steps);
