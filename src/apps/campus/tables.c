/*
 * tables.c: the tables of the campus and the order in which their rows are locked. The order is one
 * chain for all pipelines; a call that violates it is refused with LOCK_ORDER_VIOLATION.
 */
#include "apps/campus/campus.h"

#include "apps/campus/campus_schema_sql.inc"

static const char *const sqlite_steps[]   = { sql_campus_sqlite_1 };
static const char *const postgres_steps[] = { sql_campus_postgres_1 };

static const struct il__schema sqlite   = IL__SCHEMA(1, sqlite_steps);
static const struct il__schema postgres = IL__SCHEMA(1, postgres_steps);

static const il_guard_rank ranks[] = {
#define X(entity, rank) { #entity, rank },
    CAMPUS_RANKS(X)
#undef X
};

const struct app_tables campus_tables = { .name     = "campus",
                                          .sqlite   = &sqlite,
                                          .postgres = &postgres,
                                          .ranks    = ranks,
                                          .n_ranks  = ARRAY_LEN(ranks) };
