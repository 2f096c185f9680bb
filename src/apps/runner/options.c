/* options.c: reads the settings of config.def. See options.h. */
#include "apps/runner/options.h"

#include "base/arena.h"
#include "base/error.h"

static void
free_connections(struct il__connection *connections, size_t n)
{
    for (size_t i = 0; connections != NULL && i < n; i++) {
        char *url = (char *)(uintptr_t)connections[i].url; /* ours: allocated below */
        if (url != NULL)
            explicit_bzero(url, strlen(url));
        il__free(url);
        il__free((char *)(uintptr_t)connections[i].name);
    }
    il__free(connections);
}

/* Copies of them; NULL: out of memory. */
static struct il__connection *
copy_connections(const struct http_app_config *config)
{
    size_t                 n    = config->n_connections;
    struct il__connection *made = il__calloc(n + 1, sizeof *made);
    bool                   ok   = made != NULL;

    for (size_t i = 0; ok && i < n; i++) {
        made[i].name = il__strdup(config->connections[i].name);
        made[i].url  = il__strdup(config->connections[i].url);
        ok           = made[i].name != NULL && made[i].url != NULL;
    }
    if (ok)
        return made;
    free_connections(made, n);
    return NULL;
}

/* Split `pipeline_env` into names, NULL-terminated. NULL: out of memory. */
static const char *const *
split_env(const char *text, void **mem)
{
    size_t n = 1;

    for (const char *p = text; p != NULL && *p != '\0'; p++)
        n += *p == ',';
    char        *copy  = il__arena_strdup(mem, text != NULL ? text : "");
    const char **names = il__arena_alloc(mem, (n + 1) * sizeof *names);
    if (copy == NULL || names == NULL)
        return NULL;
    n = 0;
    for (char *p = text != NULL ? copy : NULL; p != NULL;) {
        names[n++] = p;
        p          = strchr(p, ',');
        if (p != NULL)
            *p++ = '\0';
    }
    names[n] = NULL;
    return names;
}

/* A copy of the text, NULL if it is empty. False: out of memory. */
static bool
copy_text(const struct http_app_config *config, const char *key, void **mem, const char **ret)
{
    const char *text = http_setting_text(config, key);

    *ret = text != NULL ? il__arena_strdup(mem, text) : NULL;
    return text == NULL || *ret != NULL;
}

static struct pipeline_defaults
defaults_of(const struct http_app_config *config)
{
    return (struct pipeline_defaults){
        .lock_retries = (uint32_t)http_setting_number(config, "lock_acquisition_retries"),
        .lock_retry_delay_ms =
            http_setting_number(config, "lock_acquisition_retry_delay_seconds") * 1000,
        .lock_metrics = http_setting_number(config, "lock_metrics_enabled") == 0, /* true|false */
    };
}

il_status
runner_setup_init(struct runner_setup *s, const struct http_app_config *config, il_error *reterr)
{
    struct runner_options *o = &s->options;

    *s               = (struct runner_setup){ .connections = copy_connections(config) };
    o->connections   = s->connections;
    o->n_connections = s->connections != NULL ? config->n_connections : 0;
    o->pass_env      = split_env(http_setting_text(config, "pipeline_env"), &s->mem);
    if (s->connections == NULL || o->pass_env == NULL ||
        !copy_text(config, "pipelines", &s->mem, &o->pipelines_dir) ||
        !copy_text(config, "run_dir", &s->mem, &o->work_dir))
        return il__error_nomem(reterr);
    o->defaults        = defaults_of(config);
    o->lease_ms        = http_setting_number(config, "pipeline_ttl");
    o->lock_timeout_ms = http_setting_number(config, "pipeline_lock_timeout_seconds") * 1000;
    o->grace_ms        = MIN(http_setting_number(config, "grace"), o->lease_ms / 3);
    o->shutdown_ms     = http_setting_number(config, "runs_shutdown");
    o->keep_ms         = http_setting_number(config, "runs_keep");
    o->runs_max        = (uint32_t)http_setting_number(config, "runs_max");
    o->alert_permille  = http_setting_number(config, "lock_expiration_alert_threshold");
    return IL_OK;
}

il_status
runner_setup_reload(struct runner_setup *s, const struct http_app_config *config, il_error *reterr)
{
    struct il__connection *made = copy_connections(config);

    if (made == NULL)
        return il__error_nomem(reterr);
    free_connections(s->connections, s->options.n_connections);
    s->connections           = made;
    s->options.connections   = made;
    s->options.n_connections = config->n_connections;
    s->options.defaults      = defaults_of(config);
    return IL_OK;
}

void
runner_setup_release(struct runner_setup *s)
{
    free_connections(s->connections, s->options.n_connections);
    il__arena_free(&s->mem);
    *s = (struct runner_setup){ .mem = NULL };
}
