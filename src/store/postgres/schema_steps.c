/*
 * schema_steps.c: the versions of the PostgreSQL schema; see core/schema.h.
 */
#include "core/schema.h"
#include "store/postgres/postgres_internal.h"

#include "postgres_schema.inc"

static const char *const steps[] = { sql_schema };

const struct il__schema il__pg_schema = IL__SCHEMA(1, steps);
