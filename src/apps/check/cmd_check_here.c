/*
 * cmd_check_here.c: `interlock check` without a server: invariants of files and of apps, run in
 * this process. Their results are kept in the history, with those of servers on the same store.
 */
#include "apps/app.h"
#include "apps/check/cmd_check.h"
#include "apps/check/history.h"
#include "base/error.h"
#include "cli/app_tables.h"
#include "cli/cli.h"

#define LINE_BYTES_MAX 8192

/* ---- which ----------------------------------------------------------------------------------- */

/* PATH:LINE: field: reason, as compilers do. */
static void
print_fault(void *cookie, const struct doc_remark *m)
{
    AUTO_BUF struct il__buf line = { 0 };

    (void)cookie;
    il__buf_init(&line, LINE_BYTES_MAX);
    il__cli_escape(&line, m->path);
    if (m->line > 0)
        il__buf_addf(&line, ":%zu", m->line);
    il__buf_adds(&line, ": ");
    il__cli_escape(&line, m->field);
    il__buf_adds(&line, m->field[0] != '\0' ? ": " : "");
    il__cli_escape(&line, m->text);
    (void)fprintf(stderr, "%s%s%s\n", il__cli_style(stderr, CLI_RED), il__buf_str(&line),
                  il__cli_style(stderr, CLI_PLAIN));
}

/* Does it have tables to check? If they cannot be opened, its invariants say why. */
static bool
has_tables(const struct check_session *s, const struct http_app *app)
{
    struct tables_opts o = { .conns_max = 1, .existing = true };
    il_guard          *g = NULL;

    if (app->n_invariants == 0 || s->place == NULL)
        return false;
    il_status st = il__tables_open(app->tables, s->place, &o, &g, NULL);
    il_guard_close(g);
    return st != IL_NOT_FOUND;
}

il_status
il__check_here_load(struct check_session *s, il_error *reterr)
{
    const struct il__setting *tenant = CLI_SETTING(s->cli, tenant);
    const char               *dir    = CLI_SETTING(s->cli, checks)->text;
    const char               *only   = tenant->source != IL__FROM_DEFAULT ? tenant->text : NULL;
    il_status                 st     = il__cli_tables_place(s->cli, &s->place, reterr);

    for (size_t i = 0; i < IL_APP_COUNT && st == IL_OK; i++) {
        if (has_tables(s, il__apps[i]))
            st = il__checks_add_app(&s->set, il__apps[i], tenant->text, reterr);
    }
    if (st == IL_OK && dir != NULL && dir[0] != '\0')
        st = il__checks_load(&s->set, dir, only, print_fault, NULL, reterr);
    if (st == IL_OK && s->set.n == 0)
        return il__error_set(reterr, IL_INVAL,
                             "check: no invariants; pass --checks DIR or configure `checks`%s%s",
                             only != NULL ? ", for tenant " : "", only != NULL ? only : "");
    return st;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Called from several threads: the configuration does not change while they run. */
static il_status
url_of(void *cookie, const char *connection, char **ret, il_error *reterr)
{
    const struct check_session *s      = cookie;
    const struct cli_config    *config = &s->cli->config;

    for (size_t i = 0; i < config->n_connections; i++) {
        if (strcmp(config->connections[i].name, connection) == 0)
            return il__cli_connection_url(&config->connections[i], ret, reterr);
    }
    return il__error_set(reterr, IL_NOT_FOUND, "connection '%.64s' is not configured", connection);
}

/* The tables of an app, with those of its other processes. */
static il_status
tables_of(void *cookie, const struct http_app *app, il_guard **ret, il_error *reterr)
{
    const struct check_session *s = cookie;
    struct tables_opts          o = { .conns_max = 1, .existing = true };

    return il__tables_open(app->tables, s->place, &o, ret, reterr);
}

static void
show_progress(void *cookie, const struct check_result *r, size_t n_ended, size_t n)
{
    const struct check_session *s = cookie;

    il__cli_progress(s->cli, n_ended, n, r->check->name);
}

/* ---- history --------------------------------------------------------------------------------- */

static il_status
keep(const struct check_session *s, il_guard *g, il_error *reterr)
{
    il_status st = IL_OK;

    for (size_t i = 0; i < s->n && st == IL_OK; i++) {
        const struct check_result *r    = &s->results[i];
        char                      *runs = NULL;
        if (r->outcome == CHECK_SKIPPED)
            continue;
        if (r->outcome == CHECK_BROKEN)
            runs = il__check_active_runs(s->cli->store, r->check->tenant);
        st = il__check_history_add(g, r, NULL, runs, reterr);
        free(runs); /* NOLINT: jansson allocated it */
    }
    return st;
}

/* Looking creates no store, so without one there is no history. What was found counts even if it
 * cannot be kept. */
static void
keep_results(struct check_session *s)
{
    struct tables_opts o = { .conns_max = 1 };
    il_guard          *g = NULL;
    il_error           err;
    il_status          st = il__cli_store_open(s->cli, false, &err);

    if (st == IL_OK && (s->cli->store_missing || s->place == NULL))
        return;
    if (st == IL_OK)
        st = il__tables_open(&il__check_tables, s->place, &o, &g, &err);
    if (st == IL_OK)
        st = keep(s, g, &err);
    if (st != IL_OK)
        il__cli_note(s->cli, "cannot store the results: %s", err.message);
    il_guard_close(g);
}

il_status
il__check_here_run(struct check_session *s, il_error *reterr)
{
    struct check_how how = { .url = url_of, .ended = show_progress, .cookie = s };

    if (s->place != NULL)
        how.tables = tables_of;
    il_status st = il__checks_run(s->chosen, s->n, &how, s->results, reterr);
    if (st == IL_OK)
        keep_results(s);
    return st;
}
