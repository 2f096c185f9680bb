/*
 * config.c: the command's configuration: what it adds to that of a program (config/config.h) are
 * its other keys, connections, and flags.
 */
#include "cli/config.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/store.h"
#include "config/libyaml.h"
#include "http/http.h"

static struct il__config_key
key_of(size_t i_key)
{
    const struct cli_key *key = &il__cli_keys[i_key];
    bool                  url = i_key == CLI_KEY_store || i_key == CLI_KEY_data;

    return (struct il__config_key){
        .name     = key->name,
        .env      = key->env,
        .fallback = key->fallback,
        .list     = key->spec.type == CLI_LIST,
        .path     = url                          ? IL__CONFIG_STORE_URL
                    : key->spec.type == CLI_FILE ? IL__CONFIG_FILE_PATH
                                                 : IL__CONFIG_NO_PATH,
    };
}

/* The type of a key, and checks beyond it. */
static il_status
check_key(size_t i_key, const char *text, int64_t *ret_number, il_error *reterr)
{
    bool      loopback;
    il_status st = il__cli_spec_parse(&il__cli_keys[i_key].spec, text, ret_number, reterr);

    if (st != IL_OK)
        return st;
    switch ((enum cli_key_id)i_key) {
    case CLI_KEY_tenant:
        return il_check_tenant(text, reterr);
    case CLI_KEY_listen:
    case CLI_KEY_metrics_listen:
        return http_address_check(text, &loopback, reterr);
    case CLI_KEY_server:
        return il__config_check_server(text, reterr);
    default:
        return IL_OK;
    }
}

/* The first key of a section; NULL: there is no such section. */
static const struct cli_key *
first_below(const char *section)
{
    size_t n = strlen(section);

    for (size_t i = 0; i < CLI_KEY_COUNT; i++) {
        const char *name = il__cli_keys[i].name;
        if (strncmp(name, section, n) == 0 && name[n] == '.')
            return &il__cli_keys[i];
    }
    return NULL;
}

static il_status
set_other(void *cookie, const struct il__config_entry *entry, const struct il__config_origin *from,
          il_error *reterr)
{
    struct cli_config    *config = cookie;
    const struct cli_key *below;
    char                  hint[128];

    if (il__cli_connection_is(entry->name))
        return il__cli_connection_set(config, entry, from->folder, from->name, from->i_file,
                                      reterr);
    if ((below = first_below(entry->name)) != NULL)
        return il__error_set(reterr, IL_INVAL, "%s: expected a section, with keys such as %s",
                             entry->name, below->name);
    il__cli_suggest_key(entry->name, hint, sizeof hint);
    return il__error_set(reterr, IL_INVAL, "unknown key '%.80s'%s", entry->name, hint);
}

const struct il__yaml il__cli_yaml = {
#define X(name) .name = name,
#include "config/libyaml.def"
#undef X
};

static const struct il__yaml *
linked_yaml(il_error *reterr)
{
    (void)reterr;
    return &il__cli_yaml;
}

struct il__config
il__cli_config_view(struct cli_config *config)
{
    static const struct il__config_table table = {
        .n_keys = CLI_KEY_COUNT,
        .at     = { [IL__OPEN_STORE]   = CLI_KEY_store,
                    [IL__OPEN_SERVER]  = CLI_KEY_server,
                    [IL__OPEN_TENANT]  = CLI_KEY_tenant,
                    [IL__OPEN_TIMEOUT] = CLI_KEY_store_timeout,
                    [IL__OPEN_RANKS]   = CLI_KEY_ranks },
        .key    = key_of,
        .check  = check_key,
        .other  = set_other,
        .yaml   = linked_yaml,
    };

    return (struct il__config){ &table, config->settings, config };
}

static il_status
load_flags(const struct il__config *c, const struct cli_args *args, il_error *reterr)
{
    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        const struct cli_option *option = &il__cli_options[i];
        char                     name[128];
        il_error                 why;

        /* An option without a value, or with its own default, only happens to have the same name
         * as a key. */
        if (!args->values[i].given || option->fallback[0] != '\0' || option->spec.type == CLI_FLAG)
            continue;
        const struct cli_key *key = il__cli_key_find(option->name, strlen(option->name));
        if (key == NULL)
            continue;
        (void)snprintf(name, sizeof name, "--%s", option->name);
        struct il__config_origin from = { IL__FROM_FLAG, name, NULL, 0 };
        il_status                st =
            il__config_set(c, (size_t)(key - il__cli_keys), args->values[i].text, &from, &why);
        if (st != IL_OK)
            return il__error_set(reterr, st, "%s: %s", name, why.message);
    }
    return IL_OK;
}

il_status
il__cli_config_files(const struct cli_args *args, struct il__config_files *ret, il_error *reterr)
{
    return il__config_files(args->values[CLI_OPT_common_config].text, ret, reterr);
}

il_status
il__cli_config_load(struct cli_config *config, const struct cli_args *args, il_error *reterr)
{
    struct il__config c  = il__cli_config_view(config);
    il_status         st = il__config_load(&c, args->values[CLI_OPT_common_config].text, reterr);

    if (st == IL_OK)
        st = il__cli_connections_environment(config, reterr);
    if (st == IL_OK)
        st = load_flags(&c, args, reterr);
    return st == IL_OK ? il__config_use_server(&c, reterr) : st;
}

il_status
il__cli_config_check(const char *path, size_t *ret_n_keys, il_error *reterr)
{
    AUTO(il__cli_config_release) struct cli_config config = { 0 };
    struct il__config                              c      = il__cli_config_view(&config);
    il_status                                      st     = il__config_defaults(&c, reterr);

    if (st == IL_OK)
        st = il__config_file(&c, path, 0, true, ret_n_keys, reterr);
    return st == IL_OK ? il__config_use_server(&c, reterr) : st;
}

void
il__cli_config_release(struct cli_config *config)
{
    il__settings_release(config->settings, CLI_KEY_COUNT);
    il__cli_connections_release(config);
    *config = (struct cli_config){ 0 };
}
