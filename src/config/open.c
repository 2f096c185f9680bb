/* open.c: the store, and how it is opened; for programs, from the same configuration. */
#include <inttypes.h>

#include "base/error.h"
#include "config/config.h"

il_status
il__config_check_server(const char *text, il_error *reterr)
{
    if (il__config_is_server(text))
        return IL_OK;
    return il__error_set(
        reterr, IL_INVAL,
        "invalid server URL; use http://HOST:PORT, https://HOST or http+unix:/PATH");
}

/* Classes of keys: each must be valid before the `:` of a key. */
il_status
il__config_check_ranks(const char *text, il_error *reterr)
{
    for (const char *p = text; p != NULL; p = strchr(p, ',') != NULL ? strchr(p, ',') + 1 : NULL) {
        char   name[IL_KEY_BYTES_MAX + 1];
        size_t n_bytes = strcspn(p, ",");
        if (n_bytes == 0 || n_bytes >= sizeof name || memchr(p, ':', n_bytes) != NULL)
            return il__error_set(reterr, IL_INVAL,
                                 "'%.40s' is not a list of classes, such as event,user", text);
        memcpy(name, p, n_bytes);
        name[n_bytes] = '\0';
        il_status st  = il_check_key(name, reterr);
        if (st != IL_OK)
            return st;
    }
    return IL_OK;
}

static il_status
split_ranks(const char *text, struct il__config_ranks *ranks, il_error *reterr)
{
    size_t n = 1;

    if (text[0] == '\0' || ranks->names != NULL)
        return IL_OK;
    for (const char *p = text; *p != '\0'; p++)
        n += *p == ',';
    ranks->text  = il__strdup(text);
    ranks->names = il__calloc(n, sizeof *ranks->names);
    if (ranks->text == NULL || ranks->names == NULL)
        return il__error_nomem(reterr);
    for (char *p = ranks->text; p != NULL;) {
        ranks->names[ranks->n++] = p;
        p                        = strchr(p, ',');
        if (p != NULL)
            *p++ = '\0';
    }
    CHECK(ranks->n == n);
    return IL_OK;
}

void
il__config_ranks_release(struct il__config_ranks *ranks)
{
    il__free(ranks->names);
    il__free(ranks->text);
    *ranks = (struct il__config_ranks){ 0 };
}

il_status
il__config_open_opts(const struct il__config *c, bool create, struct il__config_ranks *ranks,
                     il_open_opts *ret, il_error *reterr)
{
    const size_t             *at     = c->table->at;
    const struct il__setting *store  = &c->settings[at[IL__OPEN_STORE]];
    const struct il__setting *tenant = &c->settings[at[IL__OPEN_TENANT]];
    il_status                 st     = IL_OK;

    if (store->text == NULL)
        return il__error_set(reterr, IL_INVAL,
                             "no store: " IL__CONFIG_NO_HOME
                             "; pass --store or set $INTERLOCK_STORE");
    if (il__config_url_is_malformed(store->text))
        return il__error_set(reterr, IL_INVAL,
                             "invalid store; use a path or a URL such as postgres://HOST/DB");
    if (create && store->source == IL__FROM_DEFAULT)
        st = il__config_make_folder(store->text, reterr);
    if (st == IL_OK)
        st = split_ranks(c->settings[at[IL__OPEN_RANKS]].text, ranks, reterr);
    if (st != IL_OK)
        return st;

    *ret = (il_open_opts)IL_OPEN_OPTS_INIT;
    /* Not the default: through a server, the API key determines the tenant. */
    if (tenant->source != IL__FROM_DEFAULT)
        ret->tenant = tenant->text;
    ret->ranks      = ranks->names;
    ret->n_ranks    = ranks->n;
    ret->timeout_ms = c->settings[at[IL__OPEN_TIMEOUT]].number;
    ret->flags      = create ? 0 : IL_OPEN_EXISTING;
    return IL_OK;
}

/* ---- a program's configuration --------------------------------------------------------------- */

static struct il__config_key
key_of(size_t i_key)
{
    /* The command's table, config.def, has the same keys. */
    static const struct il__config_key keys[IL__OPEN_KEYS] = {
        [IL__OPEN_STORE]   = { "store", "INTERLOCK_STORE", "", false, IL__CONFIG_STORE_URL },
        [IL__OPEN_SERVER]  = { "server", "INTERLOCK_SERVER", "", false, IL__CONFIG_NO_PATH },
        [IL__OPEN_TENANT]  = { "tenant", "INTERLOCK_TENANT", "", false, IL__CONFIG_NO_PATH },
        [IL__OPEN_TIMEOUT] = { "store_timeout", "INTERLOCK_STORE_TIMEOUT", "", false,
                               IL__CONFIG_NO_PATH },
        [IL__OPEN_RANKS]   = { "ranks", "INTERLOCK_RANKS", "", true, IL__CONFIG_NO_PATH },
    };

    return keys[i_key];
}

static il_status
check(size_t i_key, const char *text, int64_t *ret_number, il_error *reterr)
{
    if (text[0] == '\0' && i_key != IL__OPEN_RANKS)
        return il__error_set(reterr, IL_INVAL, "empty value");
    switch ((enum il__open_key)i_key) {
    case IL__OPEN_SERVER:
        return il__config_check_server(text, reterr);
    case IL__OPEN_TENANT:
        return il_check_tenant(text, reterr);
    case IL__OPEN_TIMEOUT:
        if (il_parse_duration(text, ret_number, reterr) != IL_OK)
            return IL_INVAL;
        if (*ret_number < 1 || *ret_number > IL__OPEN_TIMEOUT_MS_MAX)
            return il__error_set(reterr, IL_INVAL, "'%.40s' is not a duration from 1ms to 10m",
                                 text);
        return IL_OK;
    case IL__OPEN_RANKS:
        return text[0] == '\0' ? IL_OK : il__config_check_ranks(text, reterr);
    default:
        return IL_OK;
    }
}

/* The command's other settings say nothing to us. */
static il_status
ignore(void *cookie, const struct il__config_entry *entry, const struct il__config_origin *from,
       il_error *reterr)
{
    (void)cookie, (void)entry, (void)from, (void)reterr;
    return IL_OK;
}

il_status
il__config_opening(const il_open_opts *given, struct il__config_opening *o, il_error *reterr)
{
    static const struct il__config_table table = {
        .n_keys = IL__OPEN_KEYS,
        .at     = { IL__OPEN_STORE, IL__OPEN_SERVER, IL__OPEN_TENANT, IL__OPEN_TIMEOUT,
                    IL__OPEN_RANKS },
        .key    = key_of,
        .check  = check,
        .other  = ignore,
        .yaml   = il__config_yaml,
    };
    const il_open_opts  none   = IL_OPEN_OPTS_INIT;
    const il_open_opts *wanted = given != NULL ? given : &none;
    bool                create = (wanted->flags & IL_OPEN_EXISTING) == 0;

    *o                           = (struct il__config_opening){ 0 };
    struct il__config c          = { &table, o->settings, NULL };
    il_open_opts      configured = IL_OPEN_OPTS_INIT;
    il_status         st         = il__config_load(&c, NULL, reterr);
    if (st == IL_OK)
        st = il__config_use_server(&c, reterr);
    if (st == IL_OK)
        st = il__config_open_opts(&c, create, &o->ranks, &configured, reterr);
    if (st != IL_OK)
        return st;
    o->url  = o->settings[IL__OPEN_STORE].text;
    o->opts = *wanted;
#ifdef IL_MUTANT_caller_overruled
    o->opts.tenant = NULL;
#endif
    if (o->opts.tenant == NULL)
        o->opts.tenant = configured.tenant;
    if (wanted->timeout_ms == 0)
        o->opts.timeout_ms = configured.timeout_ms;
    if (wanted->n_ranks == 0) {
        o->opts.ranks   = configured.ranks;
        o->opts.n_ranks = configured.n_ranks;
    }
    return IL_OK;
}

void
il__config_opening_release(struct il__config_opening *o)
{
    il__settings_release(o->settings, IL__OPEN_KEYS);
    il__config_ranks_release(&o->ranks);
}
