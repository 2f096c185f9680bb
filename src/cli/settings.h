/*
 * settings.h: the configuration as people may see it: no passwords.
 */
#ifndef IL_CLI_SETTINGS_H
#define IL_CLI_SETTINGS_H

#include "cli/config.h"
#include "http/http.h"

struct cli_settings {
    struct http_shown *items;
    size_t             n;
    void              *mem; /* arena of the items and their texts */
};

/* All keys and connections of `config`, which must outlive it; keys that a reload does not change
 * are those of `started` (may be NULL). Release in any case. False: out of memory. */
bool il__cli_settings_init(struct cli_settings *s, const struct cli_config *config,
                           const struct cli_config *started) MUST_USE;
void il__cli_settings_release(struct cli_settings *s);
#define AUTO_CLI_SETTINGS AUTO(il__cli_settings_release)

#endif
