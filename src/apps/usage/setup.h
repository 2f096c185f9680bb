/* setup.h: opens the usage cache as the configuration says, for the server and for commands. */
#ifndef IL_APPS_USAGE_SETUP_H
#define IL_APPS_USAGE_SETUP_H

#include "apps/usage/usage.h"
#include "http/app.h"

struct usage_setup {
    struct tables_place *place;
    il_guard            *tables;
    struct usage_source *source;
    struct usage        *usage; /* NULL: no source is configured */
    int64_t              wait_ms, keep_days;
};

/* What the configuration does not say. */
struct usage_setup_opts {
    il         *h;
    const char *store_url, *data_url; /* data_url NULL: with the store */
    void (*note)(void *cookie, const struct usage_note *note);
    il_guard_observe_fn *observe; /* of row locks; may be NULL */
    void                *cookie, *observe_cookie;
};

/* IL_OK; IL_INVAL: the message begins with the key; as il__tables_open(). Close it in any case. */
il_status usage_setup_open(struct usage_setup *s, const struct http_app_config *config,
                           const struct usage_setup_opts *o, il_error *reterr) MUST_USE;
void      usage_setup_close(struct usage_setup *s);

#endif
