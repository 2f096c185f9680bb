/*
 * cmd_tenant.c: `interlock tenant create|list|set`: tenants and their limits. Works on the data
 * store directly.
 */
#include <inttypes.h>

#include "base/error.h"
#include "cli/audit.h"
#include "cli/data_store.h"
#include "cli/page.h"
#include "cli/print_item.h"

#define NAME_COLUMN 1 /* may be truncated on a narrow terminal */

static json_t *
tenant_json(const struct il__data_tenant *t)
{
    json_t *tenant =
        json_pack("{s:s, s:o, s:{}}", "id", t->id, "name", il__cli_json_text(t->name), "limits");
    json_t *limits = json_object_get(tenant, "limits");
    bool    ok     = limits != NULL;

#define LIMIT(name, ...) \
    ok = ok && json_object_set_new(limits, #name, json_integer(t->limits.name)) == 0;
#include "data/limits.def"
#undef LIMIT
    if (!ok ||
        json_object_set_new(tenant, "created_at", il__cli_json_time(t->created_at_ms)) != 0) {
        json_decref(tenant);
        return NULL;
    }
    return tenant;
}

/* ---- create and set -------------------------------------------------------------------------- */

/* Both commands have the same options: the name, then the limits. */
enum {
    LIMIT_NAME,
#define LIMIT(name, ...) LIMIT_##name,
#include "data/limits.def"
#undef LIMIT
};
_Static_assert(CLI_OPT_tenant_create_bytes - CLI_OPT_tenant_create_name == LIMIT_bytes,
               "as options.def has them");
_Static_assert(CLI_OPT_tenant_set_bytes - CLI_OPT_tenant_set_name == LIMIT_bytes,
               "as options.def has them");

/* Given options replace the values; `first` is the first option of a command. */
static void
take_options(const struct cli *cli, size_t first, struct il__data_tenant *t)
{
    const struct cli_value *values = &cli->args.values[first];

    if (values[LIMIT_NAME].given)
        t->name = values[LIMIT_NAME].text;
#define LIMIT(name, ...)            \
    if (values[LIMIT_##name].given) \
        t->limits.name = values[LIMIT_##name].number;
#include "data/limits.def"
#undef LIMIT
}

/* Store it and show the result. */
static int
conclude(struct cli *cli, struct il__data *d, const char *action, const struct il__data_tenant *t,
         const char *did)
{
    il_error  err;
    il_status st = il__cli_data_audit(d, action, t->id, t->id, "", tenant_json(t), &err);

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
        status = st == IL_OK ? conclude(cli, d, "tenant.create", &t, "created")
                             : il__cli_data_fail(cli, &err);
    }
    il__data_close(d);
    return status;
}

/* A copy of the tenant as changed. */
struct changed {
    struct il__data_tenant tenant;
    char                   name[DATA_NAME_BYTES_MAX + 1];
};

static void
take_changed(void *cookie, const struct il__data_tenant *t)
{
    struct changed *c = cookie;

    c->tenant.limits        = t->limits;
    c->tenant.created_at_ms = t->created_at_ms;
    (void)snprintf(c->name, sizeof c->name, "%s", t->name);
}

int
il__cli_cmd_tenant_set(struct cli *cli)
{
    struct il__data_tenant t = { .id = cli->args.operands[0], .limits = il__data_limits_keep };
    struct changed         c = { .tenant = { .id = t.id, .name = c.name } };
    struct il__data       *d = NULL;
    il_error               err;
    il_status              st = il__cli_data_open(cli, CLI_DATA_CHANGE, &d, &err);

    take_options(cli, CLI_OPT_tenant_set_name, &t);
    if (st == IL_OK)
        st = il__data_tenant_set(d, &t, take_changed, &c, &err);
    int status = st == IL_OK ? conclude(cli, d, "tenant.set", &c.tenant, "changed")
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
#define LIMIT(name, ...) add_number(&p->grid, t->limits.name);
#include "data/limits.def"
#undef LIMIT
}

int
il__cli_cmd_tenant_list(struct cli *cli)
{
    static const char *const headers[] = {
        "ID",
        "NAME",
#define LIMIT(name, option, heading, max, help) heading,
#include "data/limits.def"
#undef LIMIT
    };
    AUTO_PAGE struct cli_page p = { 0 };
    struct il__data          *d = NULL;
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
