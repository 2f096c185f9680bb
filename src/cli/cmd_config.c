/*
 * cmd_config.c: `interlock config`: shows the effective configuration and its files, and checks a
 * file. It loads the configuration itself, because `path` and `check` must work while it is broken.
 */
#include <ctype.h>
#include <errno.h>
#include <unistd.h>

#include "cli/cli.h"

/* The value without secrets; il__free() it. */
static char *
shown(size_t i_key, const struct cli_setting *setting)
{
    const char *text = setting->text != NULL ? setting->text : "";

    return i_key == CLI_KEY_store || i_key == CLI_KEY_data ? il__cli_safe_url(text)
                                                           : il__strdup(text);
}

static json_t *
setting_json(size_t i_key, const struct cli_setting *setting)
{
    AUTO_FREE char *value = shown(i_key, setting);

    if (value == NULL)
        return NULL;
    return json_pack("{s:s, s:o, s:o, s:s}", "key", il__cli_keys[i_key].name, "value",
                     il__cli_json_text(value), "source", il__cli_json_text(setting->origin), "env",
                     il__cli_keys[i_key].env);
}

/* A connection's value: where its URL is, or the URL without its password. il__free() it. */
static char *
connection_shown(const struct cli_connection *c)
{
    AUTO_BUF struct il__buf b = { 0 };

    if (c->url != NULL)
        return il__cli_safe_url(c->url);
    il__buf_init(&b, 8192);
    il__buf_addf(&b, "%s%s", c->url_env != NULL ? "$" : "",
                 c->url_env != NULL ? c->url_env : c->url_file);
    return il__buf_take(&b);
}

static json_t *
connection_json(const struct cli_connection *c)
{
    AUTO_FREE char *value = connection_shown(c);
    char            name[128], env[128];

    (void)snprintf(name, sizeof name, "connections.%s", c->name);
    (void)snprintf(env, sizeof env, "INTERLOCK_CONNECTION_%s", c->name);
    for (char *p = env; *p != '\0'; p++)
        *p = (char)toupper((unsigned char)*p);
    return value != NULL
               ? json_pack("{s:s, s:o, s:o, s:s}", "key", name, "value", il__cli_json_text(value),
                           "source", il__cli_json_text(c->origin), "env", env)
               : NULL;
}

static int
show_json(const struct cli *cli)
{
    json_t *items = json_array();

    for (size_t i = 0; i < CLI_KEY_COUNT; i++) {
        if (json_array_append_new(items, setting_json(i, &cli->config.settings[i])) != 0) {
            json_decref(items);
            return il__cli_fail_memory();
        }
    }
    for (size_t i = 0; i < cli->config.n_connections; i++) {
        if (json_array_append_new(items, connection_json(&cli->config.connections[i])) != 0) {
            json_decref(items);
            return il__cli_fail_memory();
        }
    }
    return il__cli_json_print(json_pack("{s:o, s:n}", "items", items, "next"));
}

static int
show(struct cli *cli)
{
    static const char *const  headers[] = { "KEY", "VALUE", "SOURCE" };
    AUTO_GRID struct cli_grid g         = { 0 };
    il_error                  err;
    il_status                 st = il__cli_config_load(&cli->config, &cli->args, &err);

    if (st != IL_OK)
        return il__cli_fail(&err);
    if (cli->json)
        return show_json(cli);
    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    for (size_t i = 0; i < CLI_KEY_COUNT; i++) {
        const struct cli_setting *setting = &cli->config.settings[i];
        AUTO_FREE char           *value   = shown(i, setting);
        if (value == NULL)
            return il__cli_fail_memory();
        il__cli_grid_add(&g, "%s", il__cli_keys[i].name);
        il__cli_grid_add(&g, "%s", value);
        il__cli_grid_add(&g, "%s", setting->origin != NULL ? setting->origin : "");
    }
    for (size_t i = 0; i < cli->config.n_connections; i++) {
        const struct cli_connection *c     = &cli->config.connections[i];
        AUTO_FREE char              *value = connection_shown(c);
        if (value == NULL)
            return il__cli_fail_memory();
        il__cli_grid_add(&g, "connections.%s", c->name);
        il__cli_grid_add(&g, "%s", value);
        il__cli_grid_add(&g, "%s", c->origin);
    }
    return il__cli_grid_print(&g);
}

static const char *
file_state(const char *path)
{
    if (access(path, R_OK) == 0)
        return "read";
    return errno == ENOENT ? "missing" : strerror(errno);
}

static int
print_paths(struct cli *cli)
{
    static const char *const                                   headers[] = { "FILE", "STATE" };
    AUTO_GRID struct cli_grid                                  g         = { 0 };
    AUTO(il__cli_config_files_release) struct cli_config_files files     = { 0 };
    il_error                                                   err;
    il_status st = il__cli_config_files(&cli->args, &files, &err);

    if (st != IL_OK)
        return il__cli_fail(&err);
    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    json_t *items = json_array();
    for (size_t i = 0; i < files.n; i++) {
        const char *state = file_state(files.paths[i]);
        json_t     *item =
            json_pack("{s:o, s:s}", "file", il__cli_json_text(files.paths[i]), "state", state);
        il__cli_grid_add(&g, "%s", files.paths[i]);
        il__cli_grid_add(&g, "%s", state);
        if (json_array_append_new(items, item) != 0)
            g.failed = true;
    }
    if (cli->json && !g.failed)
        return il__cli_json_print(json_pack("{s:o, s:n}", "items", items, "next"));
    json_decref(items);
    return il__cli_grid_print(&g);
}

static int
check_json(const char *path, il_status st, size_t n_keys, const char *why)
{
    int status = il__cli_json_print(json_pack(
        "{s:o, s:b, s:I, s:o}", "file", il__cli_json_text(path), "ok", st == IL_OK ? 1 : 0, "keys",
        (json_int_t)n_keys, "error", il__cli_json_text(st == IL_OK ? NULL : why)));

    return status != 0 ? status : il_status_exit(st);
}

static int
check(struct cli *cli)
{
    const char *path   = cli->args.operands[1];
    size_t      n_keys = 0;
    il_error    err;

    if (path == NULL)
        return il__cli_usage("config: check needs a FILE");
    il_status st = il__cli_config_check(path, &n_keys, &err);
    if (cli->json)
        return check_json(path, st, n_keys, err.message);
    if (st != IL_OK)
        return il__cli_fail(&err);
    il__cli_puts(path);
    (void)printf(": %zu key%s, no errors\n", n_keys, n_keys == 1 ? "" : "s");
    return 0;
}

int
il__cli_cmd_config(struct cli *cli)
{
    const char *what = cli->args.n_operands > 0 ? cli->args.operands[0] : "show";

    if (strcmp(what, "check") == 0)
        return check(cli);
    if (cli->args.n_operands > 1)
        return il__cli_usage("config: unexpected argument '%.80s'", cli->args.operands[1]);
    return strcmp(what, "path") == 0 ? print_paths(cli) : show(cli);
}
