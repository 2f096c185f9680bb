/*
 * cmd_campus.c: `interlock campus`. A command that is one operation (operations.def) calls its
 * function on the tables, or with --server its route; both print the same.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/campus/operations.h"
#include "apps/campus/seed.h"
#include "apps/campus/storm.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/print_item.h"
#include "cli/request.h"

#define PATH_BYTES_MAX 1024

/* ---- tables ---------------------------------------------------------------------------------- */

/* A call on the tables at the place of --store and --data. */
struct local {
    struct tables_place *place;
    il_guard            *db;
    struct campus_call   call;
    char                 id[37];
};

static void
local_release(struct local *l)
{
    il_guard_close(l->db);
    il__tables_place_close(l->place);
    il__arena_free(&l->call.mem);
}

static const char *
data_url(const struct cli *cli)
{
    const char *data = CLI_SETTING(cli, data)->text;

    return data[0] != '\0' ? data : NULL;
}

static il_status
local_open(struct local *l, const struct cli *cli, il_error *reterr)
{
    il_status st = il__tables_place_open(CLI_SETTING(cli, store)->text, data_url(cli), false,
                                         &l->place, reterr);

    if (st == IL_OK)
        st = il__tables_open(&campus_tables, l->place, NULL, &l->db, reterr);
    if (st == IL_OK && il_uuid(l->id) != IL_OK)
        st = il__error_set(reterr, IL_STORE, "cannot read random bytes");
    l->call = (struct campus_call){ .db     = l->db,
                                    .store  = cli->store,
                                    .tenant = CLI_SETTING(cli, tenant)->text,
                                    .id     = l->id,
                                    .now_ms = il__clock_wall_ms() };
    return st;
}

/* ---- one operation --------------------------------------------------------------------------- */

/* "NAME  value" of each member; lists as JSON. */
static int
print(const struct cli *cli, json_t *answer)
{
    const char *name  = NULL;
    json_t     *value = NULL;

    if (cli->json || answer == NULL)
        return il__cli_json_print(answer);
    json_object_foreach(answer, name, value)
    {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        if (json_is_string(value))
            il__cli_field(name, "%s", json_string_value(value));
        else if (!json_is_null(value) && text != NULL)
            il__cli_field(name, "%s", text);
        free(text); /* NOLINT: jansson allocated it */
    }
    json_decref(answer);
    return 0;
}

static void
add_path(struct il__buf *path, const char *template, struct campus_in *in)
{
    const char *open;

    for (; (open = strchr(template, '{')) != NULL; template = strchr(open, '}') + 1) {
        size_t n = strcspn(open + 1, "}");
        il__buf_add(path, template, (size_t)(open - template));
        il__buf_add_url(path, *campus_in_member(in, open + 1, n));
    }
    il__buf_adds(path, template);
}

/* The body of the route: what was given. */
static json_t *
make_body(const struct campus_operation *op, const struct campus_in *in)
{
    json_t     *body = il__cli_item_json(op->in, in), *given = json_object();
    const char *name  = NULL;
    json_t     *value = NULL;

    json_object_foreach(body, name, value)
    {
        if (!json_is_null(value))
            IGNORE(json_object_set(given, name, value) != 0);
    }
    json_decref(body);
    return given;
}

static void
add_page(struct il__buf *path, const struct campus_in *in)
{
    il__buf_addf(path, "?limit=%" PRIu32, in->limit);
    if (in->cursor == NULL)
        return;
    il__buf_adds(path, "&cursor=");
    il__buf_add_url(path, in->cursor);
}

/* As the server shows a page. NULL: out of memory. */
static json_t *
page_json(const struct wire_object *out, const struct campus_page *page)
{
    json_t *items = json_array();
    bool    ok    = items != NULL;

    for (size_t i = 0; i < page->n && ok; i++)
        ok = json_array_append_new(
                 items, il__cli_item_json(out, (const char *)page->items + i * page->bytes)) == 0;
    if (ok)
        return json_pack("{s:o, s:s?}", "items", items, "next", page->next);
    json_decref(items);
    return NULL;
}

static int
ask_server(const struct cli *cli, const struct campus_operation *op, struct campus_in *in)
{
    AUTO_BUF struct il__buf path   = { 0 };
    json_t                 *body   = op->in != NULL ? make_body(op, in) : NULL;
    json_t                 *answer = NULL;
    il_error                err    = { .message = "" };

    il__buf_init(&path, PATH_BYTES_MAX);
    add_path(&path, op->path, in);
    if (op->is_page)
        add_page(&path, in);
    il_status st = il__cli_request(cli, op->method, il__buf_str(&path), body, 0, &answer, &err);
    json_decref(body);
    return st == IL_OK ? print(cli, answer) : il__cli_fail(&err);
}

static int
operate(struct cli *cli, enum campus_operation_id id, struct campus_in *in)
{
    const struct campus_operation   *op = &campus_operations[id];
    AUTO(local_release) struct local l  = { .db = NULL };
    union campus_out                 out;
    il_error                         err = { .message = "" };

    if (il__cli_is_remote(cli))
        return ask_server(cli, op, in);
    il_status st = local_open(&l, cli, &err);
    if (st == IL_OK)
        st = op->fn(&l.call, in, &out, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    return print(cli,
                 op->is_page ? page_json(op->out, &out.page) : il__cli_item_json(op->out, &out));
}

#define OPERAND(i) (cli->args.operands[i])
#define COMMAND(name, operation, ...)                                                   \
    int il__cli_cmd_campus_##name(struct cli *cli)                                      \
    {                                                                                   \
        return operate(cli, CAMPUS_OP_##operation, &(struct campus_in){ __VA_ARGS__ }); \
    }

COMMAND(transition, tournament_transition, .tournament = OPERAND(0), .state = OPERAND(1))
COMMAND(enroll, tournament_enroll, .tournament = OPERAND(0), .user = OPERAND(1))
COMMAND(unenroll, tournament_unenroll, .tournament = OPERAND(0), .user = OPERAND(1))
COMMAND(finalize, tournament_finalize, .tournament = OPERAND(0))
COMMAND(book, session_book, .session = OPERAND(0), .user = OPERAND(1))
COMMAND(cancel, booking_cancel, .booking = OPERAND(0))
COMMAND(confirm, booking_confirm, .booking = OPERAND(0))
COMMAND(attend, booking_attendance, .booking = OPERAND(0),
        .attendance = cli->args.n_operands > 1 ? OPERAND(1) : NULL)
COMMAND(user, user_get, .user = OPERAND(0))
COMMAND(tournament, tournament_get, .tournament = OPERAND(0))
COMMAND(session, session_get, .session = OPERAND(0))
COMMAND(booking, booking_get, .booking = OPERAND(0))
COMMAND(create_user, user_create, .email = OPERAND(0),
        .credits = CLI_OPTION(cli, campus_create_user, credits)->number)
COMMAND(create_match, match_create, .tournament = OPERAND(0), .home = OPERAND(1),
        .away = OPERAND(2))

/* The text of an option; NULL: not given. */
static const char *
text_of(const struct cli_value *value)
{
    return value->given ? value->text : NULL;
}

#define PAGE(command)                                            \
    .limit  = (uint32_t)CLI_OPTION(cli, command, limit)->number, \
    .cursor = text_of(CLI_OPTION(cli, command, cursor))
COMMAND(badges, user_badges, .user = OPERAND(0), PAGE(campus_badges))
COMMAND(skills, user_skills, .user = OPERAND(0), PAGE(campus_skills))
COMMAND(tournaments, tournament_list, PAGE(campus_tournaments))
COMMAND(create_license, license_create, .user = OPERAND(0),
        .skills = text_of(CLI_OPTION(cli, campus_create_license, skills)))
COMMAND(create_tournament, tournament_create, .code = OPERAND(0),
        .name          = text_of(CLI_OPTION(cli, campus_create_tournament, name)),
        .campus        = text_of(CLI_OPTION(cli, campus_create_tournament, campus)),
        .max_players   = CLI_OPTION(cli, campus_create_tournament, max_players)->number,
        .cost          = CLI_OPTION(cli, campus_create_tournament, cost)->number,
        .reward_config = text_of(CLI_OPTION(cli, campus_create_tournament, rewards)),
        .weights       = text_of(CLI_OPTION(cli, campus_create_tournament, weights)))
COMMAND(create_session, session_create, .name = OPERAND(0),
        .tournament = text_of(CLI_OPTION(cli, campus_create_session, tournament)),
        .capacity   = CLI_OPTION(cli, campus_create_session, capacity)->number,
        .price      = CLI_OPTION(cli, campus_create_session, price)->number,
        .start_ms   = CLI_OPTION(cli, campus_create_session, start)->number,
        .end_ms     = CLI_OPTION(cli, campus_create_session, end)->number)

int
il__cli_cmd_campus_finish_match(struct cli *cli)
{
    struct campus_in in   = { .match = OPERAND(0) };
    uint64_t         home = 0, away = 0;

    if (!il__parse_u64(OPERAND(1), 1000, &home) || !il__parse_u64(OPERAND(2), 1000, &away))
        return il__cli_usage("campus finish-match: goals must be numbers from 0 to 1000");
    in.home_goals = (int64_t)home;
    in.away_goals = (int64_t)away;
    return operate(cli, CAMPUS_OP_match_finish, &in);
}

int
il__cli_cmd_campus_assess(struct cli *cli)
{
    struct campus_in in   = { .license = OPERAND(0), .skill = OPERAND(1) };
    uint64_t         unit = 0, tenth = 0;
    char             text[8];
    const char      *point = strchr(OPERAND(2), '.');
    size_t           n     = point != NULL ? (size_t)(point - OPERAND(2)) : strlen(OPERAND(2));

    (void)snprintf(text, sizeof text, "%.*s", (int)MIN(n, sizeof text - 1), OPERAND(2));
    if (!il__parse_u64(text, 99, &unit) || unit < 40 ||
        (point != NULL && (strlen(point) != 2 || !il__parse_u64(point + 1, 9, &tenth))) ||
        (unit == 99 && tenth > 0))
        return il__cli_usage(
            "campus assess: VALUE must be from 40 to 99, with at most one decimal");
    in.value_1 = (int64_t)(unit * 10 + tenth);
    return operate(cli, CAMPUS_OP_license_assess, &in);
}

/* ---- data ------------------------------------------------------------------------------------ */

static void
show_seeding(void *cookie, uint64_t done, uint64_t total)
{
    il__cli_progress(cookie, done, total, "seeding\n");
}

int
il__cli_cmd_campus_seed(struct cli *cli)
{
    AUTO(local_release) struct local l   = { .db = NULL };
    il_error                         err = { .message = "" };
    struct campus_seed s = { .seed          = (uint64_t)CLI_OPTION(cli, campus_seed, seed)->number,
                             .n_users       = CLI_OPTION(cli, campus_seed, users)->number,
                             .n_tournaments = CLI_OPTION(cli, campus_seed, tournaments)->number,
                             .n_sessions    = CLI_OPTION(cli, campus_seed, sessions)->number,
                             .progress      = show_seeding,
                             .cookie        = cli };

    il_status st = il__cli_store_not_server(cli, "it needs direct access to a store", &err);
    if (st == IL_OK)
        st = local_open(&l, cli, &err);
    if (st == IL_OK)
        st = campus_seed(&l.call, &s, &err);
    il__cli_progress_end();
    if (st != IL_OK)
        return il__cli_fail(&err);
    return print(cli, json_pack("{s:s, s:I, s:I, s:I}", "tenant", l.call.tenant, "users",
                                (json_int_t)s.n_users, "tournaments", (json_int_t)s.n_tournaments,
                                "sessions", (json_int_t)s.n_sessions));
}

int
il__cli_cmd_campus_normalise_skills(struct cli *cli)
{
    AUTO(local_release) struct local l     = { .db = NULL };
    bool                             apply = CLI_GIVEN(cli, campus_normalise_skills, apply);
    struct campus_debt               debt  = { 0 };
    il_error                         err   = { .message = "" };

    il_status st = il__cli_store_not_server(cli, "it needs direct access to a store", &err);
    if (st == IL_OK)
        st = local_open(&l, cli, &err);
    if (st == IL_OK)
        st = campus_normalise(&l.call, apply, &debt, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    return print(cli,
                 json_pack("{s:b, s:I, s:I}", "applied", apply, "licenses",
                           (json_int_t)debt.n_licenses, "entries", (json_int_t)debt.n_entries));
}

/* ---- storm ----------------------------------------------------------------------------------- */

static void
tell_broken(void *cookie, const struct app_invariant *invariant, int64_t n, const char *key,
            const char *text)
{
    il__cli_note(cookie, "%s %s: %" PRId64 " offending rows, first: %s%s%s",
                 il__invariant_severity_name(invariant->severity), invariant->name, n, key,
                 text != NULL ? ": " : "", text != NULL ? text : "");
}

static void
show_storm(void *cookie, uint64_t n_calls)
{
    il__cli_progress(cookie, n_calls, 0, "storm\n");
}

static json_t *
storm_json(const struct campus_storm_result *r)
{
    json_t *acts = json_object(), *pipelines = json_object();

    for (size_t i = 0; i < CAMPUS_ACT_COUNT; i++)
        IGNORE(json_object_set_new(acts, campus_act_names[i],
                                   json_pack("{s:I, s:I}", "done", (json_int_t)r->n_done[i],
                                             "refused", (json_int_t)r->n_refused[i])) != 0);
    for (size_t i = 0; i < CAMPUS_STORM_PIPELINES; i++)
        IGNORE(json_object_set_new(pipelines, campus_storm_pipelines[i],
                                   json_pack("{s:I, s:f, s:f}", "conflicts",
                                             (json_int_t)r->n_conflicts[i], "wait_p95_ms",
                                             (double)r->wait_p95_us[i] / 1000, "hold_p95_ms",
                                             (double)r->hold_p95_us[i] / 1000)) != 0);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "took_ms", (json_int_t)r->took_ms,
                     "calls", (json_int_t)r->n_calls, "killed", (json_int_t)r->n_killed, "failed",
                     (json_int_t)r->n_failed, "races", (json_int_t)r->n_races, "broken",
                     (json_int_t)r->n_broken, "acts", acts, "pipelines", pipelines);
}

static int
print_storm(const struct cli *cli, const struct campus_storm_result *r)
{
    static const char *const  act_headers[]  = { "CALL", ">DONE", ">REFUSED", ">PER SECOND" };
    static const char *const  pipe_headers[] = { "PIPELINE", ">CONFLICTS", ">P95 WAIT MS",
                                                 ">P95 HOLD MS" };
    AUTO_GRID struct cli_grid acts = { 0 }, pipes = { 0 };

    if (cli->json)
        return il__cli_json_print(storm_json(r));
    il__cli_grid_init(&acts, act_headers, ARRAY_LEN(act_headers));
    il__cli_grid_init(&pipes, pipe_headers, ARRAY_LEN(pipe_headers));
    for (size_t i = 0; i < CAMPUS_ACT_COUNT; i++) {
        il__cli_grid_add(&acts, "%s", campus_act_names[i]);
        il__cli_grid_add(&acts, "%" PRIu64, r->n_done[i]);
        il__cli_grid_add(&acts, "%" PRIu64, r->n_refused[i]);
        il__cli_grid_add(&acts, "%.0f", 1000.0 * (double)r->n_done[i] / (double)MAX(r->took_ms, 1));
    }
    for (size_t i = 0; i < CAMPUS_STORM_PIPELINES; i++) {
        il__cli_grid_add(&pipes, "%s", campus_storm_pipelines[i]);
        il__cli_grid_add(&pipes, "%" PRIu64, r->n_conflicts[i]);
        il__cli_grid_add(&pipes, "%.1f", (double)r->wait_p95_us[i] / 1000);
        il__cli_grid_add(&pipes, "%.1f", (double)r->hold_p95_us[i] / 1000);
    }
    int status = il__cli_grid_print(&acts);
    if (status == 0)
        status = il__cli_grid_print(&pipes);
    (void)printf("%" PRIu64 " calls in %.1f s, %" PRIu64 " processes killed, %" PRIu64
                 " races decided by a constraint; %zu invariants broken\n",
                 r->n_calls, (double)r->took_ms / 1000, r->n_killed, r->n_races, r->n_broken);
    return status;
}

/* Is there something to storm? Everything is closed again: the storm forks. */
static il_status
look_for_data(const struct cli *cli, il_error *reterr)
{
    AUTO(local_release) struct local l = { .db = NULL };
    struct campus_user               user;
    il_status                        st = local_open(&l, cli, reterr);

    if (st == IL_OK)
        st =
            campus_user_get(&l.call, &(struct campus_in){ .user = "seed-user-001" }, &user, reterr);
    if (l.call.code == CAMPUS_E_USER_NOT_FOUND)
        st = il__error_set(reterr, IL_NOT_FOUND,
                           "campus storm: no sample data; run `interlock campus seed` first");
    return st;
}

int
il__cli_cmd_campus_storm(struct cli *cli)
{
    struct campus_storm s = {
        .store_url   = CLI_SETTING(cli, store)->text,
        .data_url    = data_url(cli),
        .tenant      = CLI_SETTING(cli, tenant)->text,
        .seed        = (uint64_t)CLI_OPTION(cli, campus_storm, seed)->number,
        .n_processes = (unsigned)CLI_OPTION(cli, campus_storm, processes)->number,
        .time_ms     = CLI_OPTION(cli, campus_storm, time)->number,
        .n_calls_max = (uint64_t)CLI_OPTION(cli, campus_storm, calls)->number,
        .kill_ms     = CLI_OPTION(cli, campus_storm, kill)->number,
        .n_users     = CAMPUS_SEED_USERS_MIN,
        .n_sessions  = 12,
        .broken      = tell_broken,
        .cookie      = cli,
        .progress    = show_storm,
    };
    struct campus_storm_result r;
    il_error                   err = { .message = "" };

    il_status st = il__cli_store_not_server(cli, "it needs direct access to a store", &err);
    if (st == IL_OK)
        st = look_for_data(cli, &err);
    if (st == IL_OK)
        st = campus_storm(&s, &r, &err);
    il__cli_progress_end();
    if (st != IL_OK)
        return il__cli_fail(&err);
    if (r.failure[0] != '\0')
        il__cli_error("%" PRIu64 " calls failed; the first: %s", r.n_failed, r.failure);
    int status = print_storm(cli, &r);
    return status == 0 && (r.n_broken > 0 || r.n_failed > 0) ? CLI_EXIT_STORM_BROKEN : status;
}
