/* options.h: the options of the runner from the configuration. */
#ifndef IL_APPS_RUNNER_OPTIONS_H
#define IL_APPS_RUNNER_OPTIONS_H

#include "apps/runner/runner.h"
#include "http/app.h"

/* The options, except h, data, store_url, mode, note and limits, and what they point to. */
struct runner_setup {
    struct runner_options  options;
    struct il__connection *connections;
    void                  *mem; /* the other texts */
};

/* Build from the configuration; release in any case. IL_OK or IL_NOMEM. */
MUST_USE il_status runner_setup_init(struct runner_setup *s, const struct http_app_config *config,
                                     il_error *reterr);
/* Take over new connections and defaults; on failure the old ones stay. */
MUST_USE il_status runner_setup_reload(struct runner_setup *s, const struct http_app_config *config,
                                       il_error *reterr);
void               runner_setup_release(struct runner_setup *s);
#define AUTO_RUNNER_SETUP AUTO(runner_setup_release)

#endif
