/* config.h: the effective configuration: every key of config.def, its value and its origin. */
#ifndef IL_CLI_CONFIG_H
#define IL_CLI_CONFIG_H

#include "cli/args.h"

enum cli_source {
    CLI_FROM_DEFAULT,
    CLI_FROM_FILE,
    CLI_FROM_ENVIRONMENT,
    CLI_FROM_FLAG
};

struct cli_setting {
    char           *text;   /* il__free */
    int64_t         number; /* parsed by il__cli_spec_parse() */
    enum cli_source source;
    char  *origin; /* "default", "/etc/interlock/config.yml:3", "$INTERLOCK_TTL", "--ttl" */
    size_t i_file; /* CLI_FROM_FILE: which file; a file must not set a key twice */
};

/* `connections`: databases of sql and check steps by name. One of the three says where the URL
 * is. */
struct cli_connection {
    char  *name;
    char  *url, *url_file, *url_env; /* NULL = not used */
    char  *origin;
    size_t i_file; /* index of the file; CLI_CONFIG_FILES_MAX: the environment */
};
#define CLI_CONNECTIONS_MAX 100

struct cli_config {
    struct cli_setting     settings[CLI_KEY_COUNT]; /* by enum cli_key_id */
    struct cli_connection *connections;
    size_t                 n_connections;
};

/* The files that are read, in order. The last one was named explicitly and must exist. */
#define CLI_CONFIG_FILES_MAX 3
struct cli_config_files {
    char  *paths[CLI_CONFIG_FILES_MAX];
    bool   required[CLI_CONFIG_FILES_MAX];
    size_t n;
};

/*
 * Read everything: defaults, files, environment, flags. *config is usable, and must be released,
 * even after a failure. IL_OK; IL_INVAL naming file, line and key, or variable, or option;
 * IL_NOMEM.
 */
MUST_USE il_status il__cli_config_load(struct cli_config *config, const struct cli_args *args,
                                       il_error *reterr);
/* Read defaults and this one file, to check it on its own. *ret_n_keys is how many keys it sets. */
MUST_USE il_status il__cli_config_check(const char *path, size_t *ret_n_keys, il_error *reterr);
void               il__cli_config_release(struct cli_config *config);

MUST_USE il_status il__cli_config_files(const struct cli_args *args, struct cli_config_files *ret,
                                        il_error *reterr);
void               il__cli_config_files_release(struct cli_config_files *files);

/*
 * One key of a configuration file. Names of nested mappings are joined by dots:
 * `usage.source.type`.
 */
struct cli_config_entry {
    const char *name;
    const char *text; /* of a list: its items joined by commas */
    bool        list;
    size_t      line;
};
typedef il_status cli_config_entry_fn(void *cookie, const struct cli_config_entry *entry,
                                      il_error *reterr);

/* Parse YAML text: `fn` is called for each entry and stops the parsing by returning anything but
 * IL_OK; its message is prefixed with "PATH:LINE: ". `path` is used in messages only. */
MUST_USE il_status il__cli_config_parse(const char *path, const char *data, size_t n_bytes,
                                        cli_config_entry_fn *fn, void *cookie, il_error *reterr);

#define CLI_CONFIG_BYTES_MAX (1 << 20)

/* ---- connections.c --------------------------------------------------------------------------- */

/* Is it a valid name below `connections`? */
bool il__cli_connection_is(const char *name);
/* Process an entry `connections.NAME`, `connections.NAME.url_file` or `.url_env`; `folder` is
 * that of the file. */
MUST_USE il_status il__cli_connection_set(struct cli_config             *config,
                                          const struct cli_config_entry *entry, const char *folder,
                                          const char *origin, size_t i_file, il_error *reterr);
/* $INTERLOCK_CONNECTION_NAME is the URL of `name`. */
MUST_USE il_status il__cli_connections_environment(struct cli_config *config, il_error *reterr);
/* The URL itself, read from its source. It may hold a password: explicit_bzero() it before
 * il__free(). */
MUST_USE il_status il__cli_connection_url(const struct cli_connection *c, char **ret,
                                          il_error *reterr);
void               il__cli_connections_release(struct cli_config *config);

#endif
