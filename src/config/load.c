/* load.c: merges the layers of the configuration: later ones win. */
#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "config/config.h"

static il_status
no_memory(il_error *reterr)
{
    return il__error_set(reterr, IL_NOMEM, "out of memory while reading the configuration");
}

/* A relative path in a configuration file is relative to the file's folder. */
static char *
below_folder(const char *folder, const char *path)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, strlen(folder) + strlen(path) + 1);
    il__buf_addf(&b, "%s%s", folder, path);
    return il__buf_take(&b);
}

il_status
il__config_set(const struct il__config *c, size_t i_key, const char *text,
               const struct il__config_origin *from, il_error *reterr)
{
    struct il__config_key key     = c->table->key(i_key);
    struct il__setting   *setting = &c->settings[i_key];
    int64_t               number  = 0;
    bool                  none    = from->source == IL__FROM_DEFAULT && text[0] == '\0';
    il_status             st      = none ? IL_OK : c->table->check(i_key, text, &number, reterr);

    if (st != IL_OK)
        return st;

    bool file = key.path == IL__CONFIG_FILE_PATH && text[0] != '/' && text[0] != '\0' &&
                from->folder != NULL;
    bool            url    = !none && key.path == IL__CONFIG_STORE_URL;
    AUTO_FREE char *value  = url    ? il__config_store_url(text, from->folder)
                             : file ? below_folder(from->folder, text)
                                    : il__strdup(text);
    AUTO_FREE char *origin = il__strdup(from->name);
    if (value == NULL && url)
        return il__error_set(reterr, IL_INVAL, "the path is too long, or " IL__CONFIG_NO_HOME);
    if (value == NULL || origin == NULL)
        return no_memory(reterr);
    il__free(setting->text);
    il__free(setting->origin);
    setting->text   = TAKE(value);
    setting->origin = TAKE(origin);
    setting->number = number;
    setting->source = from->source;
    setting->i_file = from->i_file;
    return IL_OK;
}

il_status
il__config_defaults(const struct il__config *c, il_error *reterr)
{
    /* Without a home folder there is no default store; who needs one says so. */
    AUTO_FREE char          *store = il__config_store_default();
    struct il__config_origin from  = { IL__FROM_DEFAULT, "default", NULL, 0 };

    for (size_t i = 0; i < c->table->n_keys; i++) {
        bool is_store = i == c->table->at[IL__OPEN_STORE];
        if (is_store && store == NULL)
            continue;
        il_status st =
            il__config_set(c, i, is_store ? store : c->table->key(i).fallback, &from, reterr);
        if (st != IL_OK)
            return st;
    }
    return IL_OK;
}

/* Reading one file. */
struct file {
    const struct il__config *config;
    const char              *path;
    char                    *folder;
    size_t                   i_file;
    size_t                   n_keys;
};

static il_status
set_key(const struct file *file, size_t i_key, const struct il__config_entry *entry,
        const struct il__config_origin *from, il_error *reterr)
{
    const struct il__setting *setting = &file->config->settings[i_key];
    struct il__config_key     key     = file->config->table->key(i_key);
    il_error                  why;

    if (setting->source == IL__FROM_FILE && setting->i_file == file->i_file)
        return il__error_set(reterr, IL_INVAL, "%s: set twice", key.name);
    if (entry->text == NULL)
        return il__error_set(reterr, IL_INVAL, "%s: no value given", key.name);
    if (entry->list && !key.list)
        return il__error_set(reterr, IL_INVAL, "%s: expected one value, not a list", key.name);
    il_status st = il__config_set(file->config, i_key, entry->text, from, &why);
    if (st != IL_OK)
        return il__error_set(reterr, st, "%s: %s", key.name, why.message);
    return IL_OK;
}

static il_status
set_entry(void *cookie, const struct il__config_entry *entry, il_error *reterr)
{
    struct file                   *file  = cookie;
    const struct il__config_table *table = file->config->table;
    AUTO_BUF struct il__buf        name  = { 0 };
    size_t                         i     = 0;

    il__buf_init(&name, 8192);
    il__buf_addf(&name, "%s:%zu", file->path, entry->line);
    struct il__config_origin from = { IL__FROM_FILE, il__buf_str(&name), file->folder,
                                      file->i_file };
    while (i < table->n_keys && strcmp(table->key(i).name, entry->name) != 0)
        i++;
    il_status st = i < table->n_keys ? set_key(file, i, entry, &from, reterr)
                                     : table->other(file->config->cookie, entry, &from, reterr);
    file->n_keys += st == IL_OK;
    return st;
}

il_status
il__config_file(const struct il__config *c, const char *path, size_t i_file, bool required,
                size_t *ret_n_keys, il_error *reterr)
{
    AUTO_BUF struct il__buf data  = { 0 };
    const char             *slash = strrchr(path, '/');
    bool                    found;

    il__buf_init(&data, IL__CONFIG_BYTES_MAX);
    il_status st = il__config_slurp(path, required, &data, &found, reterr);
    if (st != IL_OK || !found)
        return st;

    AUTO_FREE char *folder =
        slash != NULL ? il__strndup(path, (size_t)(slash - path + 1)) : il__strdup("");
    if (folder == NULL)
        return no_memory(reterr);
    il_error               why;
    const struct il__yaml *yaml = c->table->yaml(&why);
    if (yaml == NULL)
        return il__error_set(reterr, why.status, "%s: %s", path, why.message);
    struct file file = { c, path, folder, i_file, 0 };
    st = il__config_parse(yaml, path, il__buf_str(&data), data.n_bytes, set_entry, &file, reterr);
#ifdef IL_MUTANT_broken_config_passed
    st = IL_OK;
#endif
    if (st == IL_OK && ret_n_keys != NULL)
        *ret_n_keys = file.n_keys;
    return st;
}

static il_status
load_environment(const struct il__config *c, il_error *reterr)
{
    for (size_t i = 0; i < c->table->n_keys; i++) {
        const char *variable = c->table->key(i).env;
        const char *text     = getenv(variable);
        char        name[128];
        il_error    why;

        if (text == NULL || text[0] == '\0')
            continue;
        (void)snprintf(name, sizeof name, "$%s", variable);
        struct il__config_origin from = { IL__FROM_ENVIRONMENT, name, NULL, 0 };
        il_status                st   = il__config_set(c, i, text, &from, &why);
        if (st != IL_OK)
            return il__error_set(reterr, st, "%s: %s", name, why.message);
    }
    return IL_OK;
}

il_status
il__config_load(const struct il__config *c, const char *named, il_error *reterr)
{
    AUTO(il__config_files_release) struct il__config_files files = { 0 };
    il_status                                              st    = il__config_defaults(c, reterr);

    if (st == IL_OK)
        st = il__config_files(named, &files, reterr);
    for (size_t i = 0; st == IL_OK && i < files.n; i++)
        st = il__config_file(c, files.paths[i], i, files.required[i], NULL, reterr);
    return st == IL_OK ? load_environment(c, reterr) : st;
}

il_status
il__config_use_server(const struct il__config *c, il_error *reterr)
{
    struct il__setting       *store  = &c->settings[c->table->at[IL__OPEN_STORE]];
    const struct il__setting *server = &c->settings[c->table->at[IL__OPEN_SERVER]];

    if (server->text[0] == '\0' || server->source < store->source)
        return IL_OK;
    if (server->source == store->source && server->i_file == store->i_file)
        return il__error_set(reterr, IL_INVAL,
                             "%s and %s cannot be combined; use either a store or a server",
                             store->origin, server->origin);
    if (server->source == store->source && server->i_file < store->i_file)
        return IL_OK;
    AUTO_FREE char *text   = il__strdup(server->text);
    AUTO_FREE char *origin = il__strdup(server->origin);
    if (text == NULL || origin == NULL)
        return no_memory(reterr);
    il__free(store->text);
    il__free(store->origin);
    store->text   = TAKE(text);
    store->origin = TAKE(origin);
    store->source = server->source;
    store->i_file = server->i_file;
    return IL_OK;
}

void
il__settings_release(struct il__setting *settings, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        il__free(settings[i].text);
        il__free(settings[i].origin);
        settings[i] = (struct il__setting){ 0 };
    }
}
