/* runner.c: builds the options of the pipeline runner from the configuration. */
#include "cli/runner.h"

#include "base/error.h"

static const char *
text_or_null(const struct cli_setting *setting)
{
    return setting->text != NULL && setting->text[0] != '\0' ? setting->text : NULL;
}

static void
free_connections(struct runner_connection *connections, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *url = (char *)(uintptr_t)connections[i].url; /* owned: allocated below */
        if (url != NULL)
            explicit_bzero(url, strlen(url));
        il__free(url);
        il__free((char *)(uintptr_t)connections[i].name);
    }
    il__free(connections);
}

static il_status
make_connections(const struct cli_config *config, struct runner_connection **ret, il_error *reterr)
{
    struct runner_connection *made = il__calloc(config->n_connections + 1, sizeof *made);
    il_status                 st   = IL_OK;

    if (made == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory");
    for (size_t i = 0; st == IL_OK && i < config->n_connections; i++) {
        char *url    = NULL;
        st           = il__cli_connection_url(&config->connections[i], &url, reterr);
        made[i].url  = url;
        made[i].name = il__strdup(config->connections[i].name);
        if (st == IL_OK && made[i].name == NULL)
            st = il__error_set(reterr, IL_NOMEM, "out of memory");
    }
    if (st != IL_OK) {
        free_connections(made, config->n_connections);
        return st;
    }
    *ret = made;
    return IL_OK;
}

/* Split `pipeline_env` into names. */
static bool
split_env(struct cli_runner *r, const char *text)
{
    size_t n = 1;

    for (const char *p = text; *p != '\0'; p++)
        n += *p == ',';
    r->env_text = il__strdup(text);
    r->env      = il__calloc(n + 1, sizeof *r->env);
    if (r->env_text == NULL || r->env == NULL)
        return false;
    n = 0;
    for (char *p = text[0] != '\0' ? r->env_text : NULL; p != NULL;) {
        r->env[n++] = p;
        p           = strchr(p, ',');
        if (p != NULL)
            *p++ = '\0';
    }
    return true;
}

static void
set_defaults(struct runner_options *o, const struct cli_setting *set)
{
    o->defaults = (struct pipeline_defaults){
        .lock_retries        = (uint32_t)set[CLI_KEY_lock_acquisition_retries].number,
        .lock_retry_delay_ms = set[CLI_KEY_lock_acquisition_retry_delay_seconds].number * 1000,
        .lock_metrics        = set[CLI_KEY_lock_metrics_enabled].number == 0, /* true|false */
    };
}

il_status
il__cli_runner_init(struct cli_runner *r, const struct cli_config *config, il_error *reterr)
{
    const struct cli_setting *set = config->settings;
    struct runner_options    *o   = &r->setup.options;
    il_status                 st  = IL_OK;

    *r = (struct cli_runner){ 0 };
    if (!split_env(r, set[CLI_KEY_pipeline_env].text))
        return il__error_set(reterr, IL_NOMEM, "out of memory");
    st = make_connections(config, &r->connections, reterr);
    if (st == IL_OK)
        st = il__cli_share_parse(set[CLI_KEY_lock_expiration_alert_threshold].text,
                                 &o->alert_permille, reterr);
    if (st != IL_OK)
        return st;
    set_defaults(o, set);
    o->pipelines_dir   = text_or_null(&set[CLI_KEY_pipelines]);
    o->work_dir        = text_or_null(&set[CLI_KEY_run_dir]);
    o->lease_ms        = set[CLI_KEY_pipeline_ttl].number;
    o->lock_timeout_ms = set[CLI_KEY_pipeline_lock_timeout_seconds].number * 1000;
    o->grace_ms        = MIN(set[CLI_KEY_grace].number, o->lease_ms / 3);
    o->shutdown_ms     = set[CLI_KEY_runs_shutdown].number;
    o->keep_ms         = set[CLI_KEY_runs_keep].number;
    o->runs_max        = (uint32_t)set[CLI_KEY_runs_max].number;
    o->pass_env        = r->env;
    o->connections     = r->connections;
    o->n_connections   = config->n_connections;
    return IL_OK;
}

il_status
il__cli_runner_again(struct cli_runner *r, const struct cli_config *config, il_error *reterr)
{
    struct runner_connection *made = NULL;
    il_status                 st   = make_connections(config, &made, reterr);

    if (st != IL_OK)
        return st;
    free_connections(r->connections, r->setup.options.n_connections);
    r->connections                 = made;
    r->setup.options.connections   = made;
    r->setup.options.n_connections = config->n_connections;
    set_defaults(&r->setup.options, config->settings);
    return IL_OK;
}

void
il__cli_runner_release(struct cli_runner *r)
{
    if (r->connections != NULL)
        free_connections(r->connections, r->setup.options.n_connections);
    il__free(r->env_text);
    il__free(r->env);
    *r = (struct cli_runner){ 0 };
}
