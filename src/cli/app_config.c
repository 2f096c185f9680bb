/* app_config.c: every key and connection, for the apps. See app_config.h. */
#include "cli/app_config.h"

#include "base/error.h"

static il_status
add_connection(struct cli_app_config *c, const struct cli_connection *from, il_error *reterr)
{
    char     *url  = NULL;
    char     *name = il__strdup(from->name);
    il_status st   = il__cli_connection_url(from, &url, reterr);

    c->connections[c->config.n_connections++] = (struct il__connection){ name, url };
    if (st == IL_OK && name == NULL)
        st = il__error_nomem(reterr);
    return st;
}

void
il__cli_app_settings(struct cli_app_config *c, const struct cli_config *config)
{
    for (size_t i = 0; i < CLI_KEY_COUNT; i++) {
        c->settings[i] = (struct http_setting){ il__cli_keys[i].name, config->settings[i].text,
                                                config->settings[i].number };
    }
    c->config.settings   = c->settings;
    c->config.n_settings = CLI_KEY_COUNT;
}

il_status
il__cli_app_config_init(struct cli_app_config *c, const struct cli_config *config, il_error *reterr)
{
    il_status st = IL_OK;

    *c = (struct cli_app_config){ .connections = il__calloc(config->n_connections + 1,
                                                            sizeof *c->connections) };
    if (c->connections == NULL)
        return il__error_nomem(reterr);
    il__cli_app_settings(c, config);
    c->config.connections = c->connections;
    for (size_t i = 0; st == IL_OK && i < config->n_connections; i++)
        st = add_connection(c, &config->connections[i], reterr);
    return st;
}

void
il__cli_app_config_release(struct cli_app_config *c)
{
    for (size_t i = 0; i < c->config.n_connections; i++) {
        char *url = (char *)(uintptr_t)c->connections[i].url; /* ours: allocated above */
        if (url != NULL)
            explicit_bzero(url, strlen(url));
        il__free(url);
        il__free((char *)(uintptr_t)c->connections[i].name);
    }
    il__free(c->connections);
    *c = (struct cli_app_config){ .connections = NULL };
}
