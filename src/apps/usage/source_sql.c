/*
 * source_sql.c: a day from a SQL query, in a read-only transaction (the guard kit). $1 is the date,
 * $2 the tenant; a query must use the first, and may use the second.
 *
 * One column: a row with the day's JSON. Several columns: one row per user, model and provider
 * (columns of these names, each may be missing), with columns named as the metrics; the rows are
 * added up here. A query without any row has failed: a day that is not loaded yet must not be kept
 * as one without usage. An aggregate without GROUP BY gives a row of zeros for such a day.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/usage/source_internal.h"
#include "base/decimal.h"
#include "base/error.h"

#define ROWS_MAX 100000
#define MICROS "spend_micros" /* a column with money in micro-units, which wins over `spend` */

struct rows {
    const struct usage_source *s;
    const struct usage_fetch  *f;
    struct il__buf            *out;
    struct usage_metrics       total;
    struct usage_parts         by[USAGE_BY_COUNT];
    void                      *mem;
    size_t                     n;
    bool                       is_document; /* the row has one column */
    il_status                  status;
    il_error                  *reterr;
};

static const char *
column(const il_guard_row *row, const char *name)
{
    for (size_t i = 0; i < row->n; i++) {
        if (strcmp(row->names[i], name) == 0)
            return row->values[i].data;
    }
    return NULL;
}

/* A value as the database prints it; money is rounded to micro-units. */
static bool
read_value(const char *text, bool money, int64_t *ret)
{
    enum il__decimal d =
        money ? il__decimal_round(text, USAGE_MONEY_DIGITS, ret) : il__decimal_parse(text, 0, ret);

    return d == IL__DECIMAL_OK && *ret >= 0;
}

static bool
read_metrics(struct rows *r, const il_guard_row *row, struct usage_metrics *ret)
{
    *ret = (struct usage_metrics){ 0 };
    for (size_t i = 0; i < USAGE_METRIC_COUNT; i++) {
        const struct usage_metric *m     = &usage_metric_list[i];
        bool                       money = usage_metric_is_money(m);
        const char                *exact = money ? column(row, MICROS) : NULL;
        const char                *text  = exact != NULL ? exact : column(row, m->name);
        if (text == NULL || read_value(text, money && exact == NULL, usage_metric_at(ret, m)))
            continue;
        r->status =
            il__error_set(r->reterr, IL_INVAL, "column %s: expected %s of at least 0, not '%.40s'",
                          exact != NULL ? MICROS : m->name,
                          money && exact == NULL ? "an amount" : "a whole number", text);
        return false;
    }
    return true;
}

/* Else its days would have no usage at all, and be kept like that. */
static bool
has_metrics(const il_guard_row *row)
{
    for (size_t i = 0; i < row->n; i++) {
        bool found = strcmp(row->names[i], MICROS) == 0;
        for (size_t k = 0; k < USAGE_METRIC_COUNT && !found; k++)
            found = strcmp(row->names[i], usage_metric_list[k].name) == 0;
        if (found)
            return true;
    }
    return false;
}

/* The rows of a part are kept one by one, and added up at the end. */
static bool
add_part(struct rows *r, enum usage_by by, const char *name, const struct usage_metrics *m)
{
    struct usage_parts *parts = &r->by[by];
    const char         *copy  = il__arena_strdup(&r->mem, name);
    struct usage_part  *part  = NULL;

    if (copy != NULL)
        part = il__arena_append(&r->mem, &parts->items, &parts->n, sizeof *part);
    if (part != NULL)
        *part = (struct usage_part){ copy, *m };
    return part != NULL;
}

static int
take_row(void *cookie, const il_guard_row *row)
{
    struct rows         *r = cookie;
    struct usage_metrics m;

    if (row->n == 1) { /* the day's JSON */
        r->is_document = true;
        if (r->n++ > 0 || row->values[0].data == NULL || row->values[0].n_bytes == 0)
            r->status =
                il__error_set(r->reterr, IL_INVAL, "the query must return exactly one document");
        else
            il__buf_add(r->out, row->values[0].data, row->values[0].n_bytes);
        return r->status == IL_OK;
    }
    if (++r->n > ROWS_MAX)
        r->status =
            il__error_set(r->reterr, IL_LIMIT, "the query returned more than %d rows", ROWS_MAX);
    else if (!has_metrics(row))
        r->status = il__error_set(r->reterr, IL_INVAL,
                                  "no column is named after a metric such as api_requests");
    if (r->status != IL_OK || !read_metrics(r, row, &m))
        return 0;
    bool ok = usage_metrics_add(&r->total, &m);
    for (enum usage_by by = 0; by < USAGE_BY_COUNT && ok; by++) {
        const char *name = column(row, usage_by_names[by]);
        ok               = name == NULL || name[0] == '\0' || add_part(r, by, name, &m);
    }
    if (!ok)
        r->status = il__error_set(r->reterr, IL_LIMIT, "a sum is too large, or out of memory");
    return ok && !usage_fetch_stopped(r->s, r->f);
}

static void
print_rows(struct rows *r)
{
    il__buf_adds(r->out, "{\"metrics\":");
    il__wire_print(r->out, &usage_wire_metrics, &r->total, 0);
    for (enum usage_by by = 0; by < USAGE_BY_COUNT; by++) {
        if (!usage_parts_fold(&r->by[by]))
            r->out->failed = true;
        il__buf_addf(r->out, ",\"by_%s\":[", usage_by_names[by]);
        for (size_t i = 0; i < r->by[by].n; i++) {
            il__buf_adds(r->out, i > 0 ? "," : "");
            il__wire_print(r->out, &usage_wire_part, &r->by[by].items[i], 0);
        }
        il__buf_addc(r->out, ']');
    }
    il__buf_addc(r->out, '}');
}

/* Where a quoted text, a quoted name or a comment that begins here ends; here: none does. */
static const char *
skip_quoted(const char *at)
{
    const char *end = at;

    if (*at == '\'' || *at == '"')
        end = strchr(at + 1, *at);
    else if (strncmp(at, "--", 2) == 0)
        end = strchr(at, '\n');
    else if (strncmp(at, "/*", 2) == 0)
        end = strstr(at + 2, "*/");
    else
        return at;
    return end != NULL ? end + 1 : at + strlen(at);
}

bool
usage_sql_uses(const char *sql, char digit)
{
    while (*sql != '\0') {
        const char *next = skip_quoted(sql);
        if (next == sql && sql[0] == '$' && sql[1] == digit && (sql[2] < '0' || sql[2] > '9'))
            return true;
        sql = next > sql ? next : sql + 1;
    }
    return false;
}

il_status
usage_fetch_sql(struct usage_source *s, const struct usage_fetch *f, struct il__buf *out,
                il_error *reterr)
{
    il_guard_tx_opts     o        = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx         *tx       = NULL;
    struct rows          r        = { .s = s, .f = f, .out = out, .reterr = reterr };
    const il_guard_value values[] = { il_guard_text(f->date), il_guard_text(f->tenant) };
    const il_guard_query q        = { .sql      = s->o.query,
                                      .values   = values,
                                      .n_values = usage_sql_uses(s->o.query, '2') ? 2 : 1,
                                      .flags    = IL_GUARD_AS_TEXT,
                                      .each     = take_row,
                                      .cookie   = &r };

    o.flags      = IL_GUARD_READ_ONLY;
    o.timeout_ms = s->o.timeout_ms;
    il_status st = il_guard_begin(s->guard, &o, &tx, reterr);
    if (st == IL_OK)
        st = il_guard_exec(tx, &q, NULL, reterr);
    il_guard_rollback(tx);
    if (st == IL_OK)
        st = r.status;
    if (st == IL_OK && usage_fetch_stopped(s, f))
        st = il__error_set(reterr, IL_CANCELLED, "stopped");
    if (st == IL_OK && r.n == 0)
        st = il__error_set(reterr, IL_STATE, "the query returned no document and no rows");
    if (st == IL_OK && !r.is_document)
        print_rows(&r);
    il__arena_free(&r.mem);
    return st;
}
