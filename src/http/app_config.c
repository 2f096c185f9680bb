/* app_config.c: the configuration as an app sees it. See app.h. */
#include "http/app.h"

static const struct http_setting *
setting_of(const struct http_app_config *config, const char *name)
{
    size_t i = 0;

    while (i < config->n_settings && strcmp(config->settings[i].name, name) != 0)
        i++;
    CHECK(i < config->n_settings); /* no config.def has that key */
    return &config->settings[i];
}

const char *
http_setting_text(const struct http_app_config *config, const char *name)
{
    const char *text = setting_of(config, name)->text;

    return text != NULL && text[0] != '\0' ? text : NULL;
}

int64_t
http_setting_number(const struct http_app_config *config, const char *name)
{
    return setting_of(config, name)->number;
}
