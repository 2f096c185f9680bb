/*
 * cmd_usage.c: `interlock usage`: the usage cache from the command line. With --server it calls the
 * server's routes; else this process is one of those that share the cache.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/usage/setup.h"
#include "apps/usage/show.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "cli/app_config.h"
#include "cli/cli.h"
#include "cli/print_item.h"
#include "cli/request.h"

#define PATH "/admin/usage"
#define REQUEST_MS 60000
#define POLL_MS 1000
#define CSV_BYTES_MAX ((size_t)256 << 20)

/* The cache in this process. */
struct session {
    struct cli           *cli;
    struct cli_app_config config;
    struct usage_setup    setup;
};

static void
session_release(struct session *s)
{
    usage_setup_close(&s->setup);
    il__cli_app_config_release(&s->config);
}

/* A share of leases that were held elsewhere says nothing about a process that asks once. */
static void
print_note(void *cookie, const struct usage_note *n)
{
    if (n->event == USAGE_EVENT_trouble)
        il__cli_note(cookie, "%s: %s", n->date, n->text != NULL ? n->text : "");
}

static il_status
session_open(struct session *s, il_error *reterr)
{
    struct cli *cli  = s->cli;
    const char *data = CLI_SETTING(cli, data)->text;
    il_status   st   = il__cli_app_config_init(&s->config, &cli->config, reterr);

    if (st == IL_OK)
        st = usage_setup_open(
            &s->setup, &s->config.config,
            &(struct usage_setup_opts){ .h         = cli->store,
                                        .store_url = CLI_SETTING(cli, store)->text,
                                        .data_url  = data != NULL && data[0] != '\0' ? data : NULL,
                                        .note      = print_note,
                                        .cookie    = cli },
            reterr);
    if (st == IL_OK && s->setup.usage == NULL)
        st = il__error_set(reterr, IL_INVAL,
                           "usage: no source configured; set usage.source.type, or use --server");
    return st;
}

static const char *
tenant_of(const struct session *s)
{
    return CLI_SETTING(s->cli, tenant)->text;
}

/* ---- operands -------------------------------------------------------------------------------- */

static il_status
take_date(const struct cli *cli, size_t i, usage_date *ret, il_error *reterr)
{
    const char *text  = cli->args.operands[i];
    usage_date  today = usage_date_of(il__clock_wall_ms());

    if (strcmp(text, "today") == 0 || strcmp(text, "yesterday") == 0) {
        *ret = text[0] == 't' ? today : today - 1;
        return IL_OK;
    }
    if (!usage_date_parse(text, ret))
        return il__error_set(reterr, IL_INVAL,
                             "%s: '%.40s' is not a date such as 2026-01-15, today or yesterday",
                             cli->command->name, text);
    if (*ret > today)
        return il__error_set(reterr, IL_INVAL, "%s: %s is in the future (UTC)", cli->command->name,
                             text);
    return IL_OK;
}

static il_status
take_range(const struct cli *cli, usage_date *from, usage_date *to, il_error *reterr)
{
    il_status st = take_date(cli, 0, from, reterr);

    if (st == IL_OK)
        st = take_date(cli, 1, to, reterr);
    if (st == IL_OK && *from > *to)
        st = il__error_set(reterr, IL_INVAL, "%s: the first day is after the last",
                           cli->command->name);
    if (st == IL_OK && *to - *from >= USAGE_DAYS_MAX)
        st = il__error_set(reterr, IL_INVAL,
                           "%s: the range has %d days, more than the maximum of %d",
                           cli->command->name, (int)(*to - *from) + 1, USAGE_DAYS_MAX);
    return st;
}

static json_t *
range_body(usage_date from, usage_date to)
{
    char start[IL__DATE_TEXT_BYTES], end[IL__DATE_TEXT_BYTES];

    return json_pack("{s:s, s:s}", "startDate", il__date_text(from, start), "endDate",
                     il__date_text(to, end));
}

/* ---- one day --------------------------------------------------------------------------------- */

struct one_day {
    il_status status;
    il_error *reterr;
    json_t   *day;
};

static void
take_day(void *cookie, size_t i UNUSED, const struct usage_result *result, size_t n_done UNUSED)
{
    AUTO_BUF struct il__buf text = { 0 };
    struct one_day         *d    = cookie;

    il__buf_init(&text, CSV_BYTES_MAX);
    if (result->copy == NULL) {
        d->status = il__error_set(d->reterr, result->status, "%s", result->text);
        return;
    }
    usage_copy_print(&text, result->copy, result->status != IL_OK, result->text);
    d->day    = text.failed ? NULL : json_loadb(text.data, text.n_bytes, 0, NULL);
    d->status = d->day != NULL ? IL_OK : il__error_nomem(d->reterr);
}

static il_status
build_day(struct session *s, usage_date date, enum usage_way way, json_t **ret, il_error *reterr)
{
    struct one_day d = { .reterr = reterr };

    d.status = il__error_nomem(reterr);
    (void)usage_join_many(s->setup.usage, &(struct usage_many){ .tenant   = tenant_of(s),
                                                                .dates    = &date,
                                                                .n        = 1,
                                                                .way      = way,
                                                                .until_ns = INT64_MAX,
                                                                .each     = take_day,
                                                                .cookie   = &d });
    *ret = d.day;
    return d.status;
}

static il_status
read_day(struct session *s, usage_date date, json_t **ret, il_error *reterr)
{
    struct usage_row    row;
    struct one_day      d      = { .reterr = reterr };
    struct usage_result result = { .status = IL_OK };
    il_status           st     = usage_row_get(s->setup.tables, tenant_of(s), date, &row, reterr);

    if (st != IL_OK)
        return st;
    result.copy = usage_copy_new(tenant_of(s), &row, 0);
    usage_row_release(&row);
    if (result.copy == NULL)
        return il__error_nomem(reterr);
    if (!usage_copy_is_fresh(s->setup.usage, result.copy))
        result.status = IL_TIMEOUT;
    take_day(&d, 0, &result, 1);
    usage_copy_unref(result.copy);
    *ret = d.day;
    return d.status;
}

static int
print_day(const struct cli *cli, json_t *day)
{
    if (cli->json)
        return il__cli_json_print(day);
    int status = usage_show_day(cli, day);
    json_decref(day);
    return status;
}

int
il__cli_cmd_usage_day(struct cli *cli)
{
    AUTO(session_release) struct session s    = { .cli = cli };
    bool                                 read = CLI_GIVEN(cli, usage_day, no_build);
    json_t                              *day  = NULL;
    usage_date                           date = 0;
    char                                 path[64], text[IL__DATE_TEXT_BYTES];
    il_error                             err = { 0 };
    il_status                            st  = take_date(cli, 0, &date, &err);

    if (st == IL_OK && il__cli_is_remote(cli)) {
        (void)snprintf(path, sizeof path, PATH "/days/%s%s", il__date_text(date, text),
                       read ? "?build=no" : "");
        st = il__cli_request(cli, "GET", path, NULL, REQUEST_MS, &day, &err);
    } else if (st == IL_OK) {
        st = session_open(&s, &err);
        if (st == IL_OK)
            st =
                read ? read_day(&s, date, &day, &err) : build_day(&s, date, USAGE_TAKE, &day, &err);
    }
    return st == IL_OK ? print_day(cli, day) : il__cli_fail(&err);
}

int
il__cli_cmd_usage_refresh(struct cli *cli)
{
    AUTO(session_release) struct session s   = { .cli = cli };
    json_t                              *day = NULL;
    il_error                             err = { 0 };
    il_status                            st;

    if (il__cli_is_remote(cli)) {
        st = il__cli_request(cli, "POST", PATH "/refresh-today", NULL, REQUEST_MS, &day, &err);
    } else {
        st = session_open(&s, &err);
        if (st == IL_OK)
            st = build_day(&s, usage_date_of(il__clock_wall_ms()), USAGE_FORCE, &day, &err);
    }
    return st == IL_OK ? print_day(cli, day) : il__cli_fail(&err);
}

/* ---- a range --------------------------------------------------------------------------------- */

static void
show_progress(void *cookie, size_t n_done, size_t n)
{
    il__cli_progress(cookie, n_done, n, "days");
}

/* A range from the answer of GET /export. */
static il_status
read_export(const json_t *from, struct usage_range *ret, il_error *reterr)
{
    const json_t *days = json_object_get(from, "days"), *items = json_object_get(from, "items"),
                 *one;
    const char *names[] = { "stale", "pending", "missing" };
    const char *why     = json_string_value(json_object_get(from, "error"));
    size_t      i;

    ret->parts.items =
        il__arena_alloc(&ret->mem, (json_array_size(items) + 1) * sizeof *ret->parts.items);
    if (ret->parts.items == NULL)
        return il__error_nomem(reterr);
    usage_show_read(json_object_get(from, "metrics"), &ret->total);
    if (why != NULL)
        (void)snprintf(ret->error, sizeof ret->error, "%s", why);
    ret->n = (size_t)(ret->to - ret->from) + 1;
    for (i = 0; i < ret->n; i++)
        ret->days[i] = (struct usage_range_day){ .date = ret->from + (usage_date)i };
    json_array_foreach(days, i, one)
    {
        struct usage_range_day *day = &ret->days[MIN(i, ret->n - 1)];
        day->complete               = json_is_true(json_object_get(one, "is_complete"));
        const char *at              = json_string_value(json_object_get(one, "updated_at"));
        if (at != NULL)
            IGNORE(!il__time_parse(at, &day->updated_ms)); /* then it is not shown */
        usage_show_read(json_object_get(one, "metrics"), &day->metrics);
    }
    json_array_foreach(items, i, one)
    {
        struct usage_part *part = &ret->parts.items[ret->parts.n];
        const char        *name = json_string_value(json_object_get(one, "name"));
        part->name              = il__arena_strdup(&ret->mem, name != NULL ? name : "");
        usage_show_read(one, &part->metrics);
        if (part->name == NULL)
            return il__error_nomem(reterr);
        ret->parts.n++;
    }
    for (size_t k = 0; k < ARRAY_LEN(names); k++) {
        json_array_foreach(json_object_get(from, names[k]), i, one)
        {
            usage_date date;
            if (json_is_string(one) && usage_date_parse(json_string_value(one), &date) &&
                date >= ret->from && date <= ret->to)
                ret->days[date - ret->from].state = (enum usage_state)(USAGE_STALE + k);
        }
    }
    return IL_OK;
}

static il_status
ask_range(const struct cli *cli, enum usage_by by, struct usage_range *ret, json_t **ret_json,
          il_error *reterr)
{
    char path[160], start[IL__DATE_TEXT_BYTES], end[IL__DATE_TEXT_BYTES];

    (void)snprintf(path, sizeof path, PATH "/export?format=json&startDate=%s&endDate=%s&by=%s",
                   il__date_text(ret->from, start), il__date_text(ret->to, end),
                   by == USAGE_BY_NONE ? "day" : usage_by_names[by]);
    il_status st = il__cli_request(cli, "GET", path, NULL, REQUEST_MS, ret_json, reterr);
    return st == IL_OK ? read_export(*ret_json, ret, reterr) : st;
}

static il_status
load_range(struct session *s, enum usage_by by, struct usage_range *ret, il_error *reterr)
{
    const struct usage_range_in in = { .tenant   = tenant_of(s),
                                       .from     = ret->from,
                                       .to       = ret->to,
                                       .by       = by,
                                       .build    = true,
                                       .until_ns = INT64_MAX,
                                       .progress = show_progress,
                                       .cookie   = s->cli };
    il_status                   st = session_open(s, reterr);

    if (st == IL_OK)
        st = usage_range_load(s->setup.usage, &in, ret, reterr);
    il__cli_progress_end();
    if (st == IL_OK)
        usage_parts_rank(&ret->parts);
    return st;
}

static int
print_range(const struct cli *cli, const struct usage_range *r, enum usage_by by)
{
    AUTO_BUF struct il__buf text   = { 0 };
    int                     status = 0;

    il__buf_init(&text, CSV_BYTES_MAX);
    if (CLI_GIVEN(cli, usage_range, csv)) {
        usage_print_csv(&text, r, by);
        if (text.failed)
            return il__cli_fail_memory();
        status = fwrite(text.data, 1, text.n_bytes, stdout) == text.n_bytes ? 0 : CLI_EXIT_IO;
    } else if (cli->json) {
        usage_print_export(&text, r, by);
        status =
            il__cli_json_print(text.failed ? NULL : json_loadb(text.data, text.n_bytes, 0, NULL));
    } else {
        status = usage_show_range(cli, r, by);
    }
    return status != 0 ? status : usage_show_gaps(cli, r);
}

int
il__cli_cmd_usage_range(struct cli *cli)
{
    AUTO(session_release) struct session         s      = { .cli = cli };
    AUTO(usage_range_release) struct usage_range r      = { .n = 0 };
    int64_t                                      chosen = CLI_OPTION(cli, usage_range, by)->number;
    enum usage_by by   = chosen == 0 ? USAGE_BY_NONE : (enum usage_by)(chosen - 1);
    json_t       *json = NULL;
    il_error      err  = { 0 };

    if (cli->json && CLI_GIVEN(cli, usage_range, csv))
        return il__cli_usage("usage range: --json and --csv cannot be combined");
    il_status st = take_range(cli, &r.from, &r.to, &err);
    if (st == IL_OK)
        st = il__cli_is_remote(cli) ? ask_range(cli, by, &r, &json, &err)
                                    : load_range(&s, by, &r, &err);
    json_decref(json);
    return st == IL_OK ? print_range(cli, &r, by) : il__cli_fail(&err);
}

/* ---- warm and rebuild ------------------------------------------------------------------------ */

struct building {
    struct cli *cli;
    usage_date  dates[USAGE_DAYS_MAX];
    size_t      n, n_failed;
    json_t     *items;
};

static void
did_day(void *cookie, size_t i, const struct usage_result *result, size_t n_done)
{
    struct building *b = cookie;
    char             date[IL__DATE_TEXT_BYTES];
    bool             ok = result->status == IL_OK;

    il__date_text(b->dates[i], date);
    b->n_failed += !ok;
    if (b->cli->json)
        (void)json_array_append_new(
            b->items, json_pack("{s:s, s:s, s:s?}", "date", date, "status",
                                ok ? "OK" : il_status_name(result->status), "error",
                                ok ? NULL : result->text)); /* NULL: the page is not printed */
    else if (!ok)
        il__cli_error("%s: %s", date, result->text);
    il__cli_progress(b->cli, n_done, b->n, date);
}

/* Build the days here. */
static int
build_here(struct cli *cli, usage_date from, usage_date to, bool force)
{
    AUTO(session_release) struct session s   = { .cli = cli };
    struct building                      b   = { .cli = cli, .items = json_array() };
    il_error                             err = { 0 };

    if (b.items == NULL)
        return il__cli_fail_memory();
    if (session_open(&s, &err) != IL_OK) {
        json_decref(b.items);
        return il__cli_fail(&err);
    }
    for (usage_date d = from; d <= to; d++)
        b.dates[b.n++] = d;
    size_t n = usage_join_many(s.setup.usage,
                               &(struct usage_many){ .tenant   = tenant_of(&s),
                                                     .dates    = b.dates,
                                                     .n        = b.n,
                                                     .way      = force ? USAGE_FORCE : USAGE_TAKE,
                                                     .silent   = true,
                                                     .patient  = true,
                                                     .until_ns = INT64_MAX,
                                                     .each     = did_day,
                                                     .cookie   = &b });
    il__cli_progress_end();
    if (n < b.n) {
        json_decref(b.items);
        return il__cli_fail_memory();
    }
    int status = cli->json ? il__cli_json_page(b.items, NULL) : 0;
    if (!cli->json)
        json_decref(b.items);
    il__cli_note(cli, "%zu days ready, %zu failed", b.n - b.n_failed, b.n_failed);
    return status != 0 ? status : b.n_failed > 0 ? CLI_EXIT_USAGE_DAYS : 0;
}

/* Follow the run of a server to its end. */
static int
follow(struct cli *cli, const char *id)
{
    il_op    op  = { .type = IL_OP_RUN_GET, .in.run.id = id };
    il_error err = { 0 };

    for (;;) {
        il_op_release(&op);
        il_status st = il_apply(cli->store, &op, 1, &err);
        if (st == IL_OK && op.status != IL_OK)
            st = il__error_set(&err, op.status, "run %s: %s", id, il_status_text(op.status));
        if (st != IL_OK) {
            il_op_release(&op);
            return il__cli_fail(&err);
        }
        const il_run_info *run = &op.out.runs[0];
        if (run->state > IL_RUN_RUNNING)
            break;
        il__cli_progress(cli, (uint64_t)MAX(run->progress, 0), 100, run->stage);
        IGNORE(il_wait(cli->store, &op, POLL_MS)); /* whatever ends it, look again */
    }
    const il_run_info *run = &op.out.runs[0];
    il__cli_progress_end();
    int status = cli->json ? il__cli_print_item(&il__wire_run, run) : 0;
    il__cli_note(cli, "run %s: %s%s%s", id, il_run_state_name(run->state),
                 run->error[0] != '\0' ? ": " : "", run->error);
    if (status == 0 && run->state != IL_RUN_COMPLETED)
        status = CLI_EXIT_USAGE_DAYS;
    il_op_release(&op);
    return status;
}

static int
build_there(struct cli *cli, usage_date from, usage_date to, bool force)
{
    json_t   *body = range_body(from, to), *answer = NULL;
    il_error  err = { 0 };
    il_status st =
        body != NULL && json_object_set_new(body, "force", json_boolean(force)) == 0
            ? il__cli_request(cli, "POST", PATH "/rebuild-cache", body, REQUEST_MS, &answer, &err)
            : il__error_nomem(&err);

    json_decref(body);
    if (st != IL_OK)
        return il__cli_fail(&err);
    const char *id     = json_string_value(json_object_get(answer, "run_id"));
    int         status = id != NULL ? follow(cli, id) : CLI_EXIT_STORE;
    json_decref(answer);
    return status;
}

static int
build_range(struct cli *cli, bool force)
{
    usage_date from = 0, to = 0;
    il_error   err = { 0 };

    if (take_range(cli, &from, &to, &err) != IL_OK)
        return il__cli_fail(&err);
    return il__cli_is_remote(cli) ? build_there(cli, from, to, force)
                                  : build_here(cli, from, to, force);
}

int
il__cli_cmd_usage_warm(struct cli *cli)
{
    return build_range(cli, false);
}

int
il__cli_cmd_usage_rebuild(struct cli *cli)
{
    return build_range(cli, CLI_GIVEN(cli, usage_rebuild, force));
}

/* ---- metrics --------------------------------------------------------------------------------- */

int
il__cli_cmd_usage_metrics(struct cli *cli)
{
    json_t     *answer = NULL;
    const char *name;
    json_t     *value;
    il_error    err = { 0 };

    if (!il__cli_is_remote(cli))
        return il__cli_usage("usage metrics: --server is required; counters are kept per server");
    if (il__cli_request(cli, "GET", PATH "/cache/metrics", NULL, REQUEST_MS, &answer, &err) !=
        IL_OK)
        return il__cli_fail(&err);
    if (cli->json)
        return il__cli_json_print(answer);
    static const char *const  headers[] = { "METRIC", ">VALUE" };
    AUTO_GRID struct cli_grid g         = { 0 };
    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    json_object_foreach(answer, name, value)
    {
        il__cli_grid_add(&g, "%s", name);
        if (json_is_integer(value))
            il__cli_grid_add(&g, "%" PRId64, (int64_t)json_integer_value(value));
        else
            il__cli_grid_add(&g, "%.4f", json_real_value(value));
    }
    int status = il__cli_grid_print(&g);
    json_decref(answer);
    return status;
}
