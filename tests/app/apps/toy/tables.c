/*
 * tables.c: the tables, invariants and pipeline of the toy app; see tables.h.
 */
#include "tables.h"

#include <string.h>

#include "toy_sql.inc"

const struct app_statement t_toy_course_add  = APP_STATEMENT(toy_course_add);
const struct app_statement t_toy_seats       = APP_STATEMENT(toy_seats);
const struct app_statement t_toy_booking_add = APP_STATEMENT(toy_booking_add);
const struct app_statement t_toy_courses     = APP_STATEMENT(toy_courses);
const struct app_statement t_toy_title       = APP_STATEMENT(toy_title);
const struct app_statement t_toy_engine      = APP_STATEMENT_EACH(toy_engine);
const struct app_statement t_toy_endless     = APP_STATEMENT_EACH(toy_endless);

static const char *const sqlite_steps[]    = { sql_toy_sqlite_1, sql_toy_sqlite_2 };
static const char *const sqlite_broken[]   = { sql_toy_sqlite_1, sql_toy_sqlite_broken };
static const char *const sqlite_mixed[]    = { sql_toy_sqlite_mixed };
static const char *const postgres_steps[]  = { sql_toy_postgres_1, sql_toy_postgres_2 };
static const char *const postgres_broken[] = { sql_toy_postgres_1, sql_toy_postgres_broken };
static const char *const postgres_mixed[]  = { sql_toy_postgres_mixed };

static const struct il__schema sqlite_1 = { .version = 1, .min_version = 1, .steps = sqlite_steps };
static const struct il__schema sqlite_2 = { .version = 2, .min_version = 2, .steps = sqlite_steps };
static const struct il__schema sqlite_b = { .version     = 2,
                                            .min_version = 1,
                                            .steps       = sqlite_broken };
static const struct il__schema sqlite_m = { .version = 1, .min_version = 1, .steps = sqlite_mixed };
static const struct il__schema postgres_1 = { .version     = 1,
                                              .min_version = 1,
                                              .steps       = postgres_steps };
static const struct il__schema postgres_2 = { .version     = 2,
                                              .min_version = 2,
                                              .steps       = postgres_steps };
static const struct il__schema postgres_b = { .version     = 2,
                                              .min_version = 1,
                                              .steps       = postgres_broken };
static const struct il__schema postgres_m = { .version     = 1,
                                              .min_version = 1,
                                              .steps       = postgres_mixed };

static const il_guard_rank ranks[] = { { "course", 10 }, { "booking", 20 } };

#define TABLES(name_, n)                                                                 \
    {                                                                                    \
        .name = name_, .sqlite = &sqlite_##n, .postgres = &postgres_##n, .ranks = ranks, \
        .n_ranks = ARRAY_LEN(ranks)                                                      \
    }

const struct app_tables t_toy        = TABLES("toy", 1);
const struct app_tables t_toy_next   = TABLES("toy", 2);
const struct app_tables t_toy_broken = TABLES("toy", b);
const struct app_tables t_toy_mixed  = TABLES("toy", m);
const struct app_tables t_other      = TABLES("other", 1);

/* ---- invariants ------------------------------------------------------------------------------ */

static int
look_at_code(void *cookie, const il_guard_row *row)
{
    const char *code = row->values[0].data;

    if (strchr(code, ' ') != NULL)
        il__invariant_found(cookie, code, "has a blank");
    return 1;
}

static il_status
find_blanks(il_guard_tx *tx, const char *tenant, struct invariant_found *found, il_error *reterr)
{
    static const struct app_statement codes = APP_STATEMENT(toy_codes);

    return il__tables_run(tx, &codes, APP_VALUES(il_guard_text(tenant)), look_at_code, found, NULL,
                          reterr);
}

const struct app_invariant t_toy_invariants[T_TOY_INVARIANTS] = {
    { .name     = "overbooked",
      .summary  = "no course has more bookings than seats",
      .severity = INVARIANT_ERROR,
      .sqlite   = sql_toy_overbooked,
      .postgres = sql_toy_overbooked },
    { .name     = "blank_codes",
      .summary  = "no code has a blank",
      .severity = INVARIANT_WARNING,
      .fn       = find_blanks },
};

/* ---- a pipeline ------------------------------------------------------------------------------ */

static const struct app_constraint constraints[] = {
    { "course", "course_seats" },
    { "booking", "booking_course" },
};

/* Not every question is answered. */
const struct app_pipeline t_toy_pipelines[T_TOY_PIPELINES] = {
    { .name          = "courses",
      .summary       = "creates and locks courses",
      .entities      = (const char *const[]){ "course", "booking", NULL },
      .constraints   = constraints,
      .n_constraints = ARRAY_LEN(constraints),
      .invariants    = (const char *const[]){ "overbooked", "blank_codes", NULL },
      .checklist     = { [CHECKLIST_row_lock]  = { PIPELINE_YES, "tests/app/t-toy.py" },
                         [CHECKLIST_json]      = { PIPELINE_NOT_APPLICABLE, "no JSON" },
                         [CHECKLIST_race_test] = { PIPELINE_NO, NULL } } },
};
