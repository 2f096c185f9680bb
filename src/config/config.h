/*
 * config.h: chooses the store or server for a program that names none: il_open(NULL, ...). It is
 * the configuration of `interlock`, so the command reads all of its settings here: later ones win,
 * of the defaults, the files, the environment and the flags.
 *
 * A reader of the configuration has a table of the keys that it knows. The library's are those of
 * enum il__open_key, the command's are many more.
 */
#ifndef IL_CONFIG_CONFIG_H
#define IL_CONFIG_CONFIG_H

#include "base/base.h"

/* ---- default_store.c: folders and URLs ------------------------------------------------------- */

/* The folder named by `$variable`, else `below` in the home folder (XDG rules); il__free() it or
 * NULL. */
char *il__config_xdg_folder(const char *variable, const char *below);
/*
 * The URL that `text` stands for: a text without a scheme is the path of a SQLite file, `~/` is the
 * home folder, and a relative path is relative to `folder` (NULL = the current one, left relative).
 * il__free() it; NULL if out of memory or if there is no home folder.
 */
char *il__config_store_url(const char *text, const char *folder);
/* sqlite: and interlock/interlock.db in the user's state folder; NULL as above. */
char *il__config_store_default(void);
/* Create the folder of the default store, private to this user. */
MUST_USE il_status il__config_make_folder(const char *url, il_error *reterr);
/* Length of the scheme with its colon, 0 if there is none. */
size_t il__config_scheme_bytes(const char *text);
/* What has no scheme is a path, and messages show paths. Is this one rather a URL with something
 * before it, or the parameters of libpq? Then refuse it without showing it: it may contain a
 * password. */
bool il__config_url_is_malformed(const char *url);
/* Is it the URL of another Interlock, over HTTP? */
bool il__config_is_server(const char *url);

/* ---- files.c: the files, in order ------------------------------------------------------------ */

/* The last one was named explicitly and must exist. */
#define IL__CONFIG_FILES_MAX 3
struct il__config_files {
    char  *paths[IL__CONFIG_FILES_MAX];
    bool   required[IL__CONFIG_FILES_MAX];
    size_t n;
};

/* `named`: what --config says; NULL: $INTERLOCK_CONFIG. */
MUST_USE il_status il__config_files(const char *named, struct il__config_files *ret,
                                    il_error *reterr);
void               il__config_files_release(struct il__config_files *files);

#define IL__CONFIG_BYTES_MAX (1 << 20)

struct il__buf;

/* Add the text of a file to `data`, a buffer of IL__CONFIG_BYTES_MAX. *ret_found is false if it is
 * missing, which is an error only if it is required. */
MUST_USE il_status il__config_slurp(const char *path, bool required, struct il__buf *data,
                                    bool *ret_found, il_error *reterr);

/* ---- yaml.c: the syntax of a file ------------------------------------------------------------ */

/*
 * One key of a configuration file. Names of nested mappings are joined by dots:
 * `usage.source.type`.
 */
struct il__config_entry {
    const char *name;
    const char *text; /* of a list: its items joined by commas */
    bool        list;
    size_t      line;
};
typedef il_status il__config_entry_fn(void *cookie, const struct il__config_entry *entry,
                                      il_error *reterr);

struct il__yaml; /* the functions of libyaml: config/libyaml.h */

/* Parse YAML text: `fn` is called for each entry and stops the parsing by returning anything but
 * IL_OK; its message is prefixed with "PATH:LINE: ". `path` is used in messages only. */
MUST_USE il_status il__config_parse(const struct il__yaml *yaml, const char *path, const char *data,
                                    size_t n_bytes, il__config_entry_fn *fn, void *cookie,
                                    il_error *reterr);
/* libyaml, loaded on first use; NULL with IL_STORE in *reterr if it is not installed. */
const struct il__yaml *il__config_yaml(il_error *reterr);

/* ---- load.c: the settings -------------------------------------------------------------------- */

enum il__config_source {
    IL__FROM_DEFAULT,
    IL__FROM_FILE,
    IL__FROM_ENVIRONMENT,
    IL__FROM_FLAG
};

struct il__setting {
    char                  *text;   /* il__free */
    int64_t                number; /* as the table's check() says */
    enum il__config_source source;
    char  *origin; /* "default", "/etc/interlock/config.yml:3", "$INTERLOCK_TTL", "--ttl" */
    size_t i_file; /* IL__FROM_FILE: which file; a file must not set a key twice */
};

/* The origin of a value: the source, its name, and the base folder for relative paths. */
struct il__config_origin {
    enum il__config_source source;
    const char            *name;
    const char            *folder; /* NULL = the current one */
    size_t                 i_file;
};

enum il__config_path {
    IL__CONFIG_NO_PATH,
    IL__CONFIG_FILE_PATH, /* a relative one is relative to the file's folder */
    IL__CONFIG_STORE_URL, /* il__config_store_url() */
};

struct il__config_key {
    const char          *name, *env, *fallback;
    bool                 list;
    enum il__config_path path;
};

/* What opening a store depends on. */
enum il__open_key {
    IL__OPEN_STORE,
    IL__OPEN_SERVER,
    IL__OPEN_TENANT,
    IL__OPEN_TIMEOUT,
    IL__OPEN_RANKS,
    IL__OPEN_KEYS
};
#define IL__OPEN_TIMEOUT_MS_MAX 600000

struct il__config_table {
    size_t n_keys;
    size_t at[IL__OPEN_KEYS]; /* where these are in it */
    struct il__config_key (*key)(size_t i_key);
    /* Check `text` and give its number. The message does not name the origin, which the caller
     * knows. */
    il_status (*check)(size_t i_key, const char *text, int64_t *ret_number, il_error *reterr);
    /* An entry whose name is not in the table. */
    il_status (*other)(void *cookie, const struct il__config_entry *entry,
                       const struct il__config_origin *from, il_error *reterr);
    const struct il__yaml *(*yaml)(il_error *reterr); /* called when there is a file */
};

/* The settings being read: one per key of the table, zeroed at first; il__settings_release() them,
 * also after a failure. */
struct il__config {
    const struct il__config_table *table;
    struct il__setting            *settings;
    void                          *cookie; /* for other() */
};

/* Why there is no default store, and no path below ~. */
#define IL__CONFIG_NO_HOME \
    "the home folder is unknown ($HOME is unset or relative, and passwd has no entry)"

/* All of these: IL_OK; IL_INVAL naming file, line and key, or variable; IL_NOMEM; IL_STORE:
 * libyaml is missing. */
MUST_USE il_status il__config_defaults(const struct il__config *c, il_error *reterr);
/* *ret_n_keys may be NULL: how many keys the file sets. */
MUST_USE il_status il__config_file(const struct il__config *c, const char *path, size_t i_file,
                                   bool required, size_t *ret_n_keys, il_error *reterr);
/* Defaults, files and environment. */
MUST_USE il_status il__config_load(const struct il__config *c, const char *named, il_error *reterr);
/* Make `text` the value of a key. The message does not name the origin. */
MUST_USE il_status il__config_set(const struct il__config *c, size_t i_key, const char *text,
                                  const struct il__config_origin *from, il_error *reterr);
/* Last: a server that was given later than the store becomes the value of `store`; IL_INVAL if both
 * are given in the same place. */
MUST_USE il_status il__config_use_server(const struct il__config *c, il_error *reterr);
void               il__settings_release(struct il__setting *settings, size_t n);

/* ---- open.c: the store of the settings ------------------------------------------------------- */

/* Of the values of `server` and `ranks`; their message as for check() above. */
MUST_USE il_status il__config_check_server(const char *text, il_error *reterr);
MUST_USE il_status il__config_check_ranks(const char *text, il_error *reterr);

/* `ranks`, split into names. */
struct il__config_ranks {
    char        *text;
    const char **names;
    size_t       n;
};
void il__config_ranks_release(struct il__config_ranks *ranks);

/*
 * The options of il_open() from the settings; the URL is the setting `store`. They live as long as
 * the settings and *ranks, which must be zeroed at first. `create`: may the store be created? If
 * so, the folder of the default store is created here.
 */
MUST_USE il_status il__config_open_opts(const struct il__config *c, bool create,
                                        struct il__config_ranks *ranks, il_open_opts *ret,
                                        il_error *reterr);

/* The configuration of a program that uses the library. */
struct il__config_opening {
    struct il__setting      settings[IL__OPEN_KEYS];
    struct il__config_ranks ranks;
    const char             *url;
    il_open_opts            opts;
};
/* What `given` (or NULL) says wins over the configuration. *o is to be released even after a
 * failure. */
MUST_USE il_status il__config_opening(const il_open_opts *given, struct il__config_opening *o,
                                      il_error *reterr);
void               il__config_opening_release(struct il__config_opening *o);

#endif
