/*
 * connections.c: the configuration key `connections`: named databases for pipeline steps.
 *
 *     connections:
 *       demo: sqlite:/var/lib/app/demo.db
 *       warehouse: {url_file: /run/secrets/warehouse}
 *       ledger: {url_env: LEDGER_URL}
 *
 * A URL may hold a password, so it can also be kept in a file or a variable; it is never shown.
 */
#include <ctype.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/cli.h"

#define PREFIX "connections."
#define VARIABLE "INTERLOCK_CONNECTION_"
#define NAME_BYTES_MAX 64
#define URL_BYTES_MAX 4096

extern char **environ;

bool
il__cli_connection_is(const char *name)
{
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

static bool
name_ok(const char *name, size_t n_bytes)
{
    if (n_bytes == 0 || n_bytes > NAME_BYTES_MAX)
        return false;
    for (size_t i = 0; i < n_bytes; i++) {
        if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
            return false;
    }
    return true;
}

static void
clear(struct cli_connection *c)
{
    il__free(c->url);
    il__free(c->url_file);
    il__free(c->url_env);
    c->url = c->url_file = c->url_env = NULL;
}

/* Find the connection of that name, or create it. NULL: out of memory, or too many. */
static struct cli_connection *
connection_of(struct cli_config *config, const char *name, size_t n_bytes)
{
    for (size_t i = 0; i < config->n_connections; i++) {
        struct cli_connection *c = &config->connections[i];
        if (strncmp(c->name, name, n_bytes) == 0 && c->name[n_bytes] == '\0')
            return c;
    }
    if (config->connections == NULL)
        config->connections = il__calloc(CLI_CONNECTIONS_MAX, sizeof *config->connections);
    if (config->connections == NULL || config->n_connections == CLI_CONNECTIONS_MAX)
        return NULL;
    struct cli_connection *c = &config->connections[config->n_connections];
    c->name                  = il__strndup(name, n_bytes);
    c->i_file                = SIZE_MAX;
    if (c->name == NULL)
        return NULL;
    config->n_connections++;
    return c;
}

/* The member that a name stands for; NULL: none. */
static char **
member_of(struct cli_connection *c, const char *rest)
{
    if (rest[0] == '\0' || strcmp(rest, ".url") == 0)
        return &c->url;
    if (strcmp(rest, ".url_file") == 0)
        return &c->url_file;
    return strcmp(rest, ".url_env") == 0 ? &c->url_env : NULL;
}

static il_status
set(struct cli_config *config, const char *name, const char *text, const char *folder,
    const char *origin, size_t i_file, il_error *reterr)
{
    size_t n_name = strcspn(name, ".");

    if (!name_ok(name, n_name)) {
        bool is_url = strpbrk(name, ":@") != NULL; /* it may contain a password */
        return il__error_set(
            reterr, IL_INVAL,
            "connections: invalid name%s%.40s%s: use letters, digits, _ and -, at most %d",
            is_url ? "" : " '", is_url ? "" : name, is_url ? "" : "'", NAME_BYTES_MAX);
    }
    if (text == NULL || text[0] == '\0')
        return il__error_set(reterr, IL_INVAL, "connections.%.80s: no value given", name);
    struct cli_connection *c = connection_of(config, name, n_name);
    if (c == NULL)
        return il__error_set(reterr, IL_INVAL, "connections: too many (maximum %d)",
                             CLI_CONNECTIONS_MAX);
    char **member = member_of(c, name + n_name);
    if (member == NULL)
        return il__error_set(reterr, IL_INVAL,
                             "connections.%.80s: expected a URL, or url, url_file or url_env",
                             name);
    if (c->i_file == i_file && (c->url != NULL || c->url_file != NULL || c->url_env != NULL))
        return il__error_set(reterr, IL_INVAL, "connections.%.*s: set twice", (int)n_name, name);
    clear(c); /* the later file wins */
    AUTO_BUF struct il__buf path = { 0 };
    il__buf_init(&path, URL_BYTES_MAX);
    if (member == &c->url_file && text[0] != '/')
        il__buf_adds(&path, folder != NULL ? folder : "");
    il__buf_adds(&path, text);
    il__free(c->origin);
    c->origin = il__strdup(origin);
    c->i_file = i_file;
    *member   = member == &c->url ? il__config_store_url(text, folder) : il__buf_take(&path);
    if (*member == NULL || c->origin == NULL)
        return il__error_set(reterr, IL_INVAL, "connections.%.*s: value too long", (int)n_name,
                             name);
    return IL_OK;
}

il_status
il__cli_connection_set(struct cli_config *config, const struct il__config_entry *entry,
                       const char *folder, const char *origin, size_t i_file, il_error *reterr)
{
    if (entry->list)
        return il__error_set(reterr, IL_INVAL, "%.80s: expected one value, not a list",
                             entry->name);
    return set(config, entry->name + strlen(PREFIX), entry->text, folder, origin, i_file, reterr);
}

il_status
il__cli_connections_environment(struct cli_config *config, il_error *reterr)
{
    for (char **e = environ; e != NULL && *e != NULL; e++) {
        const char *equals                   = strchr(*e, '=');
        char        name[NAME_BYTES_MAX + 1] = "";
        char        origin[sizeof VARIABLE + NAME_BYTES_MAX + 2];
        size_t      n = 0;
        il_error    why;

        if (strncmp(*e, VARIABLE, strlen(VARIABLE)) != 0 || equals == NULL || equals[1] == '\0')
            continue;
        for (const char *p = *e + strlen(VARIABLE); p < equals && n < NAME_BYTES_MAX; p++)
            name[n++] = (char)tolower((unsigned char)*p);
        name[n] = '\0';
        (void)snprintf(origin, sizeof origin, "$%.*s",
                       (int)MIN((size_t)(equals - *e), sizeof origin - 2), *e);
        if (set(config, name, equals + 1, NULL, origin, IL__CONFIG_FILES_MAX, &why) != IL_OK)
            return il__error_set(reterr, IL_INVAL, "%s: %s", origin, why.message);
    }
    return IL_OK;
}

static il_status
make_url(const struct cli_connection *c, const char *text, char **ret, il_error *reterr)
{
    AUTO_FREE char *url = il__config_store_url(text, NULL);

    if (url == NULL)
        return il__error_nomem(reterr);
    if (il__config_url_is_malformed(url))
        return il__error_set(
            reterr, IL_INVAL,
            "connections.%s: invalid database; use sqlite:PATH, postgres://... or a path", c->name);
    *ret = TAKE(url);
    return IL_OK;
}

/* The first line of a file. */
static il_status
read_line(const struct cli_connection *c, char **ret, il_error *reterr)
{
    char  line[URL_BYTES_MAX];
    FILE *file = fopen(c->url_file, "re");
    char *got  = file != NULL ? fgets(line, sizeof line, file) : NULL;

    if (file != NULL)
        (void)fclose(file); /* was only read from */
    if (got == NULL)
        return il__error_set(reterr, IL_INVAL, "connections.%s: cannot read %s, or it is empty",
                             c->name, c->url_file);
    line[strcspn(line, "\r\n")] = '\0';
    il_status st                = make_url(c, line, ret, reterr);
    explicit_bzero(line, sizeof line);
    return st;
}

il_status
il__cli_connection_url(const struct cli_connection *c, char **ret, il_error *reterr)
{
    if (c->url_file != NULL)
        return read_line(c, ret, reterr);
    const char *text = c->url_env != NULL ? getenv(c->url_env) : c->url;
    if (text == NULL || text[0] == '\0')
        return il__error_set(reterr, IL_INVAL, "connections.%s: $%s is not set", c->name,
                             c->url_env != NULL ? c->url_env : "");
    return make_url(c, text, ret, reterr);
}

void
il__cli_connections_release(struct cli_config *config)
{
    for (size_t i = 0; i < config->n_connections; i++) {
        struct cli_connection *c = &config->connections[i];
        clear(c);
        il__free(c->name);
        il__free(c->origin);
    }
    il__free(config->connections);
    config->connections   = NULL;
    config->n_connections = 0;
}
