/*
 * cmd_pipelines.c: `interlock pipelines list`, `check` and `graph`: show the contents of pipeline
 * files. None of them needs a store; `list` asks a server if there is one (--server), which also
 * knows the last runs.
 */
#include <inttypes.h>

#include "apps/runner/pipeline.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/page.h"
#include "cli/print_item.h"
#include "cli/request.h"

static const struct pipeline_defaults defaults = { .lock_retries        = 3,
                                                   .lock_retry_delay_ms = 5000,
                                                   .lock_metrics        = true };

/* ---- remarks --------------------------------------------------------------------------------- */

/* Remarks about files, copied: threads report them in any order. */
struct remarks {
    void              *mem;
    struct doc_remark *items;
    size_t             n, capacity, n_advice;
    bool               no_memory;
};

static void
remarks_release(struct remarks *r)
{
    il__arena_free(&r->mem);
    il__free(r->items);
}

static void
gather(void *cookie, const struct doc_remark *remark)
{
    struct remarks *r = cookie;

    if (!il__grow(&r->items, r->n, &r->capacity, sizeof *r->items)) {
        r->no_memory = true;
        return;
    }
    struct doc_remark *copy = &r->items[r->n];
    *copy                   = *remark;
    copy->path              = il__arena_strdup(&r->mem, remark->path);
    copy->field             = il__arena_strdup(&r->mem, remark->field);
    copy->text              = il__arena_strdup(&r->mem, remark->text);
    if (copy->path == NULL || copy->field == NULL || copy->text == NULL) {
        r->no_memory = true;
        return;
    }
    r->n++;
    r->n_advice += !remark->is_error;
}

static int
by_line(const void *a, const void *b)
{
    const struct doc_remark *p     = a;
    const struct doc_remark *q     = b;
    int                      order = strcmp(p->path, q->path);

    return order != 0 ? order : (p->line > q->line) - (p->line < q->line);
}

/* PATH:LINE: field: reason, in the format of compilers, so that editors find the place. */
static void
print_remark(const struct doc_remark *m)
{
    AUTO_BUF struct il__buf line = { 0 };

    il__buf_init(&line, 8192);
    il__cli_escape(&line, m->path);
    if (m->line > 0)
        il__buf_addf(&line, ":%zu", m->line);
    il__buf_adds(&line, m->is_error ? ": " : ": advice: ");
    il__cli_escape(&line, m->field);
    il__buf_adds(&line, m->field[0] != '\0' ? ": " : "");
    il__cli_escape(&line, m->text);
    (void)fprintf(stderr, "%s%s%s\n", il__cli_style(stderr, m->is_error ? CLI_RED : CLI_YELLOW),
                  il__buf_str(&line), il__cli_style(stderr, CLI_PLAIN));
}

static json_t *
remark_json(const struct doc_remark *m)
{
    return json_pack("{s:o, s:I, s:o, s:o, s:s}", "path", il__cli_json_text(m->path), "line",
                     (json_int_t)m->line, "field", il__cli_json_text(m->field), "message",
                     il__cli_json_text(m->text), "severity", m->is_error ? "error" : "advice");
}

/* ---- check ----------------------------------------------------------------------------------- */

static int
print_checked(const struct cli *cli, const struct remarks *r, const struct pipeline_loaded *loaded)
{
    if (cli->json) {
        json_t *items = json_array();
        for (size_t i = 0; i < r->n && items != NULL; i++) {
            if (json_array_append_new(items, remark_json(&r->items[i])) != 0) {
                json_decref(items);
                items = NULL;
            }
        }
        return il__cli_json_page(items, NULL);
    }
    for (size_t i = 0; i < r->n; i++) {
        if (r->items[i].is_error || !cli->quiet)
            print_remark(&r->items[i]);
    }
    if (!cli->quiet)
        (void)printf("%zu pipeline%s of %zu tenant%s, %zu invalid, %zu suggestion%s\n",
                     loaded->n_pipelines, loaded->n_pipelines == 1 ? "" : "s", loaded->n_tenants,
                     loaded->n_tenants == 1 ? "" : "s", loaded->n_bad, r->n_advice,
                     r->n_advice == 1 ? "" : "s");
    return 0;
}

/* The paths to check: those on the command line, else the configured folder. */
static il_status
choose_paths(struct cli *cli, const char *const **ret, size_t *ret_n, il_error *reterr)
{
    static const char *configured;

    if (cli->args.n_operands > 0) {
        *ret   = cli->args.operands;
        *ret_n = cli->args.n_operands;
        return IL_OK;
    }
    il_status st = il__cli_config_load(&cli->config, &cli->args, reterr);
    if (st != IL_OK)
        return st;
    configured = CLI_SETTING(cli, pipelines)->text;
    if (configured == NULL || configured[0] == '\0')
        return il__error_set(
            reterr, IL_INVAL,
            "pipelines check: no folder or file given; pass one or configure `pipelines`");
    *ret   = &configured;
    *ret_n = 1;
    return IL_OK;
}

int
il__cli_cmd_pipelines_check(struct cli *cli)
{
    AUTO(remarks_release) struct remarks remarks = { 0 };
    const char *const                   *paths   = NULL;
    size_t                               n_paths = 0;
    struct pipeline_loaded               loaded;
    il_error                             err;

    il_status st = choose_paths(cli, &paths, &n_paths, &err);
    if (st == IL_OK)
        st = il__pipelines_check(paths, n_paths, &defaults, gather, &remarks, &loaded, &err);
    if (st == IL_OK && remarks.no_memory)
        st = il__error_nomem(&err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    if (remarks.n > 0)
        qsort(remarks.items, remarks.n, sizeof *remarks.items, by_line);
    int status = print_checked(cli, &remarks, &loaded);
    return status != 0 ? status : loaded.n_bad > 0 ? CLI_EXIT_REFUSED : 0;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static void
close_catalogue(struct pipeline_catalogue **c)
{
    il__catalogue_close(*c);
}
#define AUTO_CATALOGUE AUTO(close_catalogue)

/* Bad files are reported and left out. */
static void
say_bad(void *cookie, const struct doc_remark *remark)
{
    const struct cli *cli = cookie;

    if (remark->is_error && !cli->quiet)
        print_remark(remark);
}

static il_status
open_folder(const struct cli *cli, struct pipeline_catalogue **ret, il_error *reterr)
{
    const char *dir = CLI_SETTING(cli, pipelines)->text;

    if (dir == NULL || dir[0] == '\0')
        return il__error_set(reterr, IL_INVAL,
                             "%s: no pipelines folder; pass --pipelines or configure `pipelines`",
                             cli->command->name);
    return il__catalogue_open(dir, &defaults, say_bad, (void *)(uintptr_t)cli, NULL, ret, reterr);
}

/* The requested tenant; NULL = all. */
static const char *
asked_tenant(const struct cli *cli)
{
    const struct il__setting *tenant = CLI_SETTING(cli, tenant);

    return tenant->source != IL__FROM_DEFAULT ? tenant->text : NULL;
}

/* ---- list ------------------------------------------------------------------------------------ */

static const char *
next_text(const struct pipeline *p, char out[IL__TIME_TEXT_BYTES])
{
    int64_t next = il__pipeline_next_tick(p, il__clock_wall_ms());

    return next != IL__NEVER ? il__time_text(next, out) : NULL;
}

/* As in GET /pipelines, without what only a server knows, plus the file. */
static json_t *
pipeline_json(const struct pipeline *p)
{
    char        text[IL__TIME_TEXT_BYTES];
    const char *zone = p->schedule_text != NULL ? p->zone->name : NULL;

    return json_pack("{s:s, s:s, s:o, s:o, s:s?, s:s?, s:s?, s:s, s:I, s:o, s:b, s:I, s:o}",
                     "pipeline_id", p->id, "tenant_id", p->tenant, "description",
                     il__cli_json_text(p->description), "version", il__cli_json_text(p->version),
                     "schedule", p->schedule_text, "timezone", zone, "next_run_at",
                     next_text(p, text), "on_conflict", il_policy_name(p->on_conflict),
                     "timeout_ms", (json_int_t)p->timeout_ms, "lock_timeout_ms",
                     p->lock_timeout_ms > 0 ? json_integer(p->lock_timeout_ms) : json_null(),
                     "preflight", p->preflight != PIPELINE_NO_PROBE ? 1 : 0, "steps",
                     (json_int_t)p->n_steps, "path", il__cli_json_text(p->path));
}

static int
print_list(const struct cli *cli, struct pipeline *const *items, size_t n, const char *next)
{
    static const char *const  headers[] = { "TENANT",   "PIPELINE", ">STEPS",
                                            "SCHEDULE", "NEXT",     "DESCRIPTION" };
    AUTO_GRID struct cli_grid g         = { 0 };

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = 5;
    for (size_t i = 0; i < n; i++) {
        const struct pipeline *p = items[i];
        char                   text[IL__TIME_TEXT_BYTES];
        const char            *at  = next_text(p, text);
        bool                   utc = p->zone == NULL || strcmp(p->zone->name, "UTC") == 0;
        il__cli_grid_add(&g, "%s", p->tenant);
        il__cli_grid_add(&g, "%s", p->id);
        il__cli_grid_add(&g, "%zu", p->n_steps);
        il__cli_grid_add(&g, "%s%s%s", p->schedule_text != NULL ? p->schedule_text : "",
                         p->schedule_text != NULL && !utc ? " " : "",
                         p->schedule_text != NULL && !utc ? p->zone->name : "");
        il__cli_grid_add(&g, "%s", at != NULL ? at : "");
        il__cli_grid_add(&g, "%.*s", (int)strcspn(p->description, "\n"), p->description);
    }
    int status = il__cli_grid_print(&g);
    il__cli_note_next(cli, next);
    return status;
}

static int
print_json_list(struct pipeline *const *items, size_t n, const char *next)
{
    json_t *array = json_array();

    for (size_t i = 0; i < n && array != NULL; i++) {
        if (json_array_append_new(array, pipeline_json(items[i])) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return il__cli_json_page(array, next);
}

/* A cursor is TENANT/ID of the last one. False: invalid. */
static bool
split_cursor(const char *cursor, char tenant[IL_TENANT_BYTES_MAX + 1], const char **ret_id)
{
    const char *slash = strchr(cursor, '/');

    if (slash == NULL || slash == cursor || slash - cursor > IL_TENANT_BYTES_MAX ||
        slash[1] == '\0')
        return false;
    (void)snprintf(tenant, IL_TENANT_BYTES_MAX + 1, "%.*s", (int)(slash - cursor), cursor);
    *ret_id = slash + 1;
    return true;
}

static int
list_folder(struct cli *cli)
{
    AUTO_CATALOGUE struct pipeline_catalogue *c = NULL;
    const char      *cursor                     = CLI_OPTION(cli, pipelines_list, cursor)->text;
    size_t           limit = (size_t)CLI_OPTION(cli, pipelines_list, limit)->number;
    char             after[IL_TENANT_BYTES_MAX + 1];
    char             next[IL_TENANT_BYTES_MAX + PIPELINE_ID_BYTES_MAX + 2];
    const char      *after_id = NULL;
    struct pipeline *items[IL_PAGE_ITEMS_MAX + 1];
    il_error         err;

    if (cursor != NULL && !split_cursor(cursor, after, &after_id))
        return il__cli_usage("pipelines list: --cursor: '%.80s' is not a cursor from a listing",
                             cursor);
    il_status st = open_folder(cli, &c, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    size_t n = il__catalogue_list(c, asked_tenant(cli), after_id != NULL ? after : NULL, after_id,
                                  items, limit + 1);
    bool   more = n > limit;
    if (more)
        (void)snprintf(next, sizeof next, "%s/%s", items[limit - 1]->tenant, items[limit - 1]->id);
    int status = 0;
    if (cli->json)
        status = print_json_list(items, MIN(n, limit), more ? next : NULL);
    else if (n == 0)
        il__cli_note(cli, "no pipelines");
    else
        status = print_list(cli, items, MIN(n, limit), more ? next : NULL);
    for (size_t i = 0; i < n; i++)
        il__pipeline_unref(items[i]);
    return status;
}

static const char *
member(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? text : "";
}

static int
print_answer(const struct cli *cli, const json_t *answer)
{
    static const char *const  headers[] = { "TENANT", "PIPELINE", "SCHEDULE",
                                            "NEXT",   "LAST RUN", "STATUS" };
    AUTO_GRID struct cli_grid g         = { 0 };
    const json_t             *items     = json_object_get(answer, "items");
    const char               *next      = json_string_value(json_object_get(answer, "next"));

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *p    = json_array_get(items, i);
        const json_t *last = json_object_get(p, "last_run");
        il__cli_grid_add(&g, "%s", member(p, "tenant_id"));
        il__cli_grid_add(&g, "%s", member(p, "pipeline_id"));
        il__cli_grid_add(&g, "%s", member(p, "schedule"));
        il__cli_grid_add(&g, "%s", member(p, "next_run_at"));
        il__cli_grid_add(&g, "%s", member(last, "pipeline_logging_id"));
        il__cli_grid_add(&g, "%s", member(last, "status"));
    }
    int status = il__cli_grid_print(&g);
    il__cli_note_next(cli, next);
    return status;
}

static int
list_server(struct cli *cli)
{
    AUTO_BUF struct il__buf path   = { 0 };
    const char             *cursor = CLI_OPTION(cli, pipelines_list, cursor)->text;
    json_t                 *answer = NULL;
    int                     status = 0;
    il_error                err;

    il__buf_init(&path, 4096);
    il__buf_addf(&path, "/pipelines?limit=%" PRId64,
                 CLI_OPTION(cli, pipelines_list, limit)->number);
    if (cursor != NULL) {
        il__buf_adds(&path, "&cursor=");
        il__buf_add_url(&path, cursor);
    }
    il_status st = il__cli_store_open(cli, false, &err);
    if (st == IL_OK)
        st = il__cli_request(cli, "GET", il__buf_str(&path), NULL, 0, &answer, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    if (cli->json)
        return il__cli_json_print(answer);
    if (json_array_size(json_object_get(answer, "items")) == 0)
        il__cli_note(cli, "no pipelines");
    else
        status = print_answer(cli, answer);
    json_decref(answer);
    return status;
}

int
il__cli_cmd_pipelines_list(struct cli *cli)
{
    const char *server = CLI_SETTING(cli, server)->text;

    /* A folder named on the command line takes precedence. */
    if (server != NULL && server[0] != '\0' && !CLI_GIVEN(cli, pipelines_list, pipelines))
        return list_server(cli);
    return list_folder(cli);
}

/* ---- graph ----------------------------------------------------------------------------------- */

/* Pipelines with this id, of any tenant, and all ids for a suggestion. */
struct search {
    struct pipeline_catalogue *c;
    const char                *id;
    struct pipeline           *found; /* a reference */
    size_t                     n_found;
};

static bool
look_in(void *cookie, const char *tenant)
{
    struct search   *s = cookie;
    struct pipeline *p = il__catalogue_get(s->c, tenant, s->id);

    if (p == NULL)
        return true;
    s->n_found++;
    if (s->found == NULL)
        s->found = p;
    else
        il__pipeline_unref(p);
    return true;
}

static const char *
id_at(const void *cookie, size_t i)
{
    struct pipeline *const *items = cookie;

    return items[i] != NULL ? items[i]->id : NULL;
}

static il_status
not_found(const struct search *s, const char *tenant, il_error *reterr)
{
    struct pipeline *items[IL_PAGE_ITEMS_MAX + 1] = { NULL };
    size_t           n     = il__catalogue_list(s->c, tenant, NULL, NULL, items, IL_PAGE_ITEMS_MAX);
    const char      *meant = il__suggest(s->id, id_at, items);

    il_status st = il__error_set(reterr, IL_NOT_FOUND,
                                 "pipelines graph: no such pipeline: '%.80s'%s%s%s%s%s%s", s->id,
                                 tenant != NULL ? " of tenant '" : "", tenant != NULL ? tenant : "",
                                 tenant != NULL ? "'" : "", meant != NULL ? " (did you mean '" : "",
                                 meant != NULL ? meant : "", meant != NULL ? "'?)" : "");
    for (size_t i = 0; i < n; i++)
        il__pipeline_unref(items[i]);
    return st;
}

static il_status
find_one(const struct cli *cli, struct search *s, il_error *reterr)
{
    const char *tenant = asked_tenant(cli);

    if (tenant != NULL)
        (void)look_in(s, tenant);
    else
        il__catalogue_tenants(s->c, look_in, s);
    if (s->n_found == 0)
        return not_found(s, tenant, reterr);
    if (s->n_found > 1)
        return il__error_set(
            reterr, IL_INVAL,
            "pipelines graph: %zu tenants have a pipeline '%.80s'; choose one with --tenant",
            s->n_found, s->id);
    CHECK(s->found != NULL);
    return IL_OK;
}

static json_t *
step_json(const struct pipeline *p, const struct pipeline_step *step)
{
    json_t *needs = json_array();

    for (size_t i = 0; i < step->n_needs; i++) {
        if (json_array_append_new(needs, json_string(p->steps[step->needs[i]].id)) != 0) {
            json_decref(needs);
            return NULL;
        }
    }
    return json_pack("{s:s, s:s, s:I, s:o}", "step_id", step->id, "type",
                     il__pipeline_step_types[step->type], "level", (json_int_t)step->level,
                     "depends_on", needs);
}

static int
print_graph(const struct cli *cli, const struct pipeline *p)
{
    AUTO_BUF struct il__buf out   = { 0 };
    json_t                 *steps = NULL;

    if (cli->json) {
        steps = json_array();
        for (size_t i = 0; i < p->n_steps; i++) {
            if (json_array_append_new(steps, step_json(p, &p->steps[i])) != 0) {
                json_decref(steps);
                return il__cli_fail_memory();
            }
        }
        return il__cli_json_print(json_pack("{s:s, s:s, s:o}", "pipeline_id", p->id, "tenant_id",
                                            p->tenant, "steps", steps));
    }
    il__buf_init(&out, 1 << 20);
    if (!il__pipeline_graph(p, &out))
        return il__cli_fail_memory();
    (void)fputs(il__buf_str(&out), stdout); /* errors are checked at the flush */
    return 0;
}

int
il__cli_cmd_pipelines_graph(struct cli *cli)
{
    AUTO_CATALOGUE struct pipeline_catalogue *c = NULL;
    struct search                             s = { .id = cli->args.operands[0] };
    il_error                                  err;

    il_status st = open_folder(cli, &c, &err);
    s.c          = c;
    if (st == IL_OK)
        st = find_one(cli, &s, &err);
    int status = s.found != NULL && st == IL_OK ? print_graph(cli, s.found) : il__cli_fail(&err);
    il__pipeline_unref(s.found);
    return status;
}
