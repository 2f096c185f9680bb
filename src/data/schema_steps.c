/*
 * schema_steps.c: the versions of the tables on each engine; see core/schema.h.
 */
#include "data/data_internal.h"

#include "data_postgres_schema.inc"
#include "data_sqlite_schema.inc"

static const char *const sqlite_steps[]   = { sqlite_schema };
static const char *const postgres_steps[] = { postgres_schema };

_Static_assert(ARRAY_LEN(sqlite_steps) == ARRAY_LEN(postgres_steps), "the same versions");

const struct il__schema il__data_sqlite_schema   = IL__SCHEMA(1, sqlite_steps);
const struct il__schema il__data_postgres_schema = IL__SCHEMA(1, postgres_steps);
