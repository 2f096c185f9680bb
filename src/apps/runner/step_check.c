/*
 * step_check.c: check steps: evaluates all expectations of a table, one by one; the result is PASS
 * (none failed), WARNING (some) or FAIL (all).
 *
 * They run in a read-only transaction that first presents the fence of the run, so no earlier run
 * can change the findings. A statement that the database refuses fails its expectation, and the
 * next one gets a new transaction. Names of tables and columns enter SQL only as il__guard_quote()
 * returns them from the catalogue; everything else is bound.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "apps/runner/step_run.h"
#include "base/parse.h"
#include "wire/json.h"

#include "apps/runner/check_sql.inc"

#define SAMPLES_MAX 5           /* rows of an expectation; also in the statements */
#define SAMPLE_COLUMNS_MAX 20   /* of a row */
#define SAMPLE_BYTES_MAX 200    /* of a value */
#define SAMPLES_BYTES_MAX 40000 /* of all of them together, since details are limited */
#define SQL_BYTES_MAX ((size_t)1 << 20)
#define MESSAGE_BYTES 400

struct check {
    struct runner_attempt *a;
    struct runner_link     link;
    il_guard_tx           *tx;
    struct runner_text     text;
    struct il__buf         details;
    struct il__buf         table;                   /* quoted; "" = none */
    char                   no_table[MESSAGE_BYTES]; /* why */
    bool                   is_empty;                /* it has no rows */
    size_t                 n_failed, n_samples_bytes;
};

/* The result of one expectation. */
struct finding {
    bool           passed;
    char           message[MESSAGE_BYTES];
    char           observed[SAMPLE_BYTES_MAX + 8];
    bool           has_observed;
    int64_t        n_rows;  /* that were given */
    struct il__buf samples; /* JSON objects, separated by commas */
    struct il__buf lines;   /* the same for people */
    size_t         n_samples;
};

static void PRINTF_LIKE(3, 4) conclude(struct finding *f, bool passed, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(f->message, sizeof f->message, fmt, ap);
    va_end(ap);
    f->passed = passed;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool
to_number(const char *text, long double *ret)
{
    char *end = NULL;

    /* Rejects nan, infinity and hexadecimal. */
    if (text == NULL || text[0] == '\0' || text[strspn(text, "+-.0123456789eE")] != '\0')
        return false;
    *ret = strtold(text, &end);
    return *end == '\0' && isfinite(*ret);
}

static bool
is_number(const char *text)
{
    long double ignored;

    return to_number(text, &ignored);
}

/* Are the limits numeric, so that the value must be numeric as well? */
static bool
are_numbers(const struct pipeline_expectation *e)
{
    return (e->min == NULL || is_number(e->min)) && (e->max == NULL || is_number(e->max));
}

/* Compare as numbers if both are, else as texts. */
static int
compare(const char *a, const char *b)
{
    long double x, y;

    if (to_number(a, &x) && to_number(b, &y))
        return (x > y) - (x < y);
    return strcmp(a, b);
}

static bool
is_between(const char *value, const struct pipeline_expectation *e)
{
    if (are_numbers(e) && !is_number(value))
        return false;
    return (e->min == NULL || compare(value, e->min) >= 0) &&
           (e->max == NULL || compare(value, e->max) <= 0);
}

/* "between 1 and 5", "at least 1", "at most 5" */
static const char *
limits_text(const struct pipeline_expectation *e, char out[160])
{
    if (e->min != NULL && e->max != NULL)
        (void)snprintf(out, 160, "between %.60s and %.60s", e->min, e->max);
    else
        (void)snprintf(out, 160, "%s %.60s", e->min != NULL ? "at least" : "at most",
                       e->min != NULL ? e->min : e->max);
    return out;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void
sample_value(struct finding *f, const char *name, const char *value, bool first)
{
    size_t n_name = il__utf8_cut(name, SAMPLE_BYTES_MAX);

    il__buf_adds(&f->samples, first ? "" : ",");
    il__json_add_string(&f->samples, name, n_name);
    il__buf_addc(&f->samples, ':');
    il__buf_addf(&f->lines, "%s%.*s=", first ? "    " : " ", (int)n_name, name);
    if (value == NULL) {
        il__buf_adds(&f->samples, "null");
        il__buf_adds(&f->lines, "NULL");
        return;
    }
    char   cut[SAMPLE_BYTES_MAX + 4];
    size_t n   = il__utf8_cut(value, SAMPLE_BYTES_MAX);
    int    all = snprintf(cut, sizeof cut, "%.*s%s", (int)n, value, value[n] != '\0' ? "…" : "");
    il__json_add_string(&f->samples, cut, (size_t)all);
    for (const char *at = cut; *at != '\0'; at++)
        il__buf_addc(&f->lines, (unsigned char)*at < ' ' ? ' ' : *at);
}

/* A violating row; the first of its columns. */
static void
sample(struct check *c, struct finding *f, const il_guard_row *row)
{
    size_t before = f->samples.n_bytes;

    if (f->n_samples >= SAMPLES_MAX || c->n_samples_bytes >= SAMPLES_BYTES_MAX)
        return;
    il__buf_adds(&f->samples, f->n_samples++ > 0 ? ",{" : "{");
    for (size_t i = 0; i < row->n && i < SAMPLE_COLUMNS_MAX; i++)
        sample_value(f, row->names[i], runner_row_text(row, i), i == 0);
    il__buf_addc(&f->samples, '}');
    il__buf_adds(&f->lines, row->n > SAMPLE_COLUMNS_MAX ? " …\n" : "\n");
    c->n_samples_bytes += f->samples.n_bytes - before;
}

struct taking {
    struct check   *c;
    struct finding *f;
    bool            samples; /* rows are violations; otherwise the first value is checked */
};

static int
take_row(void *cookie, const il_guard_row *row)
{
    struct taking *t     = cookie;
    const char    *first = row->n > 0 ? runner_row_text(row, 0) : NULL;

    if (t->f->n_rows++ == 0 && !t->samples && first != NULL) {
        size_t n = il__utf8_cut(first, SAMPLE_BYTES_MAX);
        (void)snprintf(t->f->observed, sizeof t->f->observed, "%.*s", (int)n, first);
        t->f->has_observed = true;
    }
    if (t->samples)
        sample(t->c, t->f, row);
    return !runner_attempt_should_stop(t->c->a);
}

/* ---- statements ------------------------------------------------------------------------------ */

/* Start the read-only transaction, or a new one after the last has failed. */
static il_status
begin(struct check *c, il_error *reterr)
{
    return c->tx != NULL ? IL_OK : runner_link_begin(&c->link, true, &c->tx, reterr);
}

static void
end(struct check *c)
{
    il_guard_rollback(c->tx);
    c->tx = NULL;
}

static il_status
run(struct check *c, const char *sql, const char *const *values, size_t n, struct finding *f,
    bool samples, il_error *reterr)
{
    struct taking t = { .c = c, .f = f, .samples = samples };

    f->n_rows    = 0;
    il_status st = begin(c, reterr);
    if (st == IL_OK)
        st = runner_link_exec(c->tx, sql, values, n, take_row, &t, NULL, reterr);
    if (st != IL_OK)
        end(c);
    return st;
}

/* Run one of our own statements, for this table and the column of `e`. */
static il_status
run_ours(struct check *c, const struct pipeline_expectation *e, const char *text, struct finding *f,
         bool samples, il_error *reterr)
{
    struct il__buf AUTO_BUF sql = { 0 }, column = { 0 };
    const char             *values[] = { e->min, e->max };
    size_t                  n_values = strstr(text, "$2") != NULL ? 2 : 0;
    il_status               st       = begin(c, reterr);

    il__buf_init(&sql, SQL_BYTES_MAX);
    il__buf_init(&column, SQL_BYTES_MAX);
    if (st == IL_OK && strstr(text, "@column") != NULL)
        st = il__guard_quote(c->tx, c->a->step->table, e->column, &column, reterr);
    if (st != IL_OK)
        return st;
    il__guard_fill(text, il__buf_str(&c->table), il__buf_str(&column), &sql);
    return run(c, il__buf_str(&sql), values, n_values, f, samples, reterr);
}

/* Count the violations; if there are any, fetch some. */
static il_status
find_offenders(struct check *c, const struct pipeline_expectation *e, const char *count,
               const char *rows, struct finding *f, int64_t *ret, il_error *reterr)
{
    il_status st = run_ours(c, e, count, f, false, reterr);

    if (st != IL_OK)
        return st;
    errno = 0;
    *ret  = strtoll(f->observed, NULL, 10);
    return *ret == 0 ? IL_OK : run_ours(c, e, rows, f, true, reterr);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static il_status
try_row_count(struct check *c, const struct pipeline_expectation *e, struct finding *f,
              il_error *reterr)
{
    char      limits[160];
    il_status st = run_ours(c, e, sql_check_count, f, false, reterr);

    if (st != IL_OK)
        return st;
    bool bounded = e->min != NULL || e->max != NULL;
    if (!are_numbers(e))
        conclude(f, false, "min and max must be numbers");
    else if (c->is_empty && (e->min == NULL || compare(e->min, "0") > 0))
        conclude(f, false, "the table is empty");
    else
        conclude(f, is_between(f->observed, e), "%s rows%s%s", f->observed,
                 bounded ? ", expected " : "", bounded ? limits_text(e, limits) : "");
    return IL_OK;
}

static il_status
try_column_exists(struct check *c, const struct pipeline_expectation *e, struct finding *f,
                  il_error *reterr)
{
    struct il__buf AUTO_BUF column = { 0 };

    il__buf_init(&column, SQL_BYTES_MAX);
    il_status st = begin(c, reterr);
    if (st == IL_OK)
        st = il__guard_quote(c->tx, c->a->step->table, e->column, &column, reterr);
    if (st == IL_OK)
        conclude(f, true, "the column exists");
    return st;
}

static il_status
try_not_null(struct check *c, const struct pipeline_expectation *e, struct finding *f,
             il_error *reterr)
{
    int64_t   n  = 0;
    il_status st = find_offenders(c, e, sql_check_null_count, sql_check_null_rows, f, &n, reterr);

    if (st == IL_OK)
        conclude(f, n == 0, "%" PRId64 " row%s without a value", n, n == 1 ? "" : "s");
    return st;
}

static il_status
try_between(struct check *c, const struct pipeline_expectation *e, struct finding *f,
            il_error *reterr)
{
    bool        postgres = il__guard_is_postgres(c->link.g);
    const char *count    = sql_check_text_count;
    const char *rows     = sql_check_text_rows;
    char        limits[160];
    int64_t     n = 0;

    if (e->min == NULL && e->max == NULL) {
        conclude(f, false, "neither min nor max is set");
        return IL_OK;
    }
    if (are_numbers(e)) {
        count = postgres ? sql_check_number_count_postgres : sql_check_number_count_sqlite;
        rows  = postgres ? sql_check_number_rows_postgres : sql_check_number_rows_sqlite;
    }
    il_status st = find_offenders(c, e, count, rows, f, &n, reterr);
    if (st == IL_OK)
        conclude(f, n == 0, "%" PRId64 " row%s not %s", n, n == 1 ? "" : "s",
                 limits_text(e, limits));
    return st;
}

static il_status
try_unique(struct check *c, const struct pipeline_expectation *e, struct finding *f,
           il_error *reterr)
{
    int64_t   n  = 0;
    il_status st = find_offenders(c, e, sql_check_twice_count, sql_check_twice_rows, f, &n, reterr);

    if (st == IL_OK)
        conclude(f, n == 0, "%" PRId64 " duplicate value%s", n, n == 1 ? "" : "s");
    return st;
}

static il_status
try_custom(struct check *c, const struct pipeline_expectation *e, struct finding *f,
           il_error *reterr)
{
    struct il__buf AUTO_BUF sql = { 0 };
    const char             *values[IL_GUARD_VALUES_MAX];
    char                    limits[160];
    size_t                  n_values = 0;
    bool                    bounded  = e->min != NULL || e->max != NULL;

    if (e->sql.text == NULL) {
        conclude(f, false, "no SQL given");
        return IL_OK;
    }
    il__buf_init(&sql, SQL_BYTES_MAX);
    il_status st = il__pipeline_bind(&e->sql, c->a->values, &sql, values, IL_GUARD_VALUES_MAX,
                                     &n_values, reterr);
    if (st == IL_OK)
        st = run(c, il__buf_str(&sql), values, n_values, f, !bounded, reterr);
    if (st != IL_OK)
        return st;
    if (bounded && !f->has_observed)
        conclude(f, false, "returned no value, expected %s", limits_text(e, limits));
    else if (bounded)
        conclude(f, is_between(f->observed, e), "%s, expected %s", f->observed,
                 limits_text(e, limits));
    else
        conclude(f, f->n_rows == 0, "%" PRId64 " row%s", f->n_rows, f->n_rows == 1 ? "" : "s");
    if (!bounded) {
        (void)snprintf(f->observed, sizeof f->observed, "%" PRId64, f->n_rows);
        f->has_observed = true;
    }
    return IL_OK;
}

/* IL_OK: the finding has the result. Otherwise a database error. */
static il_status
try_one(struct check *c, const struct pipeline_expectation *e, struct finding *f, il_error *reterr)
{
    static il_status (*const tries[])(struct check *, const struct pipeline_expectation *,
                                      struct finding *, il_error *) = {
        [PIPELINE_ROW_COUNT] = try_row_count,         [PIPELINE_BETWEEN] = try_between,
        [PIPELINE_COLUMN_EXISTS] = try_column_exists, [PIPELINE_UNIQUE] = try_unique,
        [PIPELINE_NOT_NULL] = try_not_null,           [PIPELINE_CUSTOM] = try_custom,
    };
    bool needs_column = e->kind != PIPELINE_ROW_COUNT && e->kind != PIPELINE_CUSTOM;
    bool needs_table  = e->kind != PIPELINE_CUSTOM || c->a->step->table != NULL;

    if ((size_t)e->kind >= ARRAY_LEN(tries))
        conclude(f, false, "unknown kind of expectation");
    else if (needs_table && c->no_table[0] != '\0')
        conclude(f, false, "%s", c->no_table);
    else if (needs_table && c->is_empty && e->kind != PIPELINE_ROW_COUNT)
        conclude(f, false, "the table is empty");
    else if (needs_column && e->column == NULL)
        conclude(f, false, "no column given");
    else
        return tries[e->kind](c, e, f, reterr);
    return IL_OK;
}

/* ---- reporting ------------------------------------------------------------------------------- */

static void
add_text(struct il__buf *b, const char *name, const char *text)
{
    il__buf_addf(b, "\"%s\":", name);
    il__json_add_string(b, text, strlen(text));
    il__buf_addc(b, ',');
}

static void
tell(struct check *c, const struct pipeline_expectation *e, const struct finding *f)
{
    struct il__buf *d = &c->details;

    il__buf_addc(d, '{');
    add_text(d, "kind", e->kind_text);
    if (e->column != NULL)
        add_text(d, "column", e->column);
    add_text(d, "message", f->message);
    if (f->has_observed)
        add_text(d, "observed", f->observed);
    il__buf_addf(d, "\"passed\":%s,\"samples\":[", f->passed ? "true" : "false");
    if (!f->samples.failed)
        il__buf_add(d, f->samples.data, f->samples.n_bytes);
    il__buf_adds(d, "]}");
    runner_text_addf(&c->text, "%s %s%s%s: %s\n", f->passed ? "ok    " : "FAILED", e->kind_text,
                     e->column != NULL ? " " : "", e->column != NULL ? e->column : "", f->message);
    runner_text_addf(&c->text, "%s", il__buf_str(&f->lines));
}

/* ---- the step -------------------------------------------------------------------------------- */

/* Find the table, and whether it has rows. IL_OK also if it does not exist: c->no_table. */
static il_status
look_at_table(struct check *c, il_error *reterr)
{
    static const struct pipeline_expectation none = { .kind = PIPELINE_UNKNOWN };
    const char                              *name = c->a->step->table;
    struct finding                           any  = { 0 };

    il_status st = begin(c, reterr);
    if (st == IL_OK && name == NULL) {
        (void)snprintf(c->no_table, sizeof c->no_table, "no table given");
        return IL_OK;
    }
    if (st == IL_OK)
        st = il__guard_quote(c->tx, name, NULL, &c->table, reterr);
    if (st == IL_OK) {
        st          = run_ours(c, &none, sql_check_any, &any, false, reterr);
        c->is_empty = any.n_rows == 0;
    }
    if (st != IL_NOT_FOUND && st != IL_INVAL) /* missing, or not readable for us */
        return st;
    (void)snprintf(c->no_table, sizeof c->no_table, "%.*s", MESSAGE_BYTES - 1, reterr->message);
    return IL_OK;
}

/* Evaluate one expectation, whatever the result; any status except IL_OK: cannot continue. */
static il_status
try_and_tell(struct check *c, size_t i, il_error *reterr)
{
    const struct pipeline_expectation *e = &c->a->step->expectations[i];
    struct finding                     f = { 0 };

    il__buf_init(&f.samples, SAMPLES_BYTES_MAX);
    il__buf_init(&f.lines, SAMPLES_BYTES_MAX);
    il_status st = try_one(c, e, &f, reterr);
    if (st == IL_INVAL || st == IL_NOT_FOUND) {
        conclude(&f, false, "%.*s", MESSAGE_BYTES - 1, reterr->message);
        st = IL_OK;
    }
    if (st == IL_OK) {
        il__buf_adds(&c->details, i > 0 ? "," : "");
        c->n_failed += f.passed ? 0 : 1;
        tell(c, e, &f);
    }
    il__buf_release(&f.samples);
    il__buf_release(&f.lines);
    return st;
}

static void
judge(struct check *c, struct runner_result *ret)
{
    const struct pipeline_step *step  = c->a->step;
    size_t                      n     = step->n_expectations;
    const char                 *table = step->table != NULL ? step->table : "";
    const char *said = c->n_failed == 0 ? "PASS" : c->n_failed < n ? "WARNING" : "FAIL";

    il__buf_adds(&c->details, "],");
    add_text(&c->details, "table", table);
    il__buf_addf(&c->details, "\"result\":\"%s\",\"failed\":%zu,\"tried\":%zu}", said, c->n_failed,
                 n);
    ret->details = il__buf_take(&c->details); /* NULL: it was too long and is omitted */
    runner_text_addf(&c->text, "%s: %zu of %zu expectations failed\n", said, c->n_failed, n);
    ret->outcome = c->n_failed == 0 ? RUNNER_STEP_COMPLETED : RUNNER_STEP_WARNING;
    if (c->n_failed == n)
        runner_result_fail(ret, false, "check of %.200s: FAIL, %zu of %zu expectations failed",
                           table, c->n_failed, n);
    else if (c->n_failed > 0)
        (void)snprintf(ret->error, sizeof ret->error,
                       "check of %.200s: WARNING, %zu of %zu expectations failed", table,
                       c->n_failed, n);
}

void
runner_step_check(struct runner_attempt *a, struct runner_result *ret)
{
    struct check c   = { .a = a };
    il_error     err = { .message = "" };

    *ret = (struct runner_result){ .outcome = RUNNER_STEP_FAILED, .exit_code = -1 };
    if (a->step->n_expectations == 0) {
        runner_result_fail(ret, true, "the check has no expectations");
        return;
    }
    if (!runner_link_open(&c.link, a, ret))
        return;
    runner_text_init(&c.text, a);
    il__buf_init(&c.details, DATA_DETAILS_BYTES_MAX);
    il__buf_init(&c.table, SQL_BYTES_MAX);
    il__buf_adds(&c.details, "{\"expectations\":[");
    il_status st = look_at_table(&c, &err);
    for (size_t i = 0; st == IL_OK && i < a->step->n_expectations; i++)
        st = try_and_tell(&c, i, &err);
    if (st == IL_OK && c.tx != NULL) { /* a run that has lost its lease reports nothing */
        st   = il_guard_commit(c.tx, &err);
        c.tx = NULL;
    }
    if (st == IL_OK)
        judge(&c, ret);
    else
        runner_result_status(ret, a, st, "", &err);
    end(&c);
    runner_link_close(&c.link);
    runner_text_release(&c.text);
    il__buf_release(&c.details);
    il__buf_release(&c.table);
}
