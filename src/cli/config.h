/* config.h: the effective configuration: every key of config.def, its value and its origin. */
#ifndef IL_CLI_CONFIG_H
#define IL_CLI_CONFIG_H

#include "cli/args.h"
#include "config/config.h"

/* `connections`: databases of sql and check steps by name. One of the three says where the URL
 * is. */
struct cli_connection {
    char  *name;
    char  *url, *url_file, *url_env; /* NULL = not used */
    char  *origin;
    size_t i_file; /* index of the file; IL__CONFIG_FILES_MAX: the environment */
};
#define CLI_CONNECTIONS_MAX 100

struct cli_config {
    struct il__setting     settings[CLI_KEY_COUNT]; /* by enum cli_key_id */
    struct cli_connection *connections;
    size_t                 n_connections;
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

/* il__config_files(), with --config. */
MUST_USE il_status il__cli_config_files(const struct cli_args *args, struct il__config_files *ret,
                                        il_error *reterr);
/* The settings as the functions of config/config.h take them. */
struct il__config il__cli_config_view(struct cli_config *config);

extern const struct il__yaml il__cli_yaml; /* libyaml as it is linked into the binary */

/* ---- connections.c --------------------------------------------------------------------------- */

/* Is it a valid name below `connections`? */
bool il__cli_connection_is(const char *name);
/* Process an entry `connections.NAME`, `connections.NAME.url_file` or `.url_env`; `folder` is
 * that of the file. */
MUST_USE il_status il__cli_connection_set(struct cli_config             *config,
                                          const struct il__config_entry *entry, const char *folder,
                                          const char *origin, size_t i_file, il_error *reterr);
/* $INTERLOCK_CONNECTION_NAME is the URL of `name`. */
MUST_USE il_status il__cli_connections_environment(struct cli_config *config, il_error *reterr);
/* The URL itself, read from its source. It may hold a password: explicit_bzero() it before
 * il__free(). */
MUST_USE il_status il__cli_connection_url(const struct cli_connection *c, char **ret,
                                          il_error *reterr);
void               il__cli_connections_release(struct cli_config *config);

#endif
