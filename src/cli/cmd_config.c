/*
 * cmd_config.c: `interlock config`: shows the effective configuration and its files, and checks a
 * file. It loads the configuration itself, because `path` and `check` must work while it is broken.
 */
#include <errno.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/settings.h"

static int
show_json(const struct cli_settings *settings)
{
    json_t *items = json_array();

    for (size_t i = 0; i < settings->n; i++) {
        const struct http_shown *at   = &settings->items[i];
        json_t                  *item = json_pack("{s:s, s:o, s:o, s:s}", "key", at->name, "value",
                                                  il__cli_json_text(at->value), "source",
                                                  il__cli_json_text(at->origin), "env", at->env);
        if (json_array_append_new(items, item) != 0) {
            json_decref(items);
            return il__cli_fail_memory();
        }
    }
    return il__cli_json_print(json_pack("{s:o, s:n}", "items", items, "next"));
}

static int
show(struct cli *cli)
{
    static const char *const              headers[] = { "KEY", "VALUE", "SOURCE" };
    AUTO_CLI_SETTINGS struct cli_settings settings  = { 0 };
    AUTO_GRID struct cli_grid             g         = { 0 };
    il_error                              err;
    il_status                             st = il__cli_config_load(&cli->config, &cli->args, &err);

    if (st != IL_OK)
        return il__cli_fail(&err);
    if (!il__cli_settings_init(&settings, &cli->config, NULL))
        return il__cli_fail_memory();
    if (cli->json)
        return show_json(&settings);
    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    for (size_t i = 0; i < settings.n; i++) {
        il__cli_grid_add(&g, "%s", settings.items[i].name);
        il__cli_grid_add(&g, "%s", settings.items[i].value);
        il__cli_grid_add(&g, "%s", settings.items[i].origin);
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
    static const char *const                               headers[] = { "FILE", "STATE" };
    AUTO_GRID struct cli_grid                              g         = { 0 };
    AUTO(il__config_files_release) struct il__config_files files     = { 0 };
    il_error                                               err;
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
