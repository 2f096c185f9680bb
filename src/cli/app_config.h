/* app_config.h: the configuration in the form in which apps get it (http/app.h). */
#ifndef IL_CLI_APP_CONFIG_H
#define IL_CLI_APP_CONFIG_H

#include "cli/config.h"
#include "http/app.h"

struct cli_app_config {
    struct http_app_config config; /* points to what follows, and into the cli_config */
    struct http_setting    settings[CLI_KEY_COUNT];
    struct il__connection *connections;
};

/* The keys alone, without connections; nothing to release. */
void il__cli_app_settings(struct cli_app_config *c, const struct cli_config *config);
/* Build from the configuration, which must outlive it; release in any case. IL_OK; IL_INVAL: a
 * connection's URL cannot be found; IL_NOMEM. */
MUST_USE il_status il__cli_app_config_init(struct cli_app_config   *c,
                                           const struct cli_config *config, il_error *reterr);
void               il__cli_app_config_release(struct cli_app_config *c);
#define AUTO_CLI_APP_CONFIG AUTO(il__cli_app_config_release)

#endif
