/*
 * cmd_key.c: `interlock key create|list|revoke`: API keys. Works on the data store directly, so
 * that the first key can be created before a server runs.
 */
#include <sys/prctl.h>
#include <unistd.h>

#include "apps/app.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "cli/audit.h"
#include "cli/data_store.h"
#include "cli/page.h"
#include "cli/print_item.h"
#include "http/auth.h"
#include "http/route.h"

#define NAME_COLUMN 2 /* may be truncated on a narrow terminal */

/* The named permissions as an array. */
static json_t *
permissions_json(const char *text)
{
    json_t *array = json_array();

    while (array != NULL && *text != '\0') {
        size_t n = strcspn(text, " ");
        if (json_array_append_new(array, json_stringn(text, n)) != 0) {
            json_decref(array);
            return NULL;
        }
        text += n + (text[n] == ' ');
    }
    return array;
}

/* ---- key create ------------------------------------------------------------------------------ */

struct creation {
    struct cli         *cli;
    struct il__data_key key;
    struct il__buf      permissions;
    bool                is_unknown; /* one of them */
    char                id[DATA_ID_BYTES];
    char                secret[DATA_KEY_BYTES_MAX];
};

/* ---- permissions ----------------------------------------------------------------------------- */

/* The named permissions of the routes of this binary, sorted. */
static char   known[HTTP_ROUTES_MAX][HTTP_PERMISSION_BYTES];
static size_t n_known;

static const char *
known_at(const void *cookie UNUSED, size_t i)
{
    return i < n_known ? known[i] : NULL;
}

static bool
is_named(const struct http_route *route)
{
    return route->permission.role != HTTP_MAY_open && route->permission.role != HTTP_MAY_any;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void
learn_permissions(void)
{
    http_routes_init();
    for (size_t i = 0; i < IL_APP_COUNT; i++)
        http_routes_add(il__apps[i], il__apps[i]->routes, il__apps[i]->n_routes);
    for (size_t i = 0; i < http_n_routes; i++) {
        if (is_named(http_route(i)))
            http_permission_of(http_route(i), known[n_known++]);
    }
    qsort(known, n_known, sizeof known[0], compare_names);
}

/* Does it let a key use any route? A longer one includes its beginning (http_may_call()). */
static bool
is_known(const char *permission)
{
    struct http_caller c = { .role = DATA_ROLE_NONE };

    (void)snprintf(c.permissions, sizeof c.permissions, "%s", permission);
    for (size_t i = 0; i < http_n_routes; i++) {
        if (is_named(http_route(i)) && http_may_call(&c, http_route(i)))
            return true;
    }
    return false;
}

/* A key whose permission is misspelt would be refused by the server, later and without a hint. */
static il_status
check_permissions(struct creation *c, il_error *reterr)
{
    const char *name;

    learn_permissions();
    for (size_t i = 0;
         (name = il__cli_args_each(&c->cli->args, CLI_OPT_key_create_permission, i)) != NULL; i++) {
        if (is_known(name))
            continue;
        const char *meant = il__suggest(name, known_at, NULL);
        c->is_unknown     = true;
        return il__error_set(reterr, IL_INVAL, "key create: unknown permission '%.64s'%s%s%s", name,
                             meant != NULL ? "; did you mean '" : "", meant != NULL ? meant : "",
                             meant != NULL ? "'?" : "");
    }
    return IL_OK;
}

static void
print_known(void)
{
    (void)fputs("known:", stderr);
    for (size_t i = 0; i < n_known; i++) {
        if (i == 0 || strcmp(known[i], known[i - 1]) != 0)
            (void)fprintf(stderr, " %s", known[i]);
    }
    (void)fputc('\n', stderr);
}

/* Its permissions, in the words of the options. */
static il_status
take_rights(struct creation *c, il_error *reterr)
{
    struct cli *cli  = c->cli;
    bool        role = CLI_GIVEN(cli, key_create, role);
    const char *name;

    if (role && CLI_GIVEN(cli, key_create, admin))
        return il__error_set(reterr, IL_INVAL, "key create: --role and --admin cannot be combined");
    il__buf_init(&c->permissions, 8 * DATA_PERMISSIONS_BYTES_MAX);
    for (size_t i = 0;
         (name = il__cli_args_each(&cli->args, CLI_OPT_key_create_permission, i)) != NULL; i++) {
        if (strchr(name, ' ') != NULL)
            return il__error_set(
                reterr, IL_INVAL,
                "key create: a permission cannot contain spaces; repeat --permission instead");
        il__buf_addf(&c->permissions, "%s%s", i > 0 ? " " : "", name);
    }
    if (c->permissions.failed)
        return il__error_nomem(reterr);
    c->key.permissions = il__buf_str(&c->permissions);
    c->key.role        = c->permissions.n_bytes > 0 ? DATA_ROLE_NONE : DATA_ROLE_WRITE;
    if (CLI_GIVEN(cli, key_create, admin))
        c->key.role = DATA_ROLE_ADMIN;
    if (role)
        c->key.role = il__data_role_parse(CLI_OPTION(cli, key_create, role)->text);
    return IL_OK;
}

/* Everything about a key except the key itself. */
static json_t *
new_json(const struct creation *c)
{
    return json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:o}", "id", c->id, "tenant", c->key.tenant,
                     "name", il__cli_json_text(c->key.name != NULL ? c->key.name : ""), "role",
                     il__data_role_name(c->key.role), "permissions",
                     permissions_json(c->key.permissions), "prefix",
                     il__cli_json_text(c->key.prefix != NULL ? c->key.prefix : ""), "expires_at",
                     il__cli_json_time(c->key.expires_at_ms));
}

static il_status
create(struct creation *c, il_error *reterr)
{
    struct il__data *d  = NULL;
    il_status        st = il__cli_data_open(c->cli, CLI_DATA_KEYS, &d, reterr);

    if (st == IL_OK)
        st = il__data_key_create(d, &c->key, true, c->id, c->secret, reterr);
    /* If the audit entry cannot be written, the key is not shown, so it cannot be used either. */
    if (st == IL_OK)
        st = il__cli_data_audit(d, "key.create", c->key.tenant, c->id, "", new_json(c), reterr);
    il__data_close(d);
    return st;
}

/* The key goes straight to the terminal, without another copy in memory. */
static int
print_new(const struct creation *c)
{
    struct cli *cli    = c->cli;
    bool        pretty = isatty(STDOUT_FILENO) != 0;
    json_t     *json   = cli->json ? new_json(c) : NULL;
    char *text = json != NULL ? json_dumps(json, pretty ? JSON_INDENT(2) : JSON_COMPACT) : NULL;

    json_decref(json);
    if (cli->json && text == NULL)
        return il__cli_fail_memory();
    (void)setvbuf(stdout, NULL, _IONBF, 0);
    if (cli->json)
        (void)fputs(pretty ? "{\n  \"key\": \"" : "{\"key\":\"", stdout);
    (void)fputs(c->secret, stdout);
    if (cli->json)
        (void)printf("\",%s", text + 1);
    (void)putchar('\n');
    free(text);
    if (!cli->json)
        il__cli_note(cli, "created key %s of tenant %s, role %s; the key is shown only once", c->id,
                     c->key.tenant, il__data_role_name(c->key.role));
    return 0;
}

int
il__cli_cmd_key_create(struct cli *cli)
{
    struct creation c = { .cli = cli,
                          .key = { .tenant = CLI_SETTING(cli, tenant)->text,
                                   .name   = CLI_OPTION(cli, key_create, name)->text,
                                   .prefix = CLI_OPTION(cli, key_create, prefix)->text } };
    il_error        err;

    /* No core file, and no debugger of the same user, while the key is in memory. */
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (CLI_GIVEN(cli, key_create, expires_in))
        c.key.expires_at_ms = il__clock_wall_ms() + CLI_OPTION(cli, key_create, expires_in)->number;
    il_status st = take_rights(&c, &err);
    if (st == IL_OK && c.permissions.n_bytes > 0)
        st = check_permissions(&c, &err);
    if (st == IL_OK)
        st = create(&c, &err);
    int status = st == IL_OK ? print_new(&c) : il__cli_data_fail(cli, &err);
    if (c.is_unknown)
        print_known();
    if (c.secret[0] != '\0')
        il__data_forget(c.secret, sizeof c.secret);
    il__buf_release(&c.permissions);
    return status;
}

/* ---- key list -------------------------------------------------------------------------------- */

static json_t *
key_json(const struct il__data_key *k)
{
    return json_pack(
        "{s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "id", k->id, "tenant", k->tenant,
        "name", il__cli_json_text(k->name), "role", il__data_role_name(k->role), "permissions",
        permissions_json(k->permissions), "prefix", il__cli_json_text(k->prefix), "created_at",
        il__cli_json_time(k->created_at_ms), "expires_at", il__cli_json_time(k->expires_at_ms),
        "used_at", il__cli_json_time(k->used_at_ms), "revoked_at",
        il__cli_json_time(k->revoked_at_ms));
}

static void
add_row(struct cli_grid *g, const struct il__data_key *k)
{
    int64_t now_ms = il__clock_wall_ms();
    char    text[CLI_AGE_BYTES];

    il__cli_grid_add(g, "%s", k->id);
    il__cli_grid_add(g, "%s", k->tenant);
    il__cli_grid_add(g, "%s", k->name);
    il__cli_grid_add(g, "%s%s%s", il__data_role_name(k->role), k->permissions[0] != '\0' ? " " : "",
                     k->permissions);
    il__cli_grid_add(g, "%s", k->prefix);
    il__cli_grid_add(g, "%s", il__cli_age(MAX(now_ms - k->created_at_ms, 0), text));
    if (k->used_at_ms == 0)
        il__cli_grid_add(g, "never");
    else if (now_ms - k->used_at_ms < 60000) /* known only to the minute */
        il__cli_grid_add(g, "<1m");
    else
        il__cli_grid_add(g, "%s", il__cli_age(now_ms - k->used_at_ms, text));
    if (k->revoked_at_ms != 0)
        il__cli_grid_add(g, "revoked");
    else if (k->expires_at_ms != 0 && k->expires_at_ms <= now_ms)
        il__cli_grid_add(g, "expired");
    else if (k->expires_at_ms != 0)
        il__cli_grid_add(g, "expires in %s", il__cli_age(k->expires_at_ms - now_ms, text));
    else
        il__cli_grid_add(g, "active");
}

static void
take_key(void *cookie, const struct il__data_key *k)
{
    struct cli_page *p = cookie;

    if (!il__cli_page_wants(p, k->id))
        return;
    if (p->cli->json)
        il__cli_page_add(p, key_json(k));
    else
        add_row(&p->grid, k);
}

int
il__cli_cmd_key_list(struct cli *cli)
{
    static const char *const  headers[] = { "ID",     "TENANT", "NAME",  "ROLE",
                                            "PREFIX", ">AGE",   ">USED", "STATE" };
    AUTO_PAGE struct cli_page p         = { 0 };
    struct il__data          *d         = NULL;
    il_error                  err;
    il_status                 st = il__cli_data_open(cli, CLI_DATA_LOOK, &d, &err);

    il__cli_page_init(&p, cli, CLI_OPTION(cli, key_list, limit)->number, headers,
                      ARRAY_LEN(headers));
    p.grid.elastic = NAME_COLUMN;
    if (st == IL_OK && d != NULL)
        st = il__data_key_list(
            d, CLI_GIVEN(cli, common, tenant) ? CLI_SETTING(cli, tenant)->text : NULL,
            CLI_OPTION(cli, key_list, cursor)->text, p.limit + 1, take_key, &p, &err);
    il__data_close(d);
    return st == IL_OK ? il__cli_page_print(&p, "no keys") : il__cli_data_fail(cli, &err);
}

/* ---- key revoke ------------------------------------------------------------------------------ */

static void
take_tenant(void *cookie, const struct il__data_key *k)
{
    (void)snprintf(cookie, IL_TENANT_BYTES_MAX + 1, "%s", k->tenant);
}

static il_status
revoke_key(struct cli *cli, struct il__data *d, const char *id, il_error *reterr)
{
    const char *tenant = CLI_GIVEN(cli, common, tenant) ? CLI_SETTING(cli, tenant)->text : NULL;
    char        whose[IL_TENANT_BYTES_MAX + 1] = "";
    il_status   st = il__data_key_get(d, tenant, id, take_tenant, whose, reterr);

    if (st == IL_OK)
        st = il__data_key_revoke(d, tenant, id, false, reterr);
    if (st == IL_OK)
        st = il__cli_data_audit(d, "key.revoke", whose, id,
                                CLI_OPTION(cli, key_revoke, reason)->text, json_object(), reterr);
    return st;
}

int
il__cli_cmd_key_revoke(struct cli *cli)
{
    const char      *id = cli->args.operands[0];
    struct il__data *d  = NULL;
    il_error         err;
    il_status        st = il__cli_data_open(cli, CLI_DATA_CHANGE, &d, &err);

    if (st == IL_OK)
        st = revoke_key(cli, d, id, &err);
    il__data_close(d);
    if (st != IL_OK)
        return il__cli_data_fail(cli, &err);
    if (cli->json)
        return il__cli_json_print(json_pack("{s:s, s:b}", "id", id, "revoked", 1));
    (void)printf("revoked: %s\n", id);
    return 0;
}
