/* row.c: rows of daily_usage_cache. See row.h. */
#include "apps/usage/row.h"

#include <stdio.h>

#include "base/error.h"

#include "apps/usage/usage_sql.inc"

#define COLUMN_BYTES_MAX (2 * USAGE_RAW_BYTES_MAX)
#define WRITE_MS 30000 /* of the transaction that writes a day */

static const char *const sqlite_steps[]   = { sql_usage_sqlite_1 };
static const char *const postgres_steps[] = { sql_usage_postgres_1 };

static const struct il__schema sqlite   = IL__SCHEMA(1, sqlite_steps);
static const struct il__schema postgres = IL__SCHEMA(1, postgres_steps);

const struct app_tables usage_tables = {
    .name     = "usage",
    .sqlite   = &sqlite,
    .postgres = &postgres,
};

const struct app_invariant usage_invariants[] = {
    { .name     = "complete_early",
      .summary  = "Days of usage marked complete before they had ended",
      .severity = INVARIANT_ERROR,
      .sqlite   = sql_usage_complete_early_sqlite,
      .postgres = sql_usage_complete_early_postgres },
};

static const struct app_statement put   = APP_STATEMENT_EACH(usage_put);
static const struct app_statement get   = APP_STATEMENT_EACH(usage_get);
static const struct app_statement range = APP_STATEMENT_EACH(usage_range);
static const struct app_statement purge = APP_STATEMENT_EACH(usage_purge);

void
usage_row_release(struct usage_row *row)
{
    usage_figures_release(&row->figures);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Rows that are read: the first four columns, then the parts `first` to `last`. */
struct reading_rows {
    size_t        first, last;
    bool          skip_damaged;
    void        **mem;
    usage_row_fn *each;
    void         *cookie;
    il_status     status;
    il_error     *reterr;
};

static il_status
decode(const struct reading_rows *r, const il_guard_value *v, struct usage_row *row)
{
    il_status st = usage_metrics_load(v[3].data, v[3].n_bytes, &row->figures.total, r->reterr);

    if (!usage_date_parse(v[0].data, &row->date))
        return il__error_set(r->reterr, IL_CORRUPT, "a stored day has an invalid date");
    row->updated_ms = v[1].integer;
    row->complete   = v[2].integer != 0;
    for (size_t i = r->first; i < r->last && st == IL_OK; i++)
        st = usage_parts_load(v[4 + i - r->first].data, v[4 + i - r->first].n_bytes,
                              &row->figures.by[i], r->mem, r->reterr);
    return st;
}

static int
take_row(void *cookie, const il_guard_row *from)
{
    struct reading_rows *r   = cookie;
    struct usage_row     row = { .date = 0 };

    CHECK(from->n >= 4 + r->last - r->first);
    r->status = decode(r, from->values, &row);
    if (r->status == IL_OK)
        r->each(r->cookie, &row);
    else if (r->status == IL_CORRUPT && r->skip_damaged)
        r->status = IL_OK;
    return r->status == IL_OK;
}

/* Without a retry: rows would be given twice. A reader waits for nobody. */
static il_status
read_rows(il_guard *g, const struct app_statement *s, const il_guard_value *values, size_t n_values,
          struct reading_rows *r)
{
    il_guard_tx_opts o  = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx     *tx = NULL;

    o.flags      = IL_GUARD_READ_ONLY;
    il_status st = il_guard_begin(g, &o, &tx, r->reterr);
    if (st == IL_OK)
        st = il__tables_run(tx, s, values, n_values, take_row, r, NULL, r->reterr);
    il_guard_rollback(tx);
    return st == IL_OK ? r->status : st;
}

struct one {
    struct usage_row row;
    bool             found;
};

static void
keep_row(void *cookie, const struct usage_row *row)
{
    struct one *one = cookie;
    void       *mem = one->row.figures.mem;

    one->row             = *row;
    one->row.figures.mem = mem;
    one->found           = true;
}

il_status
usage_row_get(il_guard *g, const char *tenant, usage_date date, struct usage_row *ret,
              il_error *reterr)
{
    struct one          one = { .found = false };
    struct reading_rows r   = { .last   = USAGE_BY_COUNT,
                                .mem    = &one.row.figures.mem,
                                .each   = keep_row,
                                .cookie = &one,
                                .reterr = reterr };
    char                text[IL__DATE_TEXT_BYTES];

    il_status st = read_rows(
        g, &get, APP_VALUES(il_guard_text(tenant), il_guard_text(il__date_text(date, text))), &r);
    if (st == IL_OK && !one.found)
        st = il__error_set(reterr, IL_NOT_FOUND, "no figures stored for %s", text);
    if (st == IL_OK)
        *ret = one.row;
    else
        usage_row_release(&one.row);
    return st;
}

il_status
usage_row_range(il_guard *g, const char *tenant, usage_date from, usage_date to, enum usage_by by,
                void **mem, usage_row_fn *each, void *cookie, il_error *reterr)
{
    struct reading_rows r = { .first        = by,
                              .last         = by == USAGE_BY_NONE ? by : by + 1,
                              .skip_damaged = true,
                              .mem          = mem,
                              .each         = each,
                              .cookie       = cookie,
                              .reterr       = reterr };
    char                first[IL__DATE_TEXT_BYTES], last[IL__DATE_TEXT_BYTES];

    return read_rows(g, &range,
                     APP_VALUES(il_guard_text(tenant), il_guard_text(il__date_text(from, first)),
                                il_guard_text(il__date_text(to, last)), il_guard_int(by)),
                     &r);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The columns of a row as texts: the parts, then the total. */
struct columns {
    struct il__buf texts[USAGE_BY_COUNT + 1];
};

static void
columns_release(struct columns *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->texts); i++)
        il__buf_release(&c->texts[i]);
}

static bool
columns_print(struct columns *c, const struct usage_figures *f)
{
    bool ok = true;

    for (size_t i = 0; i < ARRAY_LEN(c->texts); i++) {
        il__buf_init(&c->texts[i], COLUMN_BYTES_MAX);
        if (i < USAGE_BY_COUNT)
            usage_parts_store(&c->texts[i], &f->by[i]);
        else
            usage_metrics_store(&c->texts[i], &f->total);
        ok = ok && !c->texts[i].failed;
    }
    return ok;
}

struct statement {
    const struct app_statement *sql;
    const il_guard_value       *values;
    size_t                      n_values;
    il_guard_row_fn            *each;
    void                       *cookie;
    int64_t                     n_changed;
};

static il_status
run(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct statement *s = cookie;

    return il__tables_run(tx, s->sql, s->values, s->n_values, s->each, s->cookie, &s->n_changed,
                          reterr);
}

il_status
usage_row_put(il_guard *g, const il_guard_fence *fence, const struct usage_row *row,
              const char *raw, il_error *reterr)
{
    AUTO(columns_release) struct columns c = { .texts = { { .data = NULL } } };
    il_guard_tx_opts                     o = IL_GUARD_TX_OPTS_INIT;
    char                                 date[IL__DATE_TEXT_BYTES];

    if (!columns_print(&c, &row->figures))
        return il__error_nomem(reterr);
    const il_guard_value values[] = {
        il_guard_text(fence->tenant),
        il_guard_text(il__date_text(row->date, date)),
        il_guard_text(raw),
        il_guard_text(il__buf_str(&c.texts[USAGE_BY_USER])),
        il_guard_text(il__buf_str(&c.texts[USAGE_BY_MODEL])),
        il_guard_text(il__buf_str(&c.texts[USAGE_BY_PROVIDER])),
        il_guard_text(il__buf_str(&c.texts[USAGE_BY_COUNT])),
        il_guard_int(row->updated_ms),
        il_guard_int(row->complete),
    };
    struct statement s = { .sql = &put, .values = values, .n_values = ARRAY_LEN(values) };
    o.pipeline         = "usage";
    o.timeout_ms       = WRITE_MS;
#ifndef IL_MUTANT_usage_writes_without_fence
    o.fences   = fence;
    o.n_fences = 1;
#endif
    return il_guard_transact(g, &o, run, &s, NULL, reterr);
}

struct purged {
    char tenant[IL_TENANT_BYTES_MAX + 1], date[IL__DATE_TEXT_BYTES];
};
struct purging {
    struct statement s;
    struct purged   *days; /* of this attempt */
    size_t           n, max;
};

static int
take_purged(void *cookie, const il_guard_row *row)
{
    struct purging *p = cookie;

    CHECK(p->n < p->max);
    struct purged *day = &p->days[p->n++];
    (void)snprintf(day->tenant, sizeof day->tenant, "%s", (const char *)row->values[0].data);
    (void)snprintf(day->date, sizeof day->date, "%s", (const char *)row->values[1].data);
    return 1;
}

static il_status
run_purge(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct purging *p = cookie;

    p->n = 0;
    return run(&p->s, tx, reterr);
}

il_status
usage_row_purge(il_guard *g, usage_date before, int64_t limit,
                void (*each)(void *cookie, const char *tenant, const char *date), void *cookie,
                int64_t *ret_n, il_error *reterr)
{
    AUTO_FREE struct purged *days = il__calloc((size_t)limit, sizeof *days);
    char                     text[IL__DATE_TEXT_BYTES];
    const il_guard_value     values[] = { il_guard_text(il__date_text(before, text)),
                                          il_guard_int(limit) };
    struct purging           p        = { .s    = { .sql      = &purge,
                                                    .values   = values,
                                                    .n_values = ARRAY_LEN(values),
                                                    .each     = take_purged,
                                                    .cookie   = &p },
                                          .days = days,
                                          .max  = (size_t)limit };

    if (days == NULL)
        return il__error_nomem(reterr);
    il_status st = il_guard_transact(g, NULL, run_purge, &p, NULL, reterr);
    /* Not within the transaction: it may be tried again, and whoever reads a row before its commit
     * would fill its marker anew. Also if it failed: the commit may have been done all the same,
     * and a marker that is missing costs one more read of the row. */
    for (size_t i = 0; i < p.n; i++)
        each(cookie, days[i].tenant, days[i].date);
    if (st == IL_OK)
        *ret_n = p.s.n_changed;
    return st;
}
