/*
 * cmd_tenant.c: `interlock tenant create|list|set`: tenants and their limits. Works on the data
 * store directly.
 */
#include <inttypes.h>

#include "base/error.h"
#include "cli/data.h"

#define NAME_COLUMN 1 /* may be truncated on a narrow terminal */

static json_t *
tenant_json(const struct il__data_tenant *t)
{
    const struct il__data_limits *l = &t->limits;

    return json_pack("{s:s, s:o, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}, s:o}",
                     "id", t->id, "name", il__cli_json_text(t->name), "limits",
                     "requests_per_second", (json_int_t)l->requests_per_second, "burst",
                     (json_int_t)l->burst, "waiters", (json_int_t)l->waiters, "streams",
                     (json_int_t)l->streams, "locks", (json_int_t)l->locks, "jobs",
                     (json_int_t)l->jobs, "triggers_per_minute", (json_int_t)l->triggers_per_minute,
                     "triggers_per_hour", (json_int_t)l->triggers_per_hour, "runs",
                     (json_int_t)l->runs, "runs_per_day", (json_int_t)l->runs_per_day, "bytes",
                     (json_int_t)l->bytes, "created_at", il__cli_json_time(t->created_at_ms));
}

/* ---- create and set -------------------------------------------------------------------------- */

/* Both commands have the same options; `which` is the first option of a command. */
enum limit {
    LIMIT_NAME,
    LIMIT_REQUESTS,
    LIMIT_BURST,
    LIMIT_WAITERS,
    LIMIT_STREAMS,
    LIMIT_LOCKS,
    LIMIT_JOBS,
    LIMIT_TRIGGERS_MINUTE,
    LIMIT_TRIGGERS_HOUR,
    LIMIT_RUNS,
    LIMIT_RUNS_DAY,
    LIMIT_BYTES,
    LIMIT_COUNT
};
_Static_assert(CLI_OPT_tenant_create_bytes - CLI_OPT_tenant_create_name == LIMIT_BYTES,
               "as options.def has them");
_Static_assert(CLI_OPT_tenant_set_bytes - CLI_OPT_tenant_set_name == LIMIT_BYTES,
               "as options.def has them");

/* Given options replace the current values. */
static void
take_options(const struct cli *cli, size_t first, struct il__data_tenant *t)
{
    const struct cli_value *values   = &cli->args.values[first];
    int64_t *const          limits[] = { [LIMIT_NAME]            = NULL,
                                         [LIMIT_REQUESTS]        = &t->limits.requests_per_second,
                                         [LIMIT_BURST]           = &t->limits.burst,
                                         [LIMIT_WAITERS]         = &t->limits.waiters,
                                         [LIMIT_STREAMS]         = &t->limits.streams,
                                         [LIMIT_LOCKS]           = &t->limits.locks,
                                         [LIMIT_JOBS]            = &t->limits.jobs,
                                         [LIMIT_TRIGGERS_MINUTE] = &t->limits.triggers_per_minute,
                                         [LIMIT_TRIGGERS_HOUR]   = &t->limits.triggers_per_hour,
                                         [LIMIT_RUNS]            = &t->limits.runs,
                                         [LIMIT_RUNS_DAY]        = &t->limits.runs_per_day,
                                         [LIMIT_BYTES]           = &t->limits.bytes };

    if (values[LIMIT_NAME].given)
        t->name = values[LIMIT_NAME].text;
    for (size_t i = LIMIT_REQUESTS; i < LIMIT_COUNT; i++) {
        if (values[i].given)
            *limits[i] = values[i].number;
    }
}

/* Store it and show the result. */
static int
conclude(struct cli *cli, struct il__data *d, const char *act, const struct il__data_tenant *t,
         const char *did)
{
    il_error  err;
    il_status st = il__cli_data_audit(d, act, t->id, t->id, "", tenant_json(t), &err);

    if (st != IL_OK)
        return il__cli_data_fail(cli, &err);
    if (cli->json)
        return il__cli_json_print(tenant_json(t));
    (void)printf("%s: %s\n", did, t->id);
    return 0;
}

int
il__cli_cmd_tenant_create(struct cli *cli)
{
    struct il__data_tenant t = { .id = cli->args.operands[0], .name = "" };
    struct il__data       *d = NULL;
    il_error               err;
    il_status              st = il__cli_data_open(cli, CLI_DATA_MAKE, &d, &err);
    int                    status;

    take_options(cli, CLI_OPT_tenant_create_name, &t);
    if (st == IL_OK)
        st = il__data_tenant_create(d, &t, &err);
    if (st == IL_DUPLICATE) {
        il__cli_error("tenant create: %s", err.message);
        status = CLI_EXIT_EXISTS;
    } else {
        status = st == IL_OK ? conclude(cli, d, "tenant.create", &t, "made")
                             : il__cli_data_fail(cli, &err);
    }
    il__data_close(d);
    return status;
}

/* A copy of the current state. */
struct found {
    struct il__data_tenant tenant;
    char                   name[DATA_NAME_BYTES_MAX + 1];
};

static void
take_found(void *cookie, const struct il__data_tenant *t)
{
    struct found *f = cookie;

    f->tenant.limits        = t->limits;
    f->tenant.created_at_ms = t->created_at_ms;
    (void)snprintf(f->name, sizeof f->name, "%s", t->name);
}

int
il__cli_cmd_tenant_set(struct cli *cli)
{
    struct found     f = { .tenant = { .id = cli->args.operands[0] } };
    struct il__data *d = NULL;
    il_error         err;
    il_status        st = il__cli_data_open(cli, CLI_DATA_CHANGE, &d, &err);

    if (st == IL_OK)
        st = il__data_tenant_get(d, f.tenant.id, take_found, &f, &err);
    f.tenant.name = f.name;
    take_options(cli, CLI_OPT_tenant_set_name, &f.tenant);
    if (st == IL_OK)
        st = il__data_tenant_set(d, &f.tenant, &err);
    int status = st == IL_OK ? conclude(cli, d, "tenant.set", &f.tenant, "changed")
                             : il__cli_data_fail(cli, &err);
    il__data_close(d);
    return status;
}

/* ---- list ------------------------------------------------------------------------------------ */

static void
add_number(struct cli_grid *g, int64_t limit)
{
    if (limit == 0)
        il__cli_grid_add(g, "-");
    else
        il__cli_grid_add(g, "%" PRId64, limit);
}

static void
take_tenant(void *cookie, const struct il__data_tenant *t)
{
    struct cli_page *p = cookie;

    if (!il__cli_page_wants(p, t->id))
        return;
    if (p->cli->json) {
        il__cli_page_add(p, tenant_json(t));
        return;
    }
    il__cli_grid_add(&p->grid, "%s", t->id);
    il__cli_grid_add(&p->grid, "%s", t->name);
    add_number(&p->grid, t->limits.requests_per_second);
    add_number(&p->grid, t->limits.burst);
    add_number(&p->grid, t->limits.waiters);
    add_number(&p->grid, t->limits.streams);
    add_number(&p->grid, t->limits.locks);
    add_number(&p->grid, t->limits.jobs);
    add_number(&p->grid, t->limits.triggers_per_minute);
    add_number(&p->grid, t->limits.triggers_per_hour);
    add_number(&p->grid, t->limits.runs);
    add_number(&p->grid, t->limits.runs_per_day);
    add_number(&p->grid, t->limits.bytes);
}

int
il__cli_cmd_tenant_list(struct cli *cli)
{
    static const char *const  headers[] = { "ID",          "NAME",        ">REQUESTS/S", ">BURST",
                                            ">WAITERS",    ">STREAMS",    ">LOCKS",      ">JOBS",
                                            ">TRIGGERS/M", ">TRIGGERS/H", ">RUNS",       ">RUNS/D",
                                            ">BYTES" };
    AUTO_PAGE struct cli_page p         = { 0 };
    struct il__data          *d         = NULL;
    il_error                  err;
    il_status                 st = il__cli_data_open(cli, CLI_DATA_LOOK, &d, &err);

    il__cli_page_init(&p, cli, CLI_OPTION(cli, tenant_list, limit)->number, headers,
                      ARRAY_LEN(headers));
    p.grid.elastic = NAME_COLUMN;
    if (st == IL_OK && d != NULL)
        st = il__data_tenant_list(d, CLI_OPTION(cli, tenant_list, cursor)->text, p.limit + 1,
                                  take_tenant, &p, &err);
    il__data_close(d);
    return st == IL_OK ? il__cli_page_print(&p, "no tenants") : il__cli_data_fail(cli, &err);
}
