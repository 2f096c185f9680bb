/*
 * cmd_serve.c: `interlock serve`: builds the server's options from the configuration, and rebuilds
 * them on a reload.
 */
#include <signal.h>
#include <unistd.h>

#include "apps/app.h"
#include "base/error.h"
#include "cli/app_config.h"
#include "cli/cli.h"
#include "cli/settings.h"
#include "http/http.h"

#define LINK_VARIABLE "INTERLOCK_LINK"
#define LINK_BYTES_MAX 256

static const char *
text_or_null(const struct il__setting *setting)
{
    return setting->text != NULL && setting->text[0] != '\0' ? setting->text : NULL;
}

/* Everything that can change at run time. */
static void
set_changeable(const struct cli_config *config, struct http_options *o)
{
    const struct il__setting *set = config->settings;

    o->log_level                 = (enum http_log_level)set[CLI_KEY_log_level].number;
    o->login_failures_per_minute = set[CLI_KEY_login_failures].number;
    o->audit_keep_ms             = set[CLI_KEY_audit_keep].number;
#define LIMIT(name, ...) o->limits.name = set[CLI_KEY_limit_##name].number;
#include "data/limits.def"
#undef LIMIT
}

/* A changed key that needs a restart; NULL: none. */
static const char *
needs_restart(const struct cli_config *was, const struct cli_config *is)
{
    for (size_t i = 0; i < CLI_KEY_COUNT; i++) {
        const char *a = was->settings[i].text, *b = is->settings[i].text;
        if (il__cli_keys[i].when == CLI_WHEN_restart && a != NULL && b != NULL && strcmp(a, b) != 0)
            return il__cli_keys[i].name;
    }
    return NULL;
}

/* The configuration that server and apps were given last. */
struct apps_config {
    struct cli_config     config; /* after a reload; empty before, when it is the command's */
    struct cli_app_config apps;
    struct cli_settings   settings; /* all of it, as the server shows it */
};

static void
apps_config_free(struct apps_config *c)
{
    if (c == NULL)
        return;
    il__cli_settings_release(&c->settings);
    il__cli_app_config_release(&c->apps);
    il__cli_config_release(&c->config);
    il__free(c);
}

static void
set_shown(const struct apps_config *c, struct http_options *o)
{
    o->app_config = &c->apps.config;
    o->settings   = c->settings.items;
    o->n_settings = c->settings.n;
}

struct serving {
    const struct cli      *cli;
    struct apps_config    *apps;
    const struct http_app *present[IL_APP_COUNT + 1];
};

static il_status
reload(void *cookie, struct http_options *o, const char **ret_restart, il_error *reterr)
{
    struct serving     *serving = cookie;
    const struct cli   *cli     = serving->cli;
    struct apps_config *fresh   = il__calloc(1, sizeof *fresh);

    if (fresh == NULL)
        return il__error_nomem(reterr);
    il_status st = il__cli_config_load(&fresh->config, &cli->args, reterr);
    if (st == IL_OK)
        st = il__cli_app_config_init(&fresh->apps, &fresh->config, reterr);
    if (st == IL_OK && !il__cli_settings_init(&fresh->settings, &fresh->config, &cli->config))
        st = il__error_nomem(reterr);
    if (st != IL_OK) {
        apps_config_free(fresh);
        return st;
    }
    set_changeable(&fresh->config, o);
    set_shown(fresh, o);
    *ret_restart = needs_restart(&cli->config, &fresh->config);
    apps_config_free(serving->apps); /* the apps have copied what they use */
    serving->apps = fresh;
    return IL_OK;
}

static il_status
check_use(const struct cli *cli, il_error *reterr)
{
    if (geteuid() == 0 && !CLI_GIVEN(cli, serve, allow_root))
        return il__error_set(
            reterr, IL_INVAL,
            "serve: refusing to run as root; use a dedicated user, or pass --allow-root");
    /* A server in front of another server would serve no purpose. */
    return il__cli_store_not_server(cli, "it needs direct access to a store", reterr);
}

static void
set_options(const struct cli *cli, struct http_options *o)
{
    int64_t format = CLI_SETTING(cli, log_format)->number;
    enum {
        FORMAT_AUTO,
        FORMAT_JSON
    };

    o->listen         = CLI_SETTING(cli, listen)->text;
    o->metrics_listen = text_or_null(CLI_SETTING(cli, metrics_listen));
    o->store_url      = CLI_SETTING(cli, store)->text;
    o->data_url       = text_or_null(CLI_SETTING(cli, data));
    o->pepper_file    = text_or_null(CLI_SETTING(cli, pepper_file));
    o->tls_proxy      = CLI_GIVEN(cli, serve, tls_proxy);
    o->no_first_key   = CLI_GIVEN(cli, serve, no_first_key);
    o->log_json       = format == FORMAT_JSON || (format == FORMAT_AUTO && !isatty(STDERR_FILENO));
    o->request_ms     = CLI_SETTING(cli, request_timeout)->number;
    o->shutdown_ms    = CLI_SETTING(cli, shutdown)->number;
    o->body_bytes_max = CLI_SETTING(cli, body_max)->number;
    o->body_bytes_max_large   = MIN(10 * o->body_bytes_max, INT64_C(64) << 20);
    o->connections_max        = (unsigned)CLI_SETTING(cli, connections_max)->number;
    o->connections_per_ip_max = (unsigned)CLI_SETTING(cli, connections_per_address)->number;
    set_changeable(&cli->config, o);
}

/* The apps that this configuration has: see http_app.setting. */
static void
set_apps(struct serving *s, struct http_options *o)
{
    o->apps   = s->present;
    o->n_apps = 0;
    for (size_t i = 0; i < IL_APP_COUNT; i++) {
        const char *setting = il__apps[i]->setting;
        if (setting == NULL || http_setting_text(&s->apps->apps.config, setting) != NULL)
            s->present[o->n_apps++] = il__apps[i];
    }
}

/* $INTERLOCK_LINK, "KEY_ID TOKEN": the process that starts this server shows a link that signs in
 * once (http_options.link_token). `text` holds the words. */
static il_status
take_link(struct http_options *o, char text[LINK_BYTES_MAX], il_error *reterr)
{
    const char *link = getenv(LINK_VARIABLE);

    if (link == NULL)
        return IL_OK;
    size_t n = strnlen(link, LINK_BYTES_MAX);
    if (n == LINK_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL, LINK_VARIABLE " is too long");
    memcpy(text, link, n + 1);
    IGNORE(unsetenv(LINK_VARIABLE) != 0); /* the name is valid */
    char *space = strchr(text, ' ');
    if (space == NULL)
        return il__error_set(reterr, IL_INVAL, LINK_VARIABLE " must be 'KEY_ID TOKEN'");
    *space         = '\0';
    o->link_key_id = text;
    o->link_token  = space + 1;
    return IL_OK;
}

/* Once it is open, the dispatcher closes it. */
static il_status
open_store(void *cookie, il **ret, il_error *reterr)
{
    struct cli *cli = cookie;
    il_status   st  = il__cli_store_open(cli, true, reterr);

    if (st == IL_OK)
        *ret = cli->store;
    return st;
}

int
il__cli_cmd_serve(struct cli *cli)
{
    struct serving      serving = { .cli = cli, .apps = il__calloc(1, sizeof *serving.apps) };
    struct http_options o       = { .ready_fd       = -1,
                                    .reload         = reload,
                                    .reload_cookie  = &serving,
                                    .open_store     = open_store,
                                    .open_cookie    = cli,
                                    .is_unreachable = il__cli_store_is_unreachable };
    char                link[LINK_BYTES_MAX] = "";
    il_error            err                  = { 0 };
    il_status           st                   = check_use(cli, &err);

    set_options(cli, &o);
    (void)signal(SIGCHLD, SIG_DFL); /* if ignored, we could not wait for the spawner */
    http_prepare();
    if (serving.apps == NULL)
        return il__cli_fail_memory();
    if (st == IL_OK)
        st = take_link(&o, link, &err);
    if (st == IL_OK)
        st = il__cli_app_config_init(&serving.apps->apps, &cli->config, &err);
    if (st == IL_OK && !il__cli_settings_init(&serving.apps->settings, &cli->config, NULL))
        st = il__error_nomem(&err);
    if (st == IL_OK) {
        set_shown(serving.apps, &o);
        set_apps(&serving, &o);
        st = http_serve(&o, &err);
    }
    apps_config_free(serving.apps);
    return st == IL_OK ? 0 : il__cli_fail(&err);
}
