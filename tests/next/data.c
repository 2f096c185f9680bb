/*
 * data.c: schema versions of the tenant and key tables, ending with a fictitious one; see sqlite.c.
 */
#include "data/data_internal.h"

#include "data_postgres_schema.inc"
#include "data_sqlite_schema.inc"
#include "next_steps.inc"

static const char *const sqlite_steps[]   = { sqlite_schema, next_data_sqlite };
static const char *const postgres_steps[] = { postgres_schema, next_data_postgres };

const struct il__schema il__data_sqlite_schema   = IL__SCHEMA(2, sqlite_steps);
const struct il__schema il__data_postgres_schema = IL__SCHEMA(2, postgres_steps);
