/*
 * settings.c: the configuration as people may see it.
 */
#include "cli/settings.h"

#include <ctype.h>
#include <stdio.h>

#include "base/arena.h"
#include "cli/cli.h"

#define ENV "INTERLOCK_CONNECTION_"

/* A URL, or what was meant to be one, without its password. */
static const char *
safe(void **mem, const char *text)
{
    AUTO_FREE char *url = il__cli_safe_url(text);
    return url != NULL ? il__arena_strdup(mem, url) : NULL;
}

static bool
take_key(struct cli_settings *s, size_t i_key, const struct il__setting *from)
{
    const char *text   = from->text != NULL ? from->text : "";
    bool        is_url = i_key == CLI_KEY_store || i_key == CLI_KEY_data || strstr(text, "://");
    const char *value  = is_url ? safe(&s->mem, text) : text;

    s->items[s->n++] = (struct http_shown){ .name   = il__cli_keys[i_key].name,
                                            .value  = value,
                                            .origin = from->origin != NULL ? from->origin : "",
                                            .env    = il__cli_keys[i_key].env };
    return value != NULL;
}

/* A connection: the URL without its password, or where it is: $VARIABLE or a file. */
static bool
take_connection(struct cli_settings *s, const struct cli_connection *c)
{
    const char *place  = c->url_env != NULL ? c->url_env : c->url_file;
    size_t      n_name = strlen(c->name), n_place = place != NULL ? strlen(place) + 2 : 1;
    char       *name  = il__arena_alloc(&s->mem, n_name + sizeof "connections.");
    char       *env   = il__arena_alloc(&s->mem, n_name + sizeof ENV);
    char       *where = il__arena_alloc(&s->mem, n_place);

    if (name == NULL || env == NULL || where == NULL)
        return false;
    (void)snprintf(name, n_name + sizeof "connections.", "connections.%s", c->name);
    (void)snprintf(env, n_name + sizeof ENV, ENV "%s", c->name);
    for (char *p = env; *p != '\0'; p++)
        *p = (char)toupper((unsigned char)*p);
    where[0] = '\0';
    if (place != NULL)
        (void)snprintf(where, n_place, "%s%s", c->url_env != NULL ? "$" : "", place);
    const char *value = c->url != NULL ? safe(&s->mem, c->url) : where;
    s->items[s->n++] =
        (struct http_shown){ .name = name, .value = value, .origin = c->origin, .env = env };
    return value != NULL;
}

bool
il__cli_settings_init(struct cli_settings *s, const struct cli_config *config,
                      const struct cli_config *started)
{
    *s       = (struct cli_settings){ 0 };
    s->items = il__arena_alloc(&s->mem, (CLI_KEY_COUNT + config->n_connections) * sizeof *s->items);
    bool ok  = s->items != NULL;

    for (size_t i = 0; ok && i < CLI_KEY_COUNT; i++) {
        bool stays = started != NULL && il__cli_keys[i].when == CLI_WHEN_restart;
        ok         = take_key(s, i, &(stays ? started : config)->settings[i]);
    }
    for (size_t i = 0; ok && i < config->n_connections; i++)
        ok = take_connection(s, &config->connections[i]);
    return ok;
}

void
il__cli_settings_release(struct cli_settings *s)
{
    il__arena_free(&s->mem);
    *s = (struct cli_settings){ 0 };
}
