/* config.c: merges the layers of the configuration. config_file.c parses the YAML. */
#include "cli/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/store.h"
#include "http/http.h"

#define ETC_FILE "/etc/interlock/config.yml"
#define CONFIG_VARIABLE "INTERLOCK_CONFIG"

static il_status
no_memory(il_error *reterr)
{
    return il__error_set(reterr, IL_NOMEM, "out of memory while reading the configuration");
}

/* The origin of a value: the source, its name, and the base folder for relative paths. */
struct origin {
    enum cli_source source;
    const char     *name;
    const char     *folder; /* NULL = the current one */
    size_t          i_file;
};

/* A relative path in a configuration file is relative to the file's folder. */
static char *
below_folder(const char *folder, const char *path)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, strlen(folder) + strlen(path) + 1);
    il__buf_addf(&b, "%s%s", folder, path);
    return il__buf_take(&b);
}

/* Checks beyond the type of a key. */
static il_status
check_meaning(enum cli_key_id key, const char *text, il_error *reterr)
{
    bool loopback;

    switch (key) {
    case CLI_KEY_tenant:
        return il_check_tenant(text, reterr);
    case CLI_KEY_listen:
    case CLI_KEY_metrics_listen:
        return http_address_check(text, &loopback, reterr);
    case CLI_KEY_server:
        return il__cli_store_is_server(text)
                   ? IL_OK
                   : il__error_set(
                         reterr, IL_INVAL,
                         "not a server URL: http://HOST:PORT, https://HOST or http+unix:/PATH");
    default:
        return IL_OK;
    }
}

/* Check `text` and make it the value of the key. Error messages do not name the origin. */
static il_status
set(struct cli_config *config, const struct cli_key *key, const char *text,
    const struct origin *from, il_error *reterr)
{
    struct cli_setting *setting = &config->settings[key - il__cli_keys];
    int64_t             number  = 0;
    bool                none    = from->source == CLI_FROM_DEFAULT && text[0] == '\0';
    il_status           st = none ? IL_OK : il__cli_spec_parse(&key->spec, text, &number, reterr);

    if (st == IL_OK && !none)
        st = check_meaning((enum cli_key_id)(key - il__cli_keys), text, reterr);
    if (st != IL_OK)
        return st;

    bool file =
        key->spec.type == CLI_FILE && text[0] != '/' && text[0] != '\0' && from->folder != NULL;
    bool url = !none && (key == &il__cli_keys[CLI_KEY_store] || key == &il__cli_keys[CLI_KEY_data]);
    AUTO_FREE char *value  = url    ? il__cli_store_url(text, from->folder)
                             : file ? below_folder(from->folder, text)
                                    : il__strdup(text);
    AUTO_FREE char *origin = il__strdup(from->name);
    if (value == NULL && url)
        return il__error_set(reterr, IL_INVAL, "'%.40s' is too long, or the home folder is unknown",
                             text);
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

static il_status
set_defaults(struct cli_config *config, il_error *reterr)
{
    /* Without a home folder there is no default store; commands that need one report it. */
    AUTO_FREE char *store = il__cli_store_default();
    struct origin   from  = { CLI_FROM_DEFAULT, "default", NULL, 0 };

    for (size_t i = 0; i < CLI_KEY_COUNT; i++) {
        if (i == CLI_KEY_store && store == NULL)
            continue;
        il_status st = set(config, &il__cli_keys[i],
                           i == CLI_KEY_store ? store : il__cli_keys[i].fallback, &from, reterr);
        if (st != IL_OK)
            return st;
    }
    return IL_OK;
}

/* Reading one file. */
struct file {
    struct cli_config *config;
    const char        *path;
    char              *folder;
    size_t             i_file;
    size_t             n_keys;
};

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
set_entry(void *cookie, const struct cli_config_entry *entry, il_error *reterr)
{
    struct file          *file = cookie;
    const struct cli_key *key  = il__cli_key_find(entry->name, strlen(entry->name));
    char                  hint[128];

    if (il__cli_connection_is(entry->name)) {
        AUTO_BUF struct il__buf origin = { 0 };
        il__buf_init(&origin, 8192);
        il__buf_addf(&origin, "%s:%zu", file->path, entry->line);
        file->n_keys++;
        return il__cli_connection_set(file->config, entry, file->folder, il__buf_str(&origin),
                                      file->i_file, reterr);
    }
    if (key == NULL && (key = first_below(entry->name)) != NULL)
        return il__error_set(reterr, IL_INVAL, "%s: expected a section, with keys such as %s",
                             entry->name, key->name);
    if (key == NULL) {
        il__cli_suggest_key(entry->name, hint, sizeof hint);
        return il__error_set(reterr, IL_INVAL, "unknown key '%.80s'%s", entry->name, hint);
    }
    struct cli_setting *setting = &file->config->settings[key - il__cli_keys];
    if (setting->source == CLI_FROM_FILE && setting->i_file == file->i_file)
        return il__error_set(reterr, IL_INVAL, "%s: set twice", key->name);
    if (entry->text == NULL)
        return il__error_set(reterr, IL_INVAL, "%s: has no value", key->name);
    if (entry->list && key->spec.type != CLI_LIST)
        return il__error_set(reterr, IL_INVAL, "%s: expected one value, not a list", key->name);

    AUTO_BUF struct il__buf name = { 0 };
    il__buf_init(&name, 8192);
    il__buf_addf(&name, "%s:%zu", file->path, entry->line);
    struct origin from = { CLI_FROM_FILE, il__buf_str(&name), file->folder, file->i_file };
    il_error      why;
    il_status     st = set(file->config, key, entry->text, &from, &why);
    if (st != IL_OK)
        return il__error_set(reterr, st, "%s: %s", key->name, why.message);
    file->n_keys++;
    return IL_OK;
}

static il_status
slurp(const char *path, int fd, struct il__buf *data, il_error *reterr)
{
    char    chunk[4096];
    ssize_t n;

    while ((n = read(fd, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return il__error_set(reterr, IL_INVAL, "%s: %s", path, strerror(errno));
        il__buf_add(data, chunk, (size_t)n);
        if (data->failed)
            return il__error_set(reterr, IL_INVAL, "%s: larger than 1 MiB", path);
    }
    return IL_OK;
}

/* Read one file into the configuration; a missing file is fine unless it is required. */
static il_status
load_file(struct cli_config *config, const char *path, size_t i_file, bool required,
          size_t *ret_n_keys, il_error *reterr)
{
    AUTO_BUF struct il__buf data  = { 0 };
    const char             *slash = strrchr(path, '/');

    il__buf_init(&data, CLI_CONFIG_BYTES_MAX);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    /* A folder that cannot be searched (the home of another user, after setpriv or sudo -E)
     * counts as empty; a file that exists and cannot be read is an error. */
    int why = errno;
    if (fd < 0 && !required && access(path, F_OK) != 0)
        return IL_OK;
    if (fd < 0)
        return il__error_set(reterr, IL_INVAL, "%s: %s", path, strerror(why));
    il_status st = slurp(path, fd, &data, reterr);
    (void)close(fd); /* was only read from */
    if (st != IL_OK)
        return st;

    AUTO_FREE char *folder =
        slash != NULL ? il__strndup(path, (size_t)(slash - path + 1)) : il__strdup("");
    if (folder == NULL)
        return no_memory(reterr);
    struct file file = { config, path, folder, i_file, 0 };
    st = il__cli_config_parse(path, il__buf_str(&data), data.n_bytes, set_entry, &file, reterr);
    if (st == IL_OK && ret_n_keys != NULL)
        *ret_n_keys = file.n_keys;
    return st;
}

static il_status
load_environment(struct cli_config *config, il_error *reterr)
{
    for (size_t i = 0; i < CLI_KEY_COUNT; i++) {
        const char *text = getenv(il__cli_keys[i].env);
        char        name[128];
        il_error    why;

        if (text == NULL || text[0] == '\0')
            continue;
        (void)snprintf(name, sizeof name, "$%s", il__cli_keys[i].env);
        struct origin from = { CLI_FROM_ENVIRONMENT, name, NULL, 0 };
        il_status     st   = set(config, &il__cli_keys[i], text, &from, &why);
        if (st != IL_OK)
            return il__error_set(reterr, st, "%s: %s", name, why.message);
    }
    return IL_OK;
}

static il_status
load_flags(struct cli_config *config, const struct cli_args *args, il_error *reterr)
{
    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        const struct cli_option *option = &il__cli_options[i];
        const struct cli_key    *key    = il__cli_key_find(option->name, strlen(option->name));
        char                     name[128];
        il_error                 why;

        /* An option without a value, or with its own default, only happens to have the same name.
         * */
        if (key == NULL || !args->values[i].given || option->fallback[0] != '\0' ||
            option->spec.type == CLI_FLAG)
            continue;
        (void)snprintf(name, sizeof name, "--%s", option->name);
        struct origin from = { CLI_FROM_FLAG, name, NULL, 0 };
        il_status     st   = set(config, key, args->values[i].text, &from, &why);
        if (st != IL_OK)
            return il__error_set(reterr, st, "%s: %s", name, why.message);
    }
    return IL_OK;
}

/* A server replaces the store. The one given later wins; both in the same place is a conflict. */
static il_status
use_server(struct cli_config *config, il_error *reterr)
{
    struct cli_setting       *store  = &config->settings[CLI_KEY_store];
    const struct cli_setting *server = &config->settings[CLI_KEY_server];

    if (server->text[0] == '\0' || server->source < store->source)
        return IL_OK;
    if (server->source == store->source && server->i_file == store->i_file)
        return il__error_set(reterr, IL_INVAL,
                             "%s and %s cannot be combined: use a store or a server", store->origin,
                             server->origin);
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

il_status
il__cli_config_files(const struct cli_args *args, struct cli_config_files *ret, il_error *reterr)
{
    const char     *flag   = args->values[CLI_OPT_common_config].text;
    const char     *named  = flag != NULL ? flag : getenv(CONFIG_VARIABLE);
    AUTO_FREE char *folder = il__cli_xdg_folder("XDG_CONFIG_HOME", ".config");
    bool            asked  = named != NULL && named[0] != '\0';

    *ret                 = (struct cli_config_files){ 0 };
    ret->paths[ret->n++] = il__strdup(ETC_FILE);
    if (folder != NULL) {
        AUTO_BUF struct il__buf path = { 0 };
        il__buf_init(&path, 8192);
        il__buf_addf(&path, "%s/interlock/config.yml", folder);
        ret->paths[ret->n++] = il__buf_take(&path);
    }
    if (asked) {
        ret->required[ret->n] = true;
        ret->paths[ret->n++]  = il__strdup(named);
    }
    for (size_t i = 0; i < ret->n; i++) {
        if (ret->paths[i] == NULL) {
            il__cli_config_files_release(ret);
            return no_memory(reterr);
        }
    }
    return IL_OK;
}

void
il__cli_config_files_release(struct cli_config_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        il__free(files->paths[i]);
    *files = (struct cli_config_files){ 0 };
}

il_status
il__cli_config_load(struct cli_config *config, const struct cli_args *args, il_error *reterr)
{
    AUTO(il__cli_config_files_release) struct cli_config_files files = { 0 };
    il_status                                                  st    = set_defaults(config, reterr);

    if (st == IL_OK)
        st = il__cli_config_files(args, &files, reterr);
    for (size_t i = 0; st == IL_OK && i < files.n; i++)
        st = load_file(config, files.paths[i], i, files.required[i], NULL, reterr);
    if (st == IL_OK)
        st = load_environment(config, reterr);
    if (st == IL_OK)
        st = il__cli_connections_environment(config, reterr);
    if (st == IL_OK)
        st = load_flags(config, args, reterr);
    return st == IL_OK ? use_server(config, reterr) : st;
}

il_status
il__cli_config_check(const char *path, size_t *ret_n_keys, il_error *reterr)
{
    AUTO(il__cli_config_release) struct cli_config config = { 0 };
    il_status                                      st     = set_defaults(&config, reterr);

    if (st == IL_OK)
        st = load_file(&config, path, 0, true, ret_n_keys, reterr);
    return st == IL_OK ? use_server(&config, reterr) : st;
}

void
il__cli_config_release(struct cli_config *config)
{
    for (size_t i = 0; i < CLI_KEY_COUNT; i++) {
        il__free(config->settings[i].text);
        il__free(config->settings[i].origin);
    }
    il__cli_connections_release(config);
    *config = (struct cli_config){ 0 };
}
