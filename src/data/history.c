/*
 * history.c: details of pipeline runs, in addition to their row in the store. Long texts are
 * truncated and invalid UTF-8 is replaced: a step's output must never prevent its outcome from
 * being recorded.
 *
 * Order of a write: the rows of the runs first, sorted by (tenant, run), then steps, then joins.
 * Only the transaction that has locked a run's row writes or purges what belongs to the run. So two
 * servers that write at once may wait for each other but never deadlock, and a run is purged
 * completely.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "core/key.h"
#include "data/history.h"
#include "data/data_internal.h"

#define SHORT_BYTES_MAX 256 /* names, types, states */
#define DETAIL_PARAMS 10
#define STEP_PARAMS 17
#define JOIN_PARAMS 6

#define PURGE_RUNS 1000 /* of a call */
/* Limit of one transaction, which blocks other writers of a SQLite file and is rolled back after a
 * second. */
#define PURGE_RUNS_ONCE 16
#define PURGE_STEPS_ONCE 64

/* ---- input checks ---------------------------------------------------------------------------- */

static il_status
check_run(const char *tenant, const char *run, il_error *reterr)
{
    il_status st =
        il__check_optional("tenant of the run", tenant, IL_TENANT_BYTES_MAX, false, reterr);

    return st == IL_OK ? il__check_text("run id", run, 1, IL_ID_BYTES_MAX, false, reterr) : st;
}

/* JSON text cannot be truncated. */
static const char *
fit_json(void **arena, const char *text, size_t n_max)
{
    char omitted[64];

    if (text == NULL || strlen(text) <= n_max)
        return il__data_fit(arena, text, n_max);
    (void)snprintf(omitted, sizeof omitted, "{\"omitted_bytes\":%zu}", strlen(text));
    return il__arena_strdup(arena, omitted);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A run that this write concerns. */
struct entry {
    const char                   *tenant;
    const char                   *run;
    const struct il__data_detail *detail; /* or NULL */
};

struct write {
    const char                  *run_class;
    struct entry                *entries;
    size_t                       n_entries;
    const struct il__data_step  *steps;
    size_t                       n_steps;
    const struct il__data_join **joins; /* in order of their runs */
    size_t                       n_joins;
    void                        *arena;
};

static int
compare_runs(const char *tenant_a, const char *run_a, const char *tenant_b, const char *run_b)
{
    int by_tenant = strcmp(tenant_a, tenant_b);

    return by_tenant != 0 ? by_tenant : strcmp(run_a, run_b);
}

/* Within one run in the caller's order, by address of its details in their array; those without
 * come first. */
static int
compare_entries(const void *a, const void *b)
{
    const struct entry *x      = a;
    const struct entry *y      = b;
    int                 by_run = compare_runs(x->tenant, x->run, y->tenant, y->run);

    if (by_run != 0)
        return by_run;
    return (x->detail > y->detail) - (x->detail < y->detail);
}

static int
compare_joins(const void *a, const void *b)
{
    const struct il__data_join *x = *(const struct il__data_join *const *)a;
    const struct il__data_join *y = *(const struct il__data_join *const *)b;

    return compare_runs(x->tenant, x->run, y->tenant, y->run);
}

/* Run a statement whose texts were sanitised: a missing one means out of memory. */
static il_status
run_fitted(struct il__data *d, enum data_stmt stmt, const struct data_param *params, size_t n,
           unsigned numbers, il_error *reterr)
{
    for (size_t i = 0; i < n; i++) {
        if (params[i].text == NULL && (numbers >> i & 1) == 0)
            return il__error_set(reterr, IL_NOMEM, "out of memory for the history of a run");
    }
    return il__data_run(d, stmt, params, n, NULL, NULL, reterr);
}

static il_status
set_detail(struct il__data *d, struct write *w, const struct il__data_detail *x, il_error *reterr)
{
    const struct data_param params[DETAIL_PARAMS] = {
        DATA_TEXT(x->tenant),
        DATA_TEXT(x->run),
        DATA_TEXT(il__data_fit(&w->arena, x->pipeline, SHORT_BYTES_MAX)),
        DATA_TEXT(il__data_fit(&w->arena, x->version, SHORT_BYTES_MAX)),
        DATA_TEXT(il__data_fit(&w->arena, x->node, SHORT_BYTES_MAX)),
        DATA_TEXT(fit_json(&w->arena, x->parameters, DATA_DETAILS_BYTES_MAX)),
        DATA_NUMBER(x->renewals),
        DATA_NUMBER(x->renewed_at_ms),
        DATA_NUMBER(x->created_at_ms),
        DATA_TEXT(w->run_class),
    };

    return run_fitted(d, DATA_run_detail_set, params, DETAIL_PARAMS, 0x1c0, reterr);
}

/* Make sure that each run has its row, locked by us where possible. */
static il_status
write_runs(struct il__data *d, struct write *w, il_error *reterr)
{
    int64_t   now_ms = il__clock_wall_ms();
    il_status st     = IL_OK;

    for (size_t i = 0; st == IL_OK && i < w->n_entries; i++) {
        const struct entry     *e        = &w->entries[i];
        const struct data_param params[] = { DATA_TEXT(e->tenant), DATA_TEXT(e->run),
                                             DATA_NUMBER(now_ms), DATA_TEXT(w->run_class) };
        bool again = i > 0 && compare_runs(e[-1].tenant, e[-1].run, e->tenant, e->run) == 0;
        if (e->detail != NULL)
            st = set_detail(d, w, e->detail, reterr);
        else if (!again)
            st =
                il__data_run(d, DATA_run_detail_add, params, ARRAY_LEN(params), NULL, NULL, reterr);
    }
    return st;
}

static il_status
set_step(struct il__data *d, struct write *w, const struct il__data_step *x, il_error *reterr)
{
    const struct data_param params[STEP_PARAMS] = {
        DATA_TEXT(x->tenant),
        DATA_TEXT(x->run),
        DATA_NUMBER(x->n),
        DATA_NUMBER(x->attempt),
        DATA_TEXT(x->step),
        DATA_TEXT(il__data_fit(&w->arena, x->type, SHORT_BYTES_MAX)),
        DATA_TEXT(il__data_fit(&w->arena, x->state, SHORT_BYTES_MAX)),
        DATA_NUMBER(x->level),
        DATA_NUMBER(x->started_at_ms),
        DATA_NUMBER(x->ended_at_ms),
        DATA_NUMBER(x->exit_code),
        DATA_NUMBER(x->out_bytes),
        DATA_NUMBER(x->err_bytes),
        DATA_TEXT(il__data_fit(&w->arena, x->error, IL_TEXT_BYTES_MAX)),
        DATA_TEXT(fit_json(&w->arena, x->details, DATA_DETAILS_BYTES_MAX)),
        DATA_TEXT(il__data_fit_tail(&w->arena, x->out, DATA_OUTPUT_BYTES_MAX)),
        DATA_TEXT(il__data_fit_tail(&w->arena, x->err, DATA_OUTPUT_BYTES_MAX)),
    };

    return run_fitted(d, DATA_run_step_set, params, STEP_PARAMS, 0x1f8c, reterr);
}

static il_status
add_join(struct il__data *d, struct write *w, const struct il__data_join *x, il_error *reterr)
{
    const struct data_param params[JOIN_PARAMS] = {
        DATA_TEXT(x->tenant),
        DATA_TEXT(x->run),
        DATA_NUMBER(x->at_ms),
        DATA_TEXT(il__data_fit(&w->arena, x->request_id, SHORT_BYTES_MAX)),
        DATA_TEXT(il__data_fit(&w->arena, x->by, SHORT_BYTES_MAX)),
        DATA_TEXT(il__data_fit(&w->arena, x->trigger, SHORT_BYTES_MAX)),
    };

    return run_fitted(d, DATA_run_join_add, params, JOIN_PARAMS, 0x4, reterr);
}

static il_status
write_joins(struct il__data *d, struct write *w, il_error *reterr)
{
    il_status st = IL_OK;

    for (size_t i = 0; st == IL_OK && i < w->n_joins; i++) {
        const struct il__data_join *x        = w->joins[i];
        const struct data_param     params[] = { DATA_TEXT(x->tenant), DATA_TEXT(x->run),
                                                 DATA_NUMBER(DATA_JOINS_MAX) };
        st                                   = add_join(d, w, x, reterr);
        if (st == IL_OK &&
            (i + 1 == w->n_joins || compare_joins(&w->joins[i], &w->joins[i + 1]) != 0))
            st = il__data_run(d, DATA_run_join_trim, params, ARRAY_LEN(params), NULL, NULL, reterr);
    }
    return st;
}

static il_status
write_all(struct il__data *d, void *cookie, il_error *reterr)
{
    struct write *w  = cookie;
    il_status     st = write_runs(d, w, reterr);

    for (size_t i = 0; st == IL_OK && i < w->n_steps; i++)
        st = set_step(d, w, &w->steps[i], reterr);
    return st == IL_OK ? write_joins(d, w, reterr) : st;
}

static il_status
add_entry(struct write *w, const char *tenant, const char *run,
          const struct il__data_detail *detail, il_error *reterr)
{
    w->entries[w->n_entries++] = (struct entry){ tenant, run, detail };
    if (tenant == NULL)
        return il__error_set(reterr, IL_INVAL, "the tenant of a run is missing");
    return check_run(tenant, run, reterr);
}

/* Collect the runs of this write, sorted. */
static il_status
gather(struct write *w, const struct il__data_detail *details, size_t n_details,
       const struct il__data_join *joins, il_error *reterr)
{
    size_t    n  = n_details + w->n_steps + w->n_joins;
    il_status st = IL_OK;

    w->entries = il__arena_alloc(&w->arena, n * sizeof *w->entries);
    w->joins   = il__arena_alloc(&w->arena, (w->n_joins + 1) * sizeof(void *));
    if (w->entries == NULL || w->joins == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for the history of runs");
    for (size_t i = 0; st == IL_OK && i < n_details; i++)
        st = add_entry(w, details[i].tenant, details[i].run, &details[i], reterr);
    for (size_t i = 0; st == IL_OK && i < w->n_steps; i++) {
        st = add_entry(w, w->steps[i].tenant, w->steps[i].run, NULL, reterr);
        if (st == IL_OK)
            st = il__check_text("step id", w->steps[i].step, 1, SHORT_BYTES_MAX, false, reterr);
    }
    for (size_t i = 0; st == IL_OK && i < w->n_joins; i++) {
        w->joins[i] = &joins[i];
        st          = add_entry(w, joins[i].tenant, joins[i].run, NULL, reterr);
    }
    if (st == IL_OK) {
        qsort(w->entries, w->n_entries, sizeof *w->entries, compare_entries);
        qsort(w->joins, w->n_joins, sizeof(void *), compare_joins);
    }
    return st;
}

il_status
il__data_history_write(struct il__data *d, const char *run_class,
                       const struct il__data_detail *details, size_t n_details,
                       const struct il__data_step *steps, size_t n_steps,
                       const struct il__data_join *joins, size_t n_joins, il_error *reterr)
{
    struct write w = {
        .run_class = run_class, .steps = steps, .n_steps = n_steps, .n_joins = n_joins
    };

    CHECK(run_class != NULL && run_class[0] != '\0');
    if (n_details + n_steps + n_joins == 0)
        return IL_OK;
    il_status st = gather(&w, details, n_details, joins, reterr);
    if (st == IL_OK)
        st = il__data_transaction(d, write_all, &w, reterr);
    il__arena_free(&w.arena);
    return st;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
    il__data_detail_fn *each_detail;
    il__data_step_fn   *each_step;
    il__data_join_fn   *each_join;
    void               *cookie;
};

static void
take_detail(void *cookie, const struct data_row *row)
{
    const struct reading  *r = cookie;
    struct il__data_detail x = {
        .tenant        = row->columns[0].text,
        .run           = row->columns[1].text,
        .pipeline      = row->columns[2].text,
        .version       = row->columns[3].text,
        .node          = row->columns[4].text,
        .parameters    = row->columns[5].text,
        .renewals      = row->columns[6].number,
        .renewed_at_ms = row->columns[7].number,
        .created_at_ms = row->columns[8].number,
    };

    r->each_detail(r->cookie, &x);
}

il_status
il__data_history_detail(struct il__data *d, const char *tenant, const char *run,
                        il__data_detail_fn *each, void *cookie, il_error *reterr)
{
    struct reading          r        = { .each_detail = each, .cookie = cookie };
    const struct data_param params[] = { DATA_TEXT(tenant), DATA_TEXT(run) };
    il_status               st       = check_run(tenant, run, reterr);

    return st == IL_OK ? il__data_read(d, DATA_run_detail_get, params, ARRAY_LEN(params),
                                       take_detail, &r, reterr)
                       : st;
}

static void
take_step(void *cookie, const struct data_row *row)
{
    const struct reading *r = cookie;
    struct il__data_step  x = {
         .tenant        = row->columns[0].text,
         .run           = row->columns[1].text,
         .n             = (uint32_t)row->columns[2].number,
         .attempt       = (uint32_t)row->columns[3].number,
         .step          = row->columns[4].text,
         .type          = row->columns[5].text,
         .state         = row->columns[6].text,
         .level         = row->columns[7].number,
         .started_at_ms = row->columns[8].number,
         .ended_at_ms   = row->columns[9].number,
         .exit_code     = row->columns[10].number,
         .out_bytes     = row->columns[11].number,
         .err_bytes     = row->columns[12].number,
         .error         = row->columns[13].text,
         .details       = row->columns[14].text,
         .out           = row->columns[15].text,
         .err           = row->columns[16].text,
    };

    r->each_step(r->cookie, &x);
}

il_status
il__data_history_steps(struct il__data *d, const char *tenant, const char *run, bool with_output,
                       il__data_step_fn *each, void *cookie, il_error *reterr)
{
    struct reading          r        = { .each_step = each, .cookie = cookie };
    const struct data_param params[] = { DATA_TEXT(tenant), DATA_TEXT(run),
                                         DATA_NUMBER(DATA_STEPS_MAX) };
    il_status               st       = check_run(tenant, run, reterr);

    return st == IL_OK ? il__data_read(d, with_output ? DATA_run_step_list_all : DATA_run_step_list,
                                       params, ARRAY_LEN(params), take_step, &r, reterr)
                       : st;
}

il_status
il__data_history_step(struct il__data *d, const char *tenant, const char *run, const char *step,
                      il__data_step_fn *each, void *cookie, il_error *reterr)
{
    struct reading          r        = { .each_step = each, .cookie = cookie };
    const struct data_param params[] = { DATA_TEXT(tenant), DATA_TEXT(run),
                                         DATA_NUMBER(DATA_STEPS_MAX), DATA_TEXT(step) };
    il_status               st       = check_run(tenant, run, reterr);

    if (st == IL_OK)
        st = il__check_text("step id", step, 1, SHORT_BYTES_MAX, false, reterr);
    return st == IL_OK ? il__data_read(d, DATA_run_step_get, params, ARRAY_LEN(params), take_step,
                                       &r, reterr)
                       : st;
}

static void
take_join(void *cookie, const struct data_row *row)
{
    const struct reading *r = cookie;
    struct il__data_join  x = {
         .tenant     = row->columns[0].text,
         .run        = row->columns[1].text,
         .at_ms      = row->columns[2].number,
         .request_id = row->columns[3].text,
         .by         = row->columns[4].text,
         .trigger    = row->columns[5].text,
    };

    r->each_join(r->cookie, &x);
}

il_status
il__data_history_joins(struct il__data *d, const char *tenant, const char *run,
                       il__data_join_fn *each, void *cookie, il_error *reterr)
{
    struct reading          r        = { .each_join = each, .cookie = cookie };
    const struct data_param params[] = { DATA_TEXT(tenant), DATA_TEXT(run),
                                         DATA_NUMBER(DATA_JOINS_MAX) };
    il_status               st       = check_run(tenant, run, reterr);

    return st == IL_OK ? il__data_read(d, DATA_run_join_list, params, ARRAY_LEN(params), take_join,
                                       &r, reterr)
                       : st;
}

/* ---- counting -------------------------------------------------------------------------------- */

static void
take_usage(void *cookie, const struct data_row *row)
{
    struct il__data_usage *u = cookie;

    u->n_rows  = (uint64_t)row->columns[1].number;
    u->n_bytes = (uint64_t)row->columns[2].number;
    (void)snprintf(u->last, sizeof u->last, "%s", row->columns[3].text); /* ids fit */
}

il_status
il__data_history_usage(struct il__data *d, const char *tenant, const char *after, uint32_t limit,
                       struct il__data_usage *ret, il_error *reterr)
{
    const struct data_param params[] = { DATA_TEXT(tenant), DATA_TEXT(after),
                                         DATA_NUMBER(il__data_page(limit)) };

    *ret = (struct il__data_usage){ 0 };
    return il__data_read(d, DATA_run_usage, params, ARRAY_LEN(params), take_usage, ret, reterr);
}

/* ---- forgetting ------------------------------------------------------------------------------ */

struct purge {
    const char *run_class;
    int64_t     older_than_ms;
    int64_t     n_max;   /* runs of this transaction */
    uint64_t    n_found; /* runs */
    uint64_t    n_gone;  /* runs, in the transactions so far, not counting the open one */
    uint64_t    n_once;  /* of the open one */
    char        tenants[PURGE_RUNS_ONCE][IL_TENANT_BYTES_MAX + 1];
    char        runs[PURGE_RUNS_ONCE][IL_ID_BYTES_MAX + 1];
};

static void
take_old(void *cookie, const struct data_row *row)
{
    struct purge *p = cookie;

    CHECK(p->n_found < PURGE_RUNS_ONCE);
    (void)snprintf(p->tenants[p->n_found], sizeof p->tenants[0], "%s", row->columns[0].text);
    (void)snprintf(p->runs[p->n_found], sizeof p->runs[0], "%s", row->columns[1].text);
    p->n_found++;
}

/* Purge one run, but at most *budget of its steps; if that is not enough, *budget is 0 and the rest
 * of the run stays. */
static il_status
purge_run(struct il__data *d, struct purge *p, size_t i, uint64_t *budget, il_error *reterr)
{
    const struct data_param params[] = { DATA_TEXT(p->tenants[i]), DATA_TEXT(p->runs[i]),
                                         DATA_NUMBER((int64_t)*budget) };
    uint64_t                n_steps  = 0;

    il_status st =
        il__data_run(d, DATA_run_step_purge, params, 3, il__data_count_row, &n_steps, reterr);
    *budget -= MIN(n_steps, *budget);
    if (st != IL_OK || *budget == 0)
        return st;
    st = il__data_run(d, DATA_run_purge_joins, params, 2, NULL, NULL, reterr);
    if (st == IL_OK)
        st = il__data_run(d, DATA_run_purge, params, 2, il__data_count_row, &p->n_once, reterr);
    return st;
}

static il_status
purge_some(struct il__data *d, void *cookie, il_error *reterr)
{
    struct purge           *p        = cookie;
    const struct data_param params[] = { DATA_NUMBER(p->older_than_ms), DATA_NUMBER(p->n_max),
                                         DATA_TEXT(p->run_class) };
    uint64_t                budget   = PURGE_STEPS_ONCE;

    il_status st = il__data_run(d, DATA_run_old, params, ARRAY_LEN(params), take_old, p, reterr);
    for (size_t i = 0; st == IL_OK && budget > 0 && i < p->n_found; i++)
        st = purge_run(d, p, i, &budget, reterr);
    return st;
}

il_status
il__data_history_purge(struct il__data *d, const char *run_class, int64_t older_than_ms,
                       uint64_t *ret_n, il_error *reterr)
{
    struct purge p  = { .run_class = run_class, .older_than_ms = older_than_ms };
    il_status    st = IL_OK;

    CHECK(run_class != NULL && run_class[0] != '\0');
    *ret_n = 0;
    do {
        p.n_found = p.n_once = 0;
        p.n_max              = (int64_t)MIN(PURGE_RUNS - p.n_gone, PURGE_RUNS_ONCE);
        st                   = il__data_transaction(d, purge_some, &p, reterr);
        p.n_gone += st == IL_OK ? p.n_once : 0;
    } while (st == IL_OK && p.n_found > 0 && p.n_gone < PURGE_RUNS);
    *ret_n = p.n_gone;
    return st;
}
