/*
 * pipeline_check.c: parses check steps: the table and the expectations. An unknown kind of
 * expectation does not make the file invalid: it fails when the check runs, and `pipelines check`
 * warns about it.
 */
#include "apps/runner/pipeline_internal.h"

#include <stdio.h>

#include "base/parse.h"

#define EXPECTATIONS_MAX 100
#define NAME_BYTES_MAX 128

static const struct {
    const char        *name;
    enum pipeline_kind kind;
} kinds[] = {
    { "row_count", PIPELINE_ROW_COUNT }, { "column_exists", PIPELINE_COLUMN_EXISTS },
    { "not_null", PIPELINE_NOT_NULL },   { "value_between", PIPELINE_BETWEEN },
    { "unique", PIPELINE_UNIQUE },       { "sql", PIPELINE_CUSTOM },
};

static const char *
kind_at(const void *cookie UNUSED, size_t i)
{
    return i < ARRAY_LEN(kinds) ? kinds[i].name : NULL;
}

/* A table or a column name: it is quoted when used, so most characters are allowed; parameters
 * are not. */
static const char *
read_name(struct reading *r, const struct doc_node *map, const char *at, const char *key)
{
    const char *name = il__reading_text(r, map, at, key, NAME_BYTES_MAX, true);

    if (name == NULL)
        return NULL;
    if (strpbrk(name, "\"'`;{}\\\t\r\n") != NULL || !il__utf8_valid(name, strlen(name))) {
        il__reading_fault(r, il__doc_get(map, key)->line, PLACE(at, key),
                          "invalid name '%.60s': no quotes, braces, ';' or parameters", name);
        return NULL;
    }
    return name;
}

/* min or max; must be a number where something is counted. */
static const char *
read_bound(struct reading *r, const struct doc_node *map, const char *at, const char *key,
           bool count)
{
    const char *text = il__reading_text(r, map, at, key, NAME_BYTES_MAX, false);
    uint64_t    number;

    if (text == NULL || !count || il__parse_u64(text, INT64_MAX, &number))
        return text;
    il__reading_fault(r, il__doc_get(map, key)->line, PLACE(at, key),
                      "must be a number of rows, not '%.60s'", text);
    return NULL;
}

static bool
is_decimal(const char *text, double *ret)
{
    char *end;

    if (text[strspn(text, "+-.0123456789eE")] != '\0' || text[0] == '\0')
        return false;
    *ret = strtod(text, &end);
    return *end == '\0';
}

static void
check_bounds(struct reading *r, const struct doc_node *map, const char *at,
             const struct pipeline_expectation *e)
{
    double min;
    double max;

    if (e->kind == PIPELINE_BETWEEN && e->min == NULL && e->max == NULL)
        il__reading_fault(r, map->line, PLACE(at, "min"), "value_between needs min, max or both");
    if (e->min != NULL && e->max != NULL && is_decimal(e->min, &min) && is_decimal(e->max, &max) &&
        min > max)
        il__reading_fault(r, map->line, PLACE(at, "max"), "min %s is greater than max %s", e->min,
                          e->max);
}

static void
read_sql(struct reading *r, const struct doc_node *map, const char *at,
         struct pipeline_expectation *e)
{
    const struct doc_node *sql = il__doc_get(map, "sql");

    if (sql == NULL)
        il__reading_fault(r, map->line, PLACE(at, "sql"),
                          "missing; must be a query that returns the offending rows");
    else
        (void)il__pipeline_read_sql(r, sql, PLACE(at, "sql"), &e->sql); /* reports */
}

static void
read_expectation(struct reading *r, const struct doc_node *map, const char *at,
                 struct pipeline_expectation *e)
{
    static const char *const keys[] = {
        "kind", "column", "min", "max", "sql", "description", NULL
    };
    char hint[100];

    e->kind = PIPELINE_UNKNOWN;
    if (!il__reading_keys(r, map, at, keys, NULL) && map->type != DOC_MAP)
        return;
    e->kind_text = il__reading_text(r, map, at, "kind", NAME_BYTES_MAX, true);
    if (e->kind_text == NULL)
        return;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].name, e->kind_text) == 0)
            e->kind = kinds[i].kind;
    }
    if (e->kind == PIPELINE_UNKNOWN)
        il__reading_advise(r, map->line, PLACE(at, "kind"),
                           "unknown expectation '%.60s', which always fails%s", e->kind_text,
                           il__reading_hint(e->kind_text, kind_at, NULL, hint, sizeof hint));
    bool column = e->kind == PIPELINE_COLUMN_EXISTS || e->kind == PIPELINE_NOT_NULL ||
                  e->kind == PIPELINE_BETWEEN || e->kind == PIPELINE_UNIQUE;
    if (column || il__doc_get(map, "column") != NULL)
        e->column = read_name(r, map, at, "column");
    e->min = read_bound(r, map, at, "min", e->kind == PIPELINE_ROW_COUNT);
    e->max = read_bound(r, map, at, "max", e->kind == PIPELINE_ROW_COUNT);
    check_bounds(r, map, at, e);
    if (e->kind == PIPELINE_CUSTOM)
        read_sql(r, map, at, e);
}

void
il__pipeline_read_check(struct reading *r, const struct doc_node *map, const char *at,
                        struct pipeline_step *step)
{
    const struct doc_node *list  = il__doc_get(map, "expectations");
    bool                   table = false; /* is it required? */

    step->connection = il__reading_id(r, map, "connection", at, PIPELINE_ID_BYTES_MAX);
    if (list == NULL || list->type != DOC_LIST || list->n == 0 || list->n > EXPECTATIONS_MAX) {
        il__reading_fault(r, list != NULL ? list->line : map->line, PLACE(at, "expectations"),
                          "must be a list of 1 to %d expectations", EXPECTATIONS_MAX);
        return;
    }
    step->expectations = il__reading_alloc(r, list->n, sizeof *step->expectations);
    for (const struct doc_node *m = list->first; m != NULL && step->expectations != NULL;
         m                        = m->next) {
        char below[READING_FIELD_BYTES];
        (void)snprintf(below, sizeof below, "%s.expectations[%zu]", at, step->n_expectations);
        struct pipeline_expectation *e = &step->expectations[step->n_expectations++];
        read_expectation(r, m, below, e);
        table |= e->kind != PIPELINE_CUSTOM;
    }
    if (table || il__doc_get(map, "table") != NULL)
        step->table = read_name(r, map, at, "table");
}
