/*
 * history.c: the history of invariants: one row per result, in table check_result (sql/).
 *
 * Rows are only added and, when they are old, deleted, each by a statement of its own: there is no
 * read-modify-write, so nothing has to be locked.
 */
#include "apps/check/history.h"

#include <stdio.h>

#include "apps/check/check.h"
#include "base/error.h"

#include "apps/check/check_sql.inc"

static const char *const sqlite_steps[]   = { sql_check_sqlite_1 };
static const char *const postgres_steps[] = { sql_check_postgres_1 };

static const struct il__schema sqlite   = IL__SCHEMA(1, sqlite_steps);
static const struct il__schema postgres = IL__SCHEMA(1, postgres_steps);

const struct app_tables il__check_tables = {
    .name     = "check",
    .sqlite   = &sqlite,
    .postgres = &postgres,
};

struct statement {
    const char           *sql;
    const il_guard_value *values;
    size_t                n_values;
    il_guard_row_fn      *each;
    void                 *cookie;
    int64_t               n_changed;
};

static il_status
execute(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct statement    *s = cookie;
    const il_guard_query q = { .sql      = s->sql,
                               .values   = s->values,
                               .n_values = s->n_values,
                               .each     = s->each,
                               .cookie   = s->cookie };

    return il_guard_exec(tx, &q, &s->n_changed, reterr);
}

/* Consumes the value; NULL: out of memory. */
static char *
dump(json_t *value)
{
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;

    json_decref(value);
    return text;
}

il_status
il__check_history_add(il_guard *g, const struct check_result *r, const char *id, const char *runs,
                      il_error *reterr)
{
    char     *offenders  = dump(il__check_offenders_json(&r->found));
    char     *not_needed = dump(il__check_not_needed_json(&r->found));
    il_status st         = IL_NOMEM;
    char      new_id[37];

    CHECK(r->outcome == CHECK_PASSED || r->outcome == CHECK_BROKEN || r->outcome == CHECK_ERROR);
    if (offenders == NULL || not_needed == NULL)
        (void)il__error_set(reterr, IL_NOMEM, "history of checks: out of memory");
    else if ((st = id == NULL ? il_uuid(new_id) : IL_OK) != IL_OK)
        (void)il__error_set(reterr, st, "cannot read random bytes");
    if (st == IL_OK) {
        const il_guard_value values[] = {
            il_guard_text(r->check->tenant),
            il_guard_text(id != NULL ? id : new_id),
            il_guard_text(r->check->name),
            il_guard_text(il__invariant_severity_name(r->check->severity)),
            il_guard_text(il__check_outcome_name(r->outcome)),
            il_guard_int(r->found.n_new),
            il_guard_int(r->found.n_known),
            il_guard_text(offenders),
            il_guard_text(not_needed),
            il_guard_text(runs != NULL ? runs : "[]"),
            il_guard_text(r->outcome == CHECK_ERROR ? r->error.message : ""),
            il_guard_int(r->started_ms),
            il_guard_int(r->took_ms),
        };
        struct statement s = { .sql      = sql_check_result_add,
                               .values   = values,
                               .n_values = ARRAY_LEN(values) };
        st                 = il_guard_transact(g, NULL, execute, &s, NULL, reterr);
    }
    free(offenders);  /* NOLINT: jansson allocated it */
    free(not_needed); /* NOLINT */
    return st;
}

struct listing {
    check_record_fn *each;
    void            *cookie;
};

static int
take_record(void *cookie, const il_guard_row *row)
{
    const struct listing *l = cookie;
    const il_guard_value *v = row->values;

    CHECK(row->n == 12);
    l->each(l->cookie, &(struct check_record){ .id         = v[0].data,
                                               .name       = v[1].data,
                                               .severity   = v[2].data,
                                               .outcome    = v[3].data,
                                               .n_new      = v[4].integer,
                                               .n_known    = v[5].integer,
                                               .offenders  = v[6].data,
                                               .not_needed = v[7].data,
                                               .runs       = v[8].data,
                                               .error      = v[9].data,
                                               .started_ms = v[10].integer,
                                               .took_ms    = v[11].integer });
    return 1;
}

/* Read rows, without a retry: they would be given twice. */
static il_status
read_rows(il_guard *g, const il_guard_tx_opts *opts, struct statement *s, il_error *reterr)
{
    il_guard_tx_opts o  = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx     *tx = NULL;

    if (opts != NULL)
        o = *opts;
    o.flags      = IL_GUARD_READ_ONLY;
    il_status st = il_guard_begin(g, &o, &tx, reterr);
    if (st == IL_OK)
        st = execute(s, tx, reterr);
    il_guard_rollback(tx);
    return st;
}

il_status
il__check_history_list(il_guard *g, const struct check_wanted *w, check_record_fn *each,
                       void *cookie, il_error *reterr)
{
    struct listing       l        = { each, cookie };
    const il_guard_value values[] = {
        il_guard_text(w->tenant),
        il_guard_int(w->after != NULL ? w->after->started_ms : INT64_MAX),
        il_guard_text(w->after != NULL ? w->after->id : ""),
        il_guard_int(w->limit),
        il_guard_text(w->prefix != NULL ? w->prefix : ""),
        il_guard_text(w->name),
    };
    struct statement s = { .sql =
                               w->name != NULL ? sql_check_result_list_of : sql_check_result_list,
                           .values   = values,
                           .n_values = w->name != NULL ? 6 : 5,
                           .each     = take_record,
                           .cookie   = &l };

    return read_rows(g, w->opts, &s, reterr);
}

il_status
il__check_history_get(il_guard *g, const char *tenant, const char *id, const il_guard_tx_opts *opts,
                      check_record_fn *each, void *cookie, il_error *reterr)
{
    struct listing       l        = { each, cookie };
    const il_guard_value values[] = { il_guard_text(tenant), il_guard_text(id) };
    struct statement     s        = { .sql      = sql_check_result_get,
                                      .values   = values,
                                      .n_values = ARRAY_LEN(values),
                                      .each     = take_record,
                                      .cookie   = &l };

    return read_rows(g, opts, &s, reterr);
}

static int
take_outcome(void *cookie, const il_guard_row *row)
{
    const char *broken = il__check_outcome_name(CHECK_BROKEN);

    *(enum check_outcome *)cookie =
        strcmp(row->values[0].data, broken) == 0 ? CHECK_BROKEN : CHECK_PASSED;
    return 1;
}

il_status
il__check_history_last(il_guard *g, const char *tenant, const char *name, enum check_outcome *ret,
                       il_error *reterr)
{
    enum check_outcome   found    = CHECK_NOT_RUN;
    const il_guard_value values[] = { il_guard_text(tenant), il_guard_text(name) };
    struct statement     s        = { .sql      = sql_check_result_last,
                                      .values   = values,
                                      .n_values = ARRAY_LEN(values),
                                      .each     = take_outcome,
                                      .cookie   = &found };
    il_status            st       = read_rows(g, NULL, &s, reterr);

    if (st == IL_OK)
        *ret = found;
    return st;
}

static void
take_newest(void *cookie, const struct check_record *r)
{
    struct invariant_last *last = cookie;

    last->started_ms = r->started_ms;
    (void)snprintf(last->outcome, sizeof last->outcome, "%s", r->outcome);
}

il_status
il__check_history_newest(il_guard *g, const char *tenant, const char *name,
                         struct invariant_last *ret, il_error *reterr)
{
    struct invariant_last     found = { 0 };
    const struct check_wanted w     = { .tenant = tenant, .name = name, .limit = 1 };
    il_status                 st    = il__check_history_list(g, &w, take_newest, &found, reterr);

    if (st == IL_OK)
        *ret = found;
    return st;
}

struct broken {
    check_broken_fn *each;
    void            *cookie;
};

static int
take_broken(void *cookie, const il_guard_row *row)
{
    const struct broken *b = cookie;

    b->each(b->cookie, row->values[0].data, row->values[1].data);
    return 1;
}

il_status
il__check_history_broken(il_guard *g, check_broken_fn *each, void *cookie, il_error *reterr)
{
    struct broken    b = { each, cookie };
    struct statement s = { .sql = sql_check_result_broken, .each = take_broken, .cookie = &b };

    return read_rows(g, NULL, &s, reterr);
}

il_status
il__check_history_purge(il_guard *g, int64_t before_ms, int64_t limit, int64_t *ret_n,
                        il_error *reterr)
{
    const il_guard_value values[] = { il_guard_int(before_ms), il_guard_int(limit) };
    struct statement     s        = { .sql      = sql_check_result_purge,
                                      .values   = values,
                                      .n_values = ARRAY_LEN(values) };
    il_status            st       = il_guard_transact(g, NULL, execute, &s, NULL, reterr);

    if (st == IL_OK)
        *ret_n = s.n_changed;
    return st;
}

char *
il__check_active_runs(il *h, const char *tenant)
{
    il_op   op  = { .type = IL_OP_RUN_LIST, .tenant = tenant };
    json_t *ids = json_array();

    op.in.list.states = 1U << IL_RUN_RUNNING;
    op.in.list.limit  = IL_PAGE_ITEMS_MAX;
    bool ok           = ids != NULL && il_apply(h, &op, 1, NULL) == IL_OK && op.status == IL_OK;
    for (size_t i = 0; ok && i < op.out.n_runs && json_array_size(ids) < CHECK_ACTIVE_MAX; i++) {
        if (strncmp(op.out.runs[i].key, CHECK_CLASS ":", strlen(CHECK_CLASS ":")) != 0)
            ok = json_array_append_new(ids, json_string(op.out.runs[i].id)) == 0;
    }
    il_op_release(&op);
    char *text = ok ? json_dumps(ids, JSON_COMPACT) : NULL;
    json_decref(ids);
    return text;
}
