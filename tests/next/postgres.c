/*
 * postgres.c: versions of the schema, ending with a fictitious one; see core/schema.h.
 */
#include "store/postgres/postgres_internal.h"
#include "core/schema.h"

#include "next_steps.inc"
#include "postgres_schema.inc"

static const char *const steps[] = { sql_schema, next_postgres };

const struct il__schema il__pg_schema = IL__SCHEMA(2, steps);
