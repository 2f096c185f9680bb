/*
 * docs.c: `interlock debug docs`: the tables as Markdown, for the sections of files in docs between
 * `<!-- generated: NAME -->` and `<!-- end -->`. tools/docs-tables inserts them and detects drift.
 */
#include "apps/app.h"
#include "base/mutex.h"
#include "cli/cli.h"
#include "cli/debug.h"
#include "http/auth.h"
#include "http/route.h"

/* Escape the `|` in a cell. */
static void
cell(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|')
            (void)putchar('\\');
        (void)putchar(*text);
    }
}

static void
code_cell(const char *text)
{
    (void)fputs(text[0] != '\0' ? "`" : "", stdout);
    cell(text);
    (void)fputs(text[0] != '\0' ? "`" : "", stdout);
}

static void
docs_statuses(const struct cli_command *command UNUSED)
{
    (void)puts("| status | number | wire name | HTTP | exit | retry | meaning "
               "|\n|---|---|---|---|---|---|---|");
#define X(name, num, wire, http, exit_status, retry, text)                                \
    (void)printf("| `IL_%s` | %d | `%s` | %d | %d | %s | %s |\n", #name, num, wire, http, \
                 exit_status, retry ? "yes" : "no", text);
    IL_STATUS_MAP(X)
#undef X
}

/* Every status that a command can exit with must have a row there. */
static bool
has_exit(int number)
{
    const struct cli_exit_row *row = NULL;

    while ((row = il__cli_exit_next(row)) != NULL) {
        if (row->number == number)
            return true;
    }
    return false;
}

/* The commands that users see and that can, or cannot, exit with this row's status. */
static size_t
exit_commands(const struct cli_exit_row *row, bool applies, bool print)
{
    size_t n = 0;

    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        const struct cli_command *command = &il__cli_commands[i];
        if ((command->flags & (CLI_HIDDEN | CLI_FAMILY)) != 0 ||
            il__cli_exit_applies(row, command) != applies)
            continue;
        if (print)
            (void)printf("%s`%s`", n > 0 ? ", " : "", command->name);
        n++;
    }
    return n;
}

static void
docs_exits(const struct cli_command *command UNUSED)
{
    const struct cli_exit_row *row = NULL;

    for (int s = 0; s < IL_STATUS_COUNT; s++)
        CHECK(has_exit(il_status_exit((il_status)s)));
    (void)puts("| exit status | commands | meaning |\n|---|---|---|");
    while ((row = il__cli_exit_next(row)) != NULL) {
        size_t n_missing = exit_commands(row, false, false);
        bool   few       = n_missing >= exit_commands(row, true, false);
        (void)printf("| %d | ", row->number);
        if (!few)
            (void)fputs(n_missing == 0 ? "all" : "all but ", stdout);
        (void)exit_commands(row, few, true);
        (void)printf(" | %s |\n", row->text);
    }
}

static void
docs_ops(const struct cli_command *command UNUSED)
{
    (void)puts("| op | number | wire name | writes | description |\n|---|---|---|---|---|");
#define X(name, num, wire, writes, text)                                     \
    (void)printf("| `IL_OP_%s` | %d | `%s` | %s | %s |\n", #name, num, wire, \
                 writes ? "yes" : "no", text);
    IL_OP_MAP(X)
#undef X
}

static void
docs_commands(const struct cli_command *command)
{
    (void)puts("| command | description |\n|---|---|");
    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        const struct cli_command *row = &il__cli_commands[i];
        /* The commands of a family are in one table of their own, all levels together. */
        bool wanted = command == NULL ? il__cli_command_is_below(row, NULL)
                                      : il__cli_command_is_within(row, command) &&
                                            (row->flags & CLI_FAMILY) == 0;
        if ((row->flags & CLI_HIDDEN) != 0 || !wanted)
            continue;
        (void)printf("| `interlock %s ", row->name);
        cell(row->synopsis);
        (void)fputs("` | ", stdout);
        cell(row->summary);
        (void)puts(" |");
    }
}

static void
docs_options(const struct cli_command *command)
{
    enum cli_command_id scope = command != NULL ? command->id : CLI_CMD_common;

    (void)puts("| option | description | default |\n|---|---|---|");
    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        const struct cli_option *option   = &il__cli_options[i];
        const char              *fallback = il__cli_option_default(option);
        if (option->command != scope)
            continue;
        (void)fputs("| ", stdout);
        if (option->letter != 0)
            (void)printf("`-%c`, ", option->letter);
        (void)printf("`--%s%s%s` | ", option->name, option->argument[0] != '\0' ? " " : "",
                     option->argument);
        cell(option->help);
        if (option->spec.values[0] != '\0') {
            (void)fputs(": ", stdout);
            code_cell(option->spec.values);
        }
        (void)fputs(" | ", stdout);
        if (option->required)
            (void)fputs("required", stdout);
        code_cell(fallback != NULL ? fallback : "");
        (void)puts(" |");
    }
}

static void
docs_config(const struct cli_command *command UNUSED)
{
    (void)puts("| key | environment | default | meaning |\n|---|---|---|---|");
    for (size_t i = 0; i < CLI_KEY_COUNT; i++) {
        const struct cli_key *key = &il__cli_keys[i];
        (void)printf("| `%s` | `%s` | ", key->name, key->env);
        code_cell(key->fallback);
        (void)fputs(" | ", stdout);
        cell(key->help);
        (void)puts(" |");
    }
}

static void
print_metric(void *cookie UNUSED, const char *name, const char *help, uint64_t value UNUSED)
{
    (void)printf("| `%s` | ", name);
    cell(help);
    (void)puts(" |");
}

static void
docs_metrics(const struct cli_command *command UNUSED)
{
    il      *store;
    il_error err;

    (void)puts("| metric | counts |\n|---|---|");
    if (il_open("memory:", NULL, &store, &err) != IL_OK) {
        il__cli_error("%s", err.message);
        return;
    }
    il_metrics(store, print_metric, NULL);
    il_close(store);
}

static void
server_metric(const char *name, const char *type, const char *labels, const char *help)
{
    (void)printf("| `%s` | %s | %s | ", name, type, labels);
    cell(help);
    (void)puts(" |");
}

/* Rows with the same name are one metric. */
static void
queue_metric(const char *name, const char *type, const char *state, const char *help,
             const char **before)
{
    if (strcmp(name, *before) != 0)
        server_metric(name, type, state != NULL ? "tenant_id, queue, state" : "tenant_id, queue",
                      help);
    *before = name;
}

/* The metrics of /metrics in addition to the counters of its handle. */
static void
docs_server_metrics(const struct cli_command *command UNUSED)
{
    const char *before = "";

    (void)puts("| metric | type | labels | meaning |\n|---|---|---|---|");
    server_metric("interlock_batch_size", "histogram", "", "operations per committed batch");
    server_metric("interlock_commit_seconds", "histogram", "", "time to commit a batch");
#define X(id, name, type, labels, help) server_metric(name, type, labels, help);
#include "http/metrics_labels.def"
#undef X
#define X(name, type, fn, labels, help) server_metric(name, type, labels, help);
#include "http/metrics_pipeline.def"
#undef X
#define X(member, name, type, state, help) queue_metric(name, type, state, help, &before);
#include "http/metrics_queue.def"
#undef X
#define X(id, type, name, help) server_metric(name, #type, "", help);
#include "http/metrics.def"
#undef X
#define X(name, type, value, help) server_metric(name, type, "", help);
#include "http/metrics_values.def"
#undef X
#define X(member, name, type, help) server_metric(name, type, "", help);
#include "apps/metrics.inc"
#undef X
    for (size_t i = 0; i < IL_APP_COUNT; i++) {
        static const char *const types[] = { "counter", "gauge", "histogram" };
        for (size_t k = 0; k < il__apps[i]->n_metrics; k++) {
            const struct http_app_metric *m = &il__apps[i]->metrics[k];
            server_metric(m->name, types[m->type], m->label != NULL ? m->label : "", m->help);
        }
    }
}

static void
docs_log_events(const struct cli_command *command UNUSED)
{
    (void)puts("| event | level | meaning |\n|---|---|---|");
#define X(id, level, name, text) (void)printf("| `%s` | %s | %s |\n", name, #level, text);
#include "apps/events.inc"
#include "http/log.def"
#undef X
    for (size_t i = 0; i < IL_APP_COUNT; i++) {
        static const char *const levels[] = { "DEBUG", "INFO", "WARN", "ERROR" };
        for (size_t k = 0; k < il__apps[i]->n_events; k++) {
            const struct http_app_event *e = &il__apps[i]->events[k];
            (void)printf("| `%s` | %s | %s |\n", e->name, levels[e->level], e->text);
        }
    }
}

/* Routes that also exist without /api/v1 show it in parentheses. */
static void
route(const char *method, const char *path, const char *permission, unsigned flags,
      const char *summary)
{
    bool below = path[1] != '/';

    (void)printf("| `%s %s%s` | %s | ", method,
                 (flags & HTTP_BARE) != 0 ? "(/api/v1)"
                 : below                  ? "/api/v1"
                                          : "",
                 below ? path : path + 1, permission);
    cell(summary);
    (void)puts(" |");
}

static void
docs_routes(const struct cli_command *command UNUSED)
{
    (void)puts("| call | permission | description |\n|---|---|---|");
#define R(method, path, permission, names, id, fn, query, body, answer, flags, summary) \
    route(method, path, #permission, flags, summary);
#define OP(method, path, permission, id, fn, op, answer, flags, summary) \
    route(method, path, #permission, flags, summary);
#define DO OP
#include "http/routes.def"
#undef R
#undef OP
#undef DO
}

static void
docs_app_routes(const struct http_app *app)
{
    (void)puts("| call | permission | description |\n|---|---|---|");
    for (size_t i = 0; i < app->n_routes; i++) {
        const struct http_route *r = &app->routes[i];
        route(r->method, r->path,
              r->grant != NULL ? r->grant : http_permission_name(r->permission.role), r->flags,
              r->summary);
    }
}

static void
http_error(const char *code, int http, il_status status, const char *text)
{
    (void)printf("| `%s` | %d | `%s` | %s |\n", code, http, il_status_name(status), text);
}

/* Error codes in addition to the statuses. */
static void
docs_http_errors(const struct cli_command *command UNUSED)
{
    (void)puts("| code | HTTP status | status of the call | meaning |\n|---|---|---|---|");
    for (const struct http_app *const *app = il__apps; *app != NULL; app++) {
        for (size_t i = 0; i < (*app)->n_errors; i++) {
            const struct http_app_error *e = &(*app)->errors[i];
            http_error(e->code, e->http, e->status, e->text);
        }
    }
#define X(code, http, status, text) http_error(#code, http, IL_##status, text);
#include "wire/errors.def"
#undef X
}

static void
docs_mutexes(const struct cli_command *command UNUSED)
{
    (void)puts("| class | protects |\n|---|---|");
    for (unsigned i = 0; i < IL__MUTEX_CLASS_COUNT; i++) {
        enum il__mutex_class rank = (enum il__mutex_class)i;
        (void)printf("| %s | %s |\n", il__mutex_class_name(rank), il__mutex_class_text(rank));
    }
}

static void
docs_checklist(const struct cli_command *command UNUSED)
{
    (void)puts("| item | question |\n|---|---|");
#define X(id, name, question) (void)puts("| " name " | " question " |");
#include "apps/common/checklist.def"
#undef X
}

static const struct docs_table {
    const char *name;
    void (*print)(const struct cli_command *command);
} tables[] = {
    { "statuses", docs_statuses },
    { "exits", docs_exits },
    { "ops", docs_ops },
    { "commands", docs_commands },
    { "options", docs_options },
    { "config", docs_config },
    { "metrics", docs_metrics },
    { "mutexes", docs_mutexes },
    { "server-metrics", docs_server_metrics },
    { "log-events", docs_log_events },
    { "routes", docs_routes },
    { "http-errors", docs_http_errors },
    { "checklist", docs_checklist },
};

static const struct http_app *
find_app(const char *name)
{
    for (const struct http_app *const *app = il__apps; *app != NULL; app++) {
        if (strcmp((*app)->name, name) == 0)
            return *app;
    }
    return NULL;
}

int
il__cli_docs(const char *table, const char *const *words, size_t n_words)
{
    const struct cli_command *command = NULL;
    il_error                  err;

    if (strcmp(table, "app-routes") == 0) {
        const struct http_app *app = n_words == 1 ? find_app(words[0]) : NULL;
        if (app == NULL)
            return il__cli_usage("debug: app-routes needs the name of an app");
        docs_app_routes(app);
        return 0;
    }
    if (il__cli_command_named(words, n_words, &command, &err) != IL_OK)
        return il__cli_usage("debug: %s", err.message);
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        if (strcmp(tables[i].name, table) == 0) {
            tables[i].print(command);
            return 0;
        }
    }
    return il__cli_usage("debug: unknown table '%.80s'", table);
}
