/*
 * doctor_pipelines.c: the pipelines that apps register (apps/common/pipeline.h), for `interlock
 * doctor --checklist`: their answers, whether the database has the constraints that they rely on,
 * and what the last check of each invariant found.
 *
 * Constraints are looked for in the app's own tables, or in the database of --connection. The
 * results of invariants are those of the store.
 */
#include <stdio.h>

#include "apps/app.h"
#include "apps/common/invariant.h"
#include "apps/common/pipeline.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/parse.h"
#include "cli/app_tables.h"
#include "cli/doctor.h"
#include "cli/request.h"

#define NAME_BYTES 256

/* The parts of a pipeline: each is a list of names with a state and one more field. */
enum part {
    PART_LOCK,
    PART_CHECKLIST,
    PART_CONSTRAINT,
    PART_INVARIANT,
    PART_COUNT
};
static const struct {
    const char *list, *name, *more; /* the list in JSON, and its third field; NULL: it has none */
} parts[PART_COUNT] = {
    [PART_LOCK]       = { "locks", "lock", NULL },
    [PART_CHECKLIST]  = { "checklist", "checklist", "evidence" },
    [PART_CONSTRAINT] = { "constraints", "constraint", "table" },
    [PART_INVARIANT]  = { "invariants", "invariant", "checked_at" },
};

static const char *const items[CHECKLIST_COUNT] = {
#define X(id, name, question) name,
#include "apps/common/checklist.def"
#undef X
};

struct showing {
    const struct cli    *cli;
    il_guard_tx         *tx;    /* the database of --connection, or the app's tables; NULL: none */
    struct tables_place *place; /* NULL: the store has no tables */
    /* The app that keeps the history of invariants, and its tables; NULL: none. */
    const struct http_app *keeper;
    il_guard              *history;
    struct cli_grid       *grid;
    char                   name[NAME_BYTES]; /* of the pipeline, with its app */
    json_t                *lists[PART_COUNT];
    size_t                 n_missing; /* constraints */
    bool                   no_memory;
};

/* state and more may be NULL: not known. */
static void
add(struct showing *s, enum part part, const char *name, const char *state, const char *more)
{
    json_t *row =
        json_pack("{s:o, s:o}", "name", il__cli_json_text(name), "state", il__cli_json_text(state));

    if (parts[part].more != NULL)
        s->no_memory |= json_object_set_new(row, parts[part].more, il__cli_json_text(more)) != 0;
    s->no_memory |= json_array_append_new(s->lists[part], row) != 0;
    il__cli_grid_add(s->grid, "%s", s->name);
    il__cli_grid_add(s->grid, "%s", parts[part].name);
    il__cli_grid_add(s->grid, "%s", name);
    il__cli_grid_add(s->grid, "%s", state != NULL ? state : "unknown");
    il__cli_grid_add(s->grid, "%s", more != NULL ? more : "");
}

/* ---- the parts ------------------------------------------------------------------------------- */

static void
add_locks(struct showing *s, const struct http_app *app, const struct app_pipeline *p)
{
    for (const char *const *e = p->entities; e != NULL && *e != NULL; e++) {
        size_t i = 0;
        char   rank[32];
        CHECK(app->tables != NULL);
        while (i < app->tables->n_ranks && strcmp(app->tables->ranks[i].entity, *e) != 0)
            i++;
        CHECK(i < app->tables->n_ranks); /* a class without a rank cannot be locked */
        (void)snprintf(rank, sizeof rank, "rank %d", (int)app->tables->ranks[i].rank);
        add(s, PART_LOCK, *e, rank, NULL);
    }
}

static void
add_answers(struct showing *s, const struct app_pipeline *p)
{
    static const char *const answers[PIPELINE_ANSWER_COUNT] = {
        [PIPELINE_YES] = "yes", [PIPELINE_NO] = "no", [PIPELINE_NOT_APPLICABLE] = "not applicable"
    };

    for (size_t i = 0; i < CHECKLIST_COUNT; i++)
        add(s, PART_CHECKLIST, items[i], answers[p->checklist[i].answer], p->checklist[i].evidence);
}

static il_status
add_constraint(struct showing *s, const struct app_constraint *c, il_error *reterr)
{
    AUTO_BUF struct il__buf quoted = { 0 };
    const char             *state  = NULL;

    if (s->tx != NULL) {
        il__buf_init(&quoted, DOCTOR_TEXT_BYTES_MAX);
        il_status st = il__guard_quote(s->tx, c->table, NULL, &quoted, reterr);
        state        = "no table";
        if (st == IL_OK) {
            st    = il_guard_require_constraint(s->tx, c->table, c->name, reterr);
            state = st == IL_OK ? "found" : "missing";
            s->n_missing += st == IL_NOT_FOUND;
        }
        if (st != IL_OK && st != IL_NOT_FOUND)
            return st;
    }
    add(s, PART_CONSTRAINT, c->name, state, c->table);
    return IL_OK;
}

static il_status
add_invariant(struct showing *s, const struct http_app *app, const char *name, il_error *reterr)
{
    struct invariant_last last = { 0 };
    size_t                i    = 0;
    char                  full[NAME_BYTES], at[IL__TIME_TEXT_BYTES];

    while (i < app->n_invariants && strcmp(app->invariants[i].name, name) != 0)
        i++;
    CHECK(i < app->n_invariants);
    (void)snprintf(full, sizeof full, "%s.%s", app->name, name);
    if (s->history != NULL) {
        il_status st = s->keeper->last_result(s->history, CLI_SETTING(s->cli, tenant)->text, full,
                                              &last, reterr);
        if (st != IL_OK)
            return st;
    }
    if (last.started_ms == 0)
        add(s, PART_INVARIANT, full, "never checked", NULL);
    else
        add(s, PART_INVARIANT, full, last.outcome, il__time_text(last.started_ms, at));
    return IL_OK;
}

/* ---- pipelines ------------------------------------------------------------------------------- */

static il_status
add_pipeline(struct showing *s, const struct http_app *app, const struct app_pipeline *p,
             json_t *to, il_error *reterr)
{
    il_status st = IL_OK;

    (void)snprintf(s->name, sizeof s->name, "%s.%s", app->name, p->name);
    for (size_t i = 0; i < PART_COUNT; i++) {
        s->lists[i] = json_array();
        s->no_memory |= s->lists[i] == NULL;
    }
    add_locks(s, app, p);
    add_answers(s, p);
    for (size_t i = 0; i < p->n_constraints && st == IL_OK; i++)
        st = add_constraint(s, &p->constraints[i], reterr);
    for (const char *const *n = p->invariants; st == IL_OK && n != NULL && *n != NULL; n++)
        st = add_invariant(s, app, *n, reterr);
    json_t *one = json_pack("{s:o, s:o}", "name", il__cli_json_text(s->name), "summary",
                            il__cli_json_text(p->summary));
    for (size_t i = 0; i < PART_COUNT; i++)
        s->no_memory |= json_object_set_new(one, parts[i].list, s->lists[i]) != 0;
    s->no_memory |= json_array_append_new(to, one) != 0;
    return st;
}

static il_status
begin(il_guard *g, il_guard_tx **ret, il_error *reterr)
{
    il_guard_tx_opts o = IL_GUARD_TX_OPTS_INIT;

    o.flags  = IL_GUARD_READ_ONLY;
    o.caller = "interlock doctor";
    return il_guard_begin(g, &o, ret, reterr);
}

/* The tables of an app; *ret stays NULL if it has none here. */
static il_status
open_tables(const struct showing *s, const struct http_app *app, il_guard **ret, il_error *reterr)
{
    struct tables_opts o  = { .conns_max = 1, .existing = true };
    il_status          st = IL_NOT_FOUND;

    if (app->tables != NULL && s->place != NULL)
        st = il__tables_open(app->tables, s->place, &o, ret, reterr);
    return st == IL_NOT_FOUND ? IL_OK : st;
}

static il_status
add_app(struct showing *s, const struct http_app *app, json_t *to, il_error *reterr)
{
    il_guard    *g     = NULL;
    il_guard_tx *given = s->tx;
    il_status    st    = given == NULL ? open_tables(s, app, &g, reterr) : IL_OK;

    if (st == IL_OK && g != NULL)
        st = begin(g, &s->tx, reterr);
    for (size_t i = 0; i < app->n_pipelines && st == IL_OK; i++)
        st = add_pipeline(s, app, &app->pipelines[i], to, reterr);
    if (given == NULL)
        il_guard_rollback(s->tx);
    s->tx = given;
    il_guard_close(g);
    return st;
}

static il_status
open_history(struct showing *s, il_error *reterr)
{
    for (size_t i = 0; i < IL_APP_COUNT; i++) {
        if (il__apps[i]->last_result == NULL)
            continue;
        s->keeper = il__apps[i];
        return open_tables(s, s->keeper, &s->history, reterr);
    }
    return IL_OK;
}

static size_t
count_pipelines(void)
{
    size_t n = 0;

    for (size_t i = 0; i < IL_APP_COUNT; i++)
        n += il__apps[i]->n_pipelines;
    return n;
}

il_status
il__doctor_pipelines(const struct cli *cli, il_guard_tx *tx, json_t *to, struct cli_grid *grid,
                     size_t *ret_n_missing, il_error *reterr)
{
    static const char *const headers[] = { "PIPELINE", "PART", "NAME", "STATE", "DETAIL" };
    struct showing           s         = { .cli = cli, .tx = tx, .grid = grid };
    il_status                st        = IL_OK;

    il__cli_grid_init(grid, headers, ARRAY_LEN(headers));
    if (count_pipelines() == 0)
        return IL_OK;
    if (!il__cli_is_remote(cli))
        st = il__cli_tables_place(cli, &s.place, reterr);
    if (st == IL_OK)
        st = open_history(&s, reterr);
    for (size_t i = 0; i < IL_APP_COUNT && st == IL_OK; i++)
        st = add_app(&s, il__apps[i], to, reterr);
    il_guard_close(s.history);
    il__tables_place_close(s.place);
    *ret_n_missing = s.n_missing;
    return st == IL_OK && s.no_memory ? il__error_nomem(reterr) : st;
}
