/* setup.c: opens the usage cache as the configuration says. See setup.h. */
#include "apps/usage/setup.h"

#include "base/error.h"

#define MINUTE_MS 60000

static const char *
text_of(const struct http_app_config *config, const char *name)
{
    const char *text = http_setting_text(config, name);

    return text != NULL && text[0] != '\0' ? text : NULL;
}

static il_status
find_connection(const struct http_app_config *config, const char *name, const char **ret,
                il_error *reterr)
{
    for (size_t i = 0; name != NULL && i < config->n_connections; i++) {
        if (strcmp(config->connections[i].name, name) == 0) {
            *ret = config->connections[i].url;
            return IL_OK;
        }
    }
    return name == NULL ? IL_OK
                        : il__error_set(reterr, IL_INVAL,
                                        "usage.source.connection: connection '%.64s' is not "
                                        "configured",
                                        name);
}

static il_status
open_source(struct usage_setup *s, const struct http_app_config *config, il_error *reterr)
{
    const char              *variable = text_of(config, "usage.source.header_variable");
    int64_t                  type     = http_setting_number(config, "usage.source.type");
    struct usage_source_opts o        = {
               .type         = (enum usage_source_type)type,
               .timeout_ms   = http_setting_number(config, "usage.source.timeout"),
               .url          = text_of(config, "usage.source.url"),
               .n_conns      = (uint32_t)http_setting_number(config, "usage.parallel"),
               .query        = text_of(config, "usage.source.query"),
               .command      = text_of(config, "usage.source.command"),
               .cost_ms      = http_setting_number(config, "usage.source.cost"),
               .fail_percent = http_setting_number(config, "usage.source.fail_percent"),
    };

    if (variable != NULL && (o.header = getenv(variable)) == NULL)
        return il__error_set(reterr, IL_INVAL, "usage.source.header_variable: $%.64s is not set",
                             variable);
    il_status st =
        find_connection(config, text_of(config, "usage.source.connection"), &o.database, reterr);
    return st == IL_OK ? usage_source_open(&o, &s->source, reterr) : st;
}

static il_status
open_tables(struct usage_setup *s, const struct usage_setup_opts *o, uint32_t conns,
            il_error *reterr)
{
    struct tables_opts t = { .conns_max = conns,
                             .observe   = o->observe,
                             .cookie    = o->observe_cookie };
    il_status st = il__tables_place_share(o->store_url, o->data_url, false, &s->place, reterr);

    return st == IL_OK ? il__tables_open(&usage_tables, s->place, &t, &s->tables, reterr) : st;
}

il_status
usage_setup_open(struct usage_setup *s, const struct http_app_config *config,
                 const struct usage_setup_opts *o, il_error *reterr)
{
    int64_t parallel   = http_setting_number(config, "usage.parallel");
    int64_t ttl        = http_setting_number(config, "usage.current_day_ttl_minutes");
    int64_t historical = http_setting_number(config, "usage.historical_ttl_days");

    *s           = (struct usage_setup){ 0 };
    s->wait_ms   = http_setting_number(config, "usage.wait");
    s->keep_days = http_setting_number(config, "usage.keep_days");
    il_status st = open_source(s, config, reterr);
    if (st != IL_OK ||
        http_setting_number(config, "usage.source.type") == (int64_t)USAGE_SOURCE_none)
        return st;
    /* a connection for each builder, and some for readers */
    st = open_tables(s, o, (uint32_t)MIN(parallel + 8, IL_GUARD_CONNS_MAX), reterr);
    if (st != IL_OK)
        return st;
    const struct usage_opts u = {
        .h             = o->h,
        .tables        = s->tables,
        .source        = s->source,
        .life          = { .current_ttl_ms    = ttl * MINUTE_MS,
                           .historical_ttl_ms = historical * USAGE_DAY_MS },
        .grace_minutes = http_setting_number(config, "usage.grace_period_minutes"),
        .wait_ms       = s->wait_ms,
        .lease_ms      = http_setting_number(config, "usage.lease"),
        .n_threads     = (uint32_t)parallel,
        .note          = o->note,
        .cookie        = o->cookie,
    };
    return usage_open(&u, &s->usage, reterr);
}

void
usage_setup_close(struct usage_setup *s)
{
    usage_close(s->usage);
    usage_source_close(s->source);
    il_guard_close(s->tables);
    il__tables_place_unshare(s->place);
}
