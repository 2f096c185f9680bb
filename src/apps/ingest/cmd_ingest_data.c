/*
 * cmd_ingest_data.c: `interlock ingest export`, `links`, `users import` and `verify`: what is in
 * the tables of race results. On a store they use the tables, with --server its routes; both give
 * the same JSON, from which everything is printed.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/app.h"
#include "apps/ingest/query.h"
#include "apps/ingest/verify.h"
#include "base/arena.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/page.h"
#include "cli/print_item.h"
#include "cli/request.h"

#define CSV_BYTES_MAX ((size_t)64 << 20)
#define USERS_PER_REQUEST 500
#define PATH_BYTES_MAX 1024

/* Where the data is: a handle on the tables, or the server behind cli->store. */
struct source {
    struct cli          *cli;
    const char          *tenant;
    struct tables_place *place;
    il_guard            *g; /* NULL: a server */
};

static void
source_release(struct source *s)
{
    il_guard_close(s->g);
    il__tables_place_close(s->place);
}

/* existing: the tables must be there. */
static il_status
source_open(struct source *s, struct cli *cli, bool existing, il_error *reterr)
{
    const char        *data = CLI_SETTING(cli, data)->text;
    struct tables_opts o    = { .conns_max = 2, .existing = existing };

    s->cli    = cli;
    s->tenant = CLI_SETTING(cli, tenant)->text;
    if (il__cli_is_remote(cli))
        return il__cli_store_open(cli, false, reterr);
    il_status st = il__tables_place_open(CLI_SETTING(cli, store)->text,
                                         data != NULL && data[0] != '\0' ? data : NULL, existing,
                                         &s->place, reterr);
    return st == IL_OK ? il__tables_open(&il__ingest_tables, s->place, &o, &s->g, reterr) : st;
}

/* Call a route: a path, an id as one segment of it, and what follows. */
static il_status
request(const struct source *s, const char *method, const char *before, const char *id,
        const char *after, const json_t *body, json_t **ret, il_error *reterr)
{
    AUTO_BUF struct il__buf path = { 0 };

    il__buf_init(&path, PATH_BYTES_MAX);
    il__buf_adds(&path, before);
    if (id != NULL)
        il__buf_add_url(&path, id);
    il__buf_adds(&path, after);
    if (path.failed)
        return il__error_set(reterr, IL_INVAL, "id '%.80s' is too long", id);
    return il__cli_request(s->cli, method, il__buf_str(&path), body, 0, ret, reterr);
}

static const char *
text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));

    return value != NULL ? value : "";
}

/* ---- export: reading ------------------------------------------------------------------------- */

static il_status
get_event(const struct source *s, const char *id, json_t **ret, il_error *reterr)
{
    AUTO(il__arena_free) void *mem = NULL;
    struct ingest_event_out    event;

    if (s->g == NULL)
        return request(s, "GET", "/events/", id, "", NULL, ret, reterr);
    il_status st = il__ingest_event_get(s->g, s->tenant, id, &mem, &event, reterr);
    if (st == IL_OK && (*ret = il__cli_item_json(&il__ingest_event_full_out, &event)) == NULL)
        st = il__error_nomem(reterr);
    return st;
}

static il_status
get_race(const struct source *s, const char *id, json_t **ret, il_error *reterr)
{
    AUTO(il__arena_free) void *mem = NULL;
    struct ingest_race_out     race;

    if (s->g == NULL)
        return request(s, "GET", "/races/", id, "", NULL, ret, reterr);
    il_status st = il__ingest_race_get(s->g, s->tenant, id, &mem, &race, reterr);
    if (st == IL_OK && (*ret = il__cli_item_json(&il__ingest_race_full_out, &race)) == NULL)
        st = il__error_nomem(reterr);
    return st;
}

static bool
add_lap(void *cookie, const struct ingest_lap_out *lap)
{
    return json_array_append_new(cookie, il__cli_item_json(&il__ingest_lap_out, lap)) == 0;
}

/* *ret is {"items":[…]}. */
static il_status
get_laps(const struct source *s, const char *id, json_t **ret, il_error *reterr)
{
    if (s->g == NULL)
        return request(s, "GET", "/races/", id, "/laps", NULL, ret, reterr);
    json_t   *items = json_array();
    il_status st    = items == NULL
                          ? il__error_nomem(reterr)
                          : il__ingest_laps_list(s->g, s->tenant, id, add_lap, items, reterr);
    if (st == IL_CANCELLED) /* add_lap() had no memory */
        st = il__error_nomem(reterr);
    if (st == IL_OK && (*ret = json_pack("{s:o}", "items", items)) == NULL)
        return il__error_nomem(reterr);
    if (st != IL_OK)
        json_decref(items);
    return st;
}

/* Replace the races of the event by what is known of each, laps included. */
static il_status
get_all(const struct source *s, json_t *event, bool laps, il_error *reterr)
{
    json_t   *races = json_object_get(event, "races");
    size_t    n     = json_array_size(races);
    il_status st    = IL_OK;

    for (size_t i = 0; i < n && st == IL_OK; i++) {
        json_t     *race = NULL, *page = NULL;
        const char *id = text(json_array_get(races, i), "id");
        il__cli_progress(s->cli, i, n, "races");
        st = get_race(s, id, &race, reterr);
        if (st == IL_OK && laps)
            st = get_laps(s, id, &page, reterr);
        if (st == IL_OK && page != NULL &&
            json_object_set(race, "laps", json_object_get(page, "items")) != 0)
            st = il__error_nomem(reterr);
        if (st == IL_OK && json_array_set(races, i, race) != 0)
            st = il__error_nomem(reterr);
        json_decref(page);
        json_decref(race);
    }
    il__cli_progress_end();
    return st;
}

/* ---- export: CSV ----------------------------------------------------------------------------- */

/* A field. Names come from a site that anybody can write to: what a spreadsheet would take for a
 * formula gets an apostrophe in front. */
static void
add_field(struct il__buf *out, const json_t *value, bool first)
{
    const char *s = json_string_value(value);

    if (!first)
        il__buf_addc(out, ',');
    if (json_is_integer(value))
        il__buf_addf(out, "%" PRId64, (int64_t)json_integer_value(value));
    else if (json_is_real(value))
        il__buf_addf(out, "%.3f", json_real_value(value));
    if (s == NULL || s[0] == '\0')
        return;
    bool formula = strchr("=+-@\t\r", s[0]) != NULL;
    bool quoted  = formula || s[strcspn(s, ",\"\r\n")] != '\0';
    il__buf_adds(out, quoted ? "\"" : "");
    il__buf_adds(out, formula ? "'" : "");
    for (; *s != '\0'; s++)
        il__buf_addf(out, *s == '"' ? "\"%c" : "%c", *s);
    il__buf_adds(out, quoted ? "\"" : "");
}

/* The columns: of the race, then of the result or lap. */
static const char *const race_columns[] = { "source_race_id", "class_name", "label", "session_type",
                                            "completed_at" };
static const char *const result_columns[] = {
    "position",        "name",           "car_number",      "source_driver_id",
    "qualified",       "laps_completed", "total_seconds",   "behind_raw",
    "fastest_seconds", "fastest_lap",    "average_seconds", "consistency"
};
static const char *const lap_columns[] = { "result_position", "name",     "source_driver_id",
                                           "lap_number",      "position", "seconds",
                                           "elapsed_seconds", "pace" };

static int
print_csv(const json_t *event, bool laps)
{
    const char *const      *columns   = laps ? lap_columns : result_columns;
    size_t                  n_columns = laps ? ARRAY_LEN(lap_columns) : ARRAY_LEN(result_columns);
    AUTO_BUF struct il__buf out       = { 0 };
    size_t                  i, k;
    json_t                 *race, *row;

    il__buf_init(&out, (size_t)1 << 30);
    for (i = 0; i < ARRAY_LEN(race_columns); i++)
        il__buf_addf(&out, "%s%s", i > 0 ? "," : "", race_columns[i]);
    for (i = 0; i < n_columns; i++)
        il__buf_addf(&out, ",%s", columns[i]);
    il__buf_addc(&out, '\n');
    json_array_foreach(json_object_get(event, "races"), i, race)
    {
        json_array_foreach(json_object_get(race, laps ? "laps" : "results"), k, row)
        {
            for (size_t c = 0; c < ARRAY_LEN(race_columns); c++)
                add_field(&out, json_object_get(race, race_columns[c]), c == 0);
            for (size_t c = 0; c < n_columns; c++)
                add_field(&out, json_object_get(row, columns[c]), false);
            il__buf_addc(&out, '\n');
        }
    }
    if (out.failed)
        return il__cli_fail_memory();
    (void)fwrite(il__buf_str(&out), 1, out.n_bytes, stdout); /* il__cli_out_finish() looks */
    return 0;
}

int
il__cli_cmd_ingest_export(struct cli *cli)
{
    AUTO(source_release) struct source s     = { 0 };
    bool                               csv   = CLI_GIVEN(cli, ingest_export, csv);
    bool                               laps  = CLI_GIVEN(cli, ingest_export, laps);
    json_t                            *event = NULL;
    il_error                           err;

    if (csv == cli->json)
        return il__cli_usage("ingest export: pass either --csv or --json");
    il_status st = source_open(&s, cli, true, &err);
    if (st == IL_OK)
        st = get_event(&s, cli->args.operands[0], &event, &err);
    if (st == IL_OK)
        st = get_all(&s, event, laps || cli->json, &err);
    if (st == IL_OK && strcmp(text(event, "ingest_depth"), "laps_full") != 0)
        il__cli_note(cli, "event %s is not complete yet", cli->args.operands[0]);
    if (st != IL_OK) {
        json_decref(event);
        return il__cli_fail(&err);
    }
    if (cli->json)
        return il__cli_json_print(event);
    int status = print_csv(event, laps);
    json_decref(event);
    return status;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Into the page; consumed. NULL: out of memory. */
static void
show_link(struct cli_page *p, json_t *link)
{
    struct cli_grid *g = &p->grid;

    if (p->cli->json || link == NULL) {
        il__cli_page_add(p, link);
        return;
    }
    il__cli_grid_add(g, "%s", text(link, "id"));
    il__cli_grid_add(g, "%s", text(link, "state"));
    il__cli_grid_add(g, "%.3f", json_number_value(json_object_get(link, "score")));
    il__cli_grid_add(g, "%s", text(link, "email"));
    il__cli_grid_add(g, "%s", text(link, "source_driver_id"));
    il__cli_grid_add(g, "%s", text(link, "driver_name"));
    il__cli_grid_add(g, "%lld", (long long)json_integer_value(json_object_get(link, "n_events")));
    il__cli_grid_add(g, "%s", text(link, "rival"));
    json_decref(link);
}

static bool
add_link(void *cookie, const struct ingest_link *link)
{
    struct cli_page *p = cookie;

    if (!il__cli_page_wants(p, link->id))
        return false;
    show_link(p, il__cli_item_json(&il__ingest_link_out, link));
    return !p->failed;
}

static il_status
links_of_server(const struct source *s, const char *state, const char *cursor, struct cli_page *p,
                il_error *reterr)
{
    AUTO_BUF struct il__buf query  = { 0 };
    json_t                 *answer = NULL, *link;
    size_t                  i;

    il__buf_init(&query, PATH_BYTES_MAX);
    il__buf_addf(&query, "/ingestion/links?limit=%" PRIu32, p->limit);
    if (state != NULL)
        il__buf_addf(&query, "&state=%s", state);
    if (cursor != NULL)
        il__buf_adds(&query, "&cursor=");
    il_status st = request(s, "GET", il__buf_str(&query), cursor, "", NULL, &answer, reterr);
    json_array_foreach(json_object_get(answer, "items"), i, link)
    {
        if (il__cli_page_wants(p, text(link, "id")))
            show_link(p, json_incref(link));
    }
    p->more = p->more || json_is_string(json_object_get(answer, "next"));
    json_decref(answer);
    return st;
}

static int
list_links(const struct source *s, struct cli_page *p)
{
    const char *state  = CLI_OPTION(s->cli, ingest_links, state)->text;
    const char *cursor = CLI_OPTION(s->cli, ingest_links, cursor)->text;
    il_error    err;

    il_status st = s->g == NULL ? links_of_server(s, state, cursor, p, &err)
                                : il__ingest_links_list(s->g, s->tenant, state, cursor,
                                                        p->limit + 1, add_link, p, &err);
    return st == IL_OK ? il__cli_page_print(p, "no links") : il__cli_fail(&err);
}

static bool
take_link(void *cookie, const struct ingest_link *link)
{
    json_t **ret = cookie;

    *ret = il__cli_item_json(&il__ingest_link_out, link);
    return true;
}

static il_status
set_link(const struct source *s, const char *id, bool confirm, const char *email, json_t **ret,
         il_error *reterr)
{
    struct ingest_write w = { .tenant = s->tenant };

    if (s->g != NULL) {
        il_status st = il__ingest_link_set(s->g, &w, id,
                                           confirm ? LIVERC_LINK_CONFIRMED : LIVERC_LINK_REJECTED,
                                           email, take_link, ret, reterr);
        return st == IL_OK && *ret == NULL ? il__error_nomem(reterr) : st;
    }
    json_t *body = confirm ? json_pack("{s:s*}", "email", email) : NULL;
    if (confirm && body == NULL)
        return il__error_nomem(reterr);
    il_status st = request(s, "POST", "/ingestion/links/", id, confirm ? "/confirm" : "/reject",
                           body, ret, reterr);
    json_decref(body);
    return st;
}

static int
decide(const struct source *s, const char *verb, const char *id, const char *email,
       struct cli_page *p)
{
    json_t   *found = NULL;
    il_error  err;
    il_status st = set_link(s, id, strcmp(verb, "confirm") == 0, email, &found, &err);

    if (st != IL_OK)
        return il__cli_fail(&err);
    if (s->cli->json)
        return il__cli_json_print(found);
    (void)il__cli_page_wants(p, id);
    show_link(p, found);
    return il__cli_page_print(p, "no links");
}

int
il__cli_cmd_ingest_links(struct cli *cli)
{
    static const char *const           headers[] = { "ID",     "STATE", ">SCORE", "USER",
                                                     "DRIVER", "NAME",  "EVENTS", "RIVAL" };
    AUTO(source_release) struct source s         = { 0 };
    AUTO_PAGE struct cli_page          p         = { 0 };
    const struct cli_args             *args      = &cli->args;
    const char                        *verb      = args->n_operands > 0 ? args->operands[0] : NULL;
    const char                        *email     = CLI_OPTION(cli, ingest_links, user)->text;
    il_error                           err;

    if (verb != NULL && args->n_operands != 2)
        return il__cli_usage("ingest links %s: expected the id of a link", verb);
    if (email != NULL && (verb == NULL || strcmp(verb, "confirm") != 0))
        return il__cli_usage("ingest links: --user is only valid with confirm");
    if (source_open(&s, cli, true, &err) != IL_OK)
        return il__cli_fail(&err);
    il__cli_page_init(&p, cli, CLI_OPTION(cli, ingest_links, limit)->number, headers,
                      ARRAY_LEN(headers));
    return verb == NULL ? list_links(&s, &p) : decide(&s, verb, args->operands[1], email, &p);
}

/* ---- users ----------------------------------------------------------------------------------- */

static void
print_fault(void *cookie, size_t line, const char *reason)
{
    il__cli_error("%s:%zu: %s", *(const char *const *)cookie, line, reason);
}

/* Some of the users, to a server. */
static il_status
send_users(const struct source *s, const struct ingest_user *users, size_t n,
           struct ingest_counts *to, il_error *reterr)
{
    json_t *list = json_array(), *answer = NULL;
    bool    ok = list != NULL;

    for (size_t i = 0; i < n && ok; i++)
        ok = json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "email", users[i].email, "name",
                                                   users[i].name, "transponder",
                                                   users[i].transponder)) == 0;
    json_t   *body = ok ? json_pack("{s:O}", "users", list) : NULL;
    il_status st   = body == NULL
                         ? il__error_nomem(reterr)
                         : request(s, "POST", "/ingestion/users", NULL, "", body, &answer, reterr);
    json_decref(list);
    json_decref(body);
    if (st == IL_OK) {
        to->n_inserted += json_integer_value(json_object_get(answer, "inserted"));
        to->n_updated += json_integer_value(json_object_get(answer, "updated"));
        to->n_unchanged += json_integer_value(json_object_get(answer, "unchanged"));
    }
    json_decref(answer);
    return st;
}

static il_status
import(const struct source *s, const struct ingest_user *users, size_t n, struct ingest_counts *ret,
       il_error *reterr)
{
    struct ingest_totals t  = { 0 };
    struct ingest_write  w  = { .tenant = s->tenant, .totals = &t };
    il_status            st = IL_OK;

    if (s->g != NULL) {
        st   = il__ingest_users_write(s->g, &w, users, n, reterr);
        *ret = t.of[INGEST_USERS];
        return st;
    }
    for (size_t i = 0; i < n && st == IL_OK; i += USERS_PER_REQUEST)
        st = send_users(s, users + i, MIN(n - i, USERS_PER_REQUEST), ret, reterr);
    return st;
}

int
il__cli_cmd_ingest_users_import(struct cli *cli)
{
    AUTO(source_release) struct source s     = { 0 };
    AUTO_BUF struct il__buf            csv   = { 0 };
    AUTO(il__arena_free) void         *mem   = NULL;
    const char                        *path  = cli->args.operands[0];
    struct ingest_user                *users = NULL;
    struct ingest_counts               c     = { 0 };
    size_t                             n     = 0;
    il_error                           err   = { .message = "" };

    il_status st = il__cli_read(cli, path, "file", CSV_BYTES_MAX, &csv, &err);
    if (st == IL_OK) {
        st = il__ingest_users_parse(il__buf_str(&csv), csv.n_bytes, &mem, &users, &n, print_fault,
                                    &path, &err);
        if (st == IL_INVAL && strncmp(err.message, "line ", 5) == 0)
            return CLI_EXIT_CSV; /* each was reported */
    }
    if (st == IL_OK)
        st = source_open(&s, cli, false, &err);
    if (st == IL_OK)
        st = import(&s, users, n, &c, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    if (cli->json)
        return il__cli_print_item(&il__ingest_users_out, &c);
    il__cli_note(cli, "%" PRId64 " new, %" PRId64 " changed, %" PRId64 " unchanged", c.n_inserted,
                 c.n_updated, c.n_unchanged);
    return 0;
}

/* ---- verify ---------------------------------------------------------------------------------- */

static bool
add_verdict(void *cookie, const struct ingest_verdict *v)
{
    return json_array_append_new(cookie, il__cli_item_json(&il__ingest_verdict_out, v)) == 0;
}

static il_status
get_verdicts(const struct source *s, json_t **ret, il_error *reterr)
{
    if (s->g == NULL)
        return request(s, "GET", "/ingestion/verify", NULL, "", NULL, ret, reterr);
    json_t   *items = json_array();
    il_status st    = items == NULL ? il__error_nomem(reterr) : IL_OK;
    if (st == IL_OK)
        st = il__ingest_verify(s->g, s->tenant, add_verdict, items, reterr);
    if (st == IL_OK && (*ret = json_pack("{s:o,s:n}", "items", items, "next")) == NULL)
        return il__error_nomem(reterr);
    if (st != IL_OK)
        json_decref(items);
    return st;
}

/* The offenders of one invariant. */
static void
print_offenders(const json_t *verdict)
{
    size_t  i;
    json_t *o;

    json_array_foreach(json_object_get(verdict, "offenders"), i, o)
    {
        (void)printf("  ");
        il__cli_puts(text(o, "key"));
        (void)printf("  ");
        il__cli_puts(text(o, "text"));
        (void)printf("\n");
    }
}

int
il__cli_cmd_ingest_verify(struct cli *cli)
{
    AUTO(source_release) struct source s    = { 0 };
    json_t                            *page = NULL, *v;
    size_t                             i, n_errors = 0;
    il_error                           err;

    il_status st = source_open(&s, cli, true, &err);
    if (st == IL_OK)
        st = get_verdicts(&s, &page, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    json_array_foreach(json_object_get(page, "items"), i, v)
    {
        int64_t n = json_integer_value(json_object_get(v, "found"));
        n_errors += n > 0 && strcmp(text(v, "severity"), "error") == 0;
        if (cli->json || (n == 0 && cli->quiet))
            continue;
        (void)printf("%s: %s%s\n", text(v, "name"), text(v, "summary"),
                     n == 0 ? ": ok" : ": broken");
        print_offenders(v);
    }
    int status = cli->json ? il__cli_json_print(page) : 0;
    if (!cli->json)
        json_decref(page);
    return status == 0 && n_errors > 0 ? CLI_EXIT_UNSOUND : status;
}
