/*
 * store.c: the store's URL, its folder, and opening it. The library interprets everything in a URL
 * beyond its scheme.
 */
#include "cli/store.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/cli.h"

#define PATH_BYTES_MAX 4096
#define SQLITE "sqlite:"

/* $HOME; services may run without it, and must still find the store that the same user's shell
 * uses. */
static char *
home_folder(void)
{
    const char    *home = getenv("HOME");
    char           text[4096];
    struct passwd  row;
    struct passwd *found = NULL;

    if (home != NULL && home[0] == '/')
        return il__strdup(home);
    if (getpwuid_r(geteuid(), &row, text, sizeof text, &found) != 0 || found == NULL ||
        found->pw_dir == NULL || found->pw_dir[0] != '/')
        return NULL;
    return il__strdup(found->pw_dir);
}

char *
il__cli_xdg_folder(const char *variable, const char *below)
{
    const char             *folder = getenv(variable);
    AUTO_BUF struct il__buf path   = { 0 };

    /* The XDG specification says to ignore a relative path. */
    if (folder != NULL && folder[0] == '/')
        return il__strdup(folder);
    AUTO_FREE char *home = home_folder();
    if (home == NULL)
        return NULL;
    il__buf_init(&path, PATH_BYTES_MAX);
    il__buf_addf(&path, "%s/%s", home, below);
    return il__buf_take(&path);
}

char *
il__cli_store_default(void)
{
    AUTO_FREE char         *folder = il__cli_xdg_folder("XDG_STATE_HOME", ".local/state");
    AUTO_BUF struct il__buf url    = { 0 };

    if (folder == NULL)
        return NULL;
    il__buf_init(&url, PATH_BYTES_MAX);
    il__buf_addf(&url, SQLITE "%s/interlock/interlock.db", folder);
    return il__buf_take(&url);
}

/* Length of the scheme with its colon, 0 if there is none: RFC 3986, a letter and then ALPHA
 * DIGIT + - . */
static size_t
scheme_bytes(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    bool   letter = (text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z');

    return letter && text[n] == ':' ? n + 1 : 0;
}

/* Is the scheme one of these? */
static bool
has_scheme(const char *url, const char *const *schemes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
            return true;
    }
    return false;
}

char *
il__cli_store_url(const char *text, const char *folder)
{
    AUTO_BUF struct il__buf url    = { 0 };
    bool                    sqlite = strncmp(text, SQLITE, strlen(SQLITE)) == 0;
    const char             *path   = sqlite ? text + strlen(SQLITE) : text;

    if (!sqlite && scheme_bytes(text) > 0)
        return il__strdup(text);
    il__buf_init(&url, PATH_BYTES_MAX);
    il__buf_adds(&url, SQLITE);
    if (strncmp(path, "~/", 2) == 0) {
        AUTO_FREE char *home = home_folder();
        if (home == NULL)
            return NULL;
        il__buf_addf(&url, "%s%s", home, path + 1);
    } else {
        il__buf_addf(&url, "%s%s", path[0] != '/' && folder != NULL ? folder : "", path);
    }
    return il__buf_take(&url);
}

bool
il__cli_store_is_private(const char *url)
{
    return strncmp(url, "memory:", strlen("memory:")) == 0;
}

bool
il__cli_store_is_local(const char *url)
{
    static const char *const schemes[] = { SQLITE, "memory:" };

    return has_scheme(url, schemes, ARRAY_LEN(schemes));
}

bool
il__cli_store_is_server(const char *url)
{
    static const char *const schemes[] = { "http:", "https:", "http+unix:" };

    return has_scheme(url, schemes, ARRAY_LEN(schemes));
}

bool
il__cli_store_is_away(const char *url, const il_error *err)
{
    static const char *const postgres[] = { "postgres:", "postgresql:" };
    /* The engine's own error (il_error.native): words of Redis, classes of SQLSTATE, statuses of
     * HTTP. */
    static const char *const passing[]   = { "LOADING",     "MASTERDOWN", "READONLY", "BUSY",
                                             "CLUSTERDOWN", "NOREPLICAS", "MISCONF",  "08",
                                             "53",          "57P",        "55P03",    "502",
                                             "503",         "504" };
    bool                     is_postgres = has_scheme(url, postgres, ARRAY_LEN(postgres));

    if (err->status != IL_STORE || il__cli_store_is_local(url))
        return false;
#ifdef IL_MUTANT_refusal_waited_for
    return true;
#endif
    if (strcmp(err->native, IL__NATIVE_BUSY) == 0)
        return true;
    if (err->native[0] == '\0')
        return !is_postgres; /* for PostgreSQL a schema error; otherwise a failed connection */
    for (size_t i = 0; i < ARRAY_LEN(passing); i++) {
        if (strncmp(err->native, passing[i], strlen(passing[i])) == 0)
            return true;
    }
    return false;
}

il_status
il__cli_store_not_server(const struct cli *cli, const char *what, il_error *reterr)
{
    const struct cli_setting *store = CLI_SETTING(cli, store);

    if (store->text == NULL || !il__cli_store_is_server(store->text))
        return IL_OK;
    return il__error_set(reterr, IL_INVAL, "%s: %s, not through a server (%s)", cli->command->name,
                         what, store->origin);
}

/* Does the name of a query parameter imply that its value is a secret? The value of listen is a
 * URL, which may contain a password. */
static bool
is_secret(const char *name, size_t n_bytes)
{
    static const char *const words[] = { "pass", "secret", "token", "pwd", "listen" };
    char                     text[64];

    (void)snprintf(text, sizeof text, "%.*s", (int)MIN(n_bytes, sizeof text - 1), name);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcasestr(text, words[i]) != NULL)
            return true;
    }
    return false;
}

/*
 * Where the password begins; it ends at the LAST `@`. NULL: none. It follows the first `:` after
 * `//` (the slashes may have been forgotten). Without that `:`, the text before an `@` is a user
 * name only for PostgreSQL; for Redis it is the password. A stray `@` further on hides too much;
 * taking the first one instead would show the rest of a password that contains an unescaped `@`.
 */
static const char *
password_of(const char *url)
{
    static const char *const users[] = { "postgres:", "postgresql:" };
    const char              *slashes = strstr(url, "://");
    bool                     is_path = il__cli_store_is_local(url);

    if (slashes == NULL && (is_path || scheme_bytes(url) == 0))
        return NULL;
    const char *authority = slashes != NULL ? slashes + 3 : url + scheme_bytes(url);
    authority += slashes == NULL && *authority == '/';
    size_t n = strcspn(authority, ":@");
    if (strchr(authority, '@') == NULL)
        return NULL;
    if (authority[n] == '@' && !is_path && !has_scheme(url, users, ARRAY_LEN(users)))
        return authority;
    const char *colon = strchr(authority, ':');
    return colon != NULL && strchr(colon, '@') != NULL ? colon + 1 : NULL;
}

char *
il__cli_safe_url(const char *url)
{
    AUTO_BUF struct il__buf safe     = { 0 };
    const char             *rest     = url;
    const char             *password = password_of(url);

    il__buf_init(&safe, 16 * 1024);
    if (password != NULL) {
        il__buf_add(&safe, url, (size_t)(password - url));
        il__buf_adds(&safe, "***");
        rest = strrchr(password, '@');
    }
    while (*rest != '\0') {
        size_t n_text = strcspn(rest, "?&");
        il__buf_add(&safe, rest, n_text);
        rest += n_text;
        if (*rest == '\0')
            break;
        size_t n_name = strcspn(rest + 1, "=&") + 1;
        il__buf_add(&safe, rest, n_name);
        if (rest[n_name] == '=' && is_secret(rest + 1, n_name - 1)) {
            il__buf_adds(&safe, "=***");
            n_name += strcspn(rest + n_name, "&");
        }
        rest += n_name;
    }
    return il__buf_take(&safe);
}

bool
il__cli_store_is_odd(const char *url)
{
    const char *scheme = strstr(url, "://");

    if (scheme == url + strlen(SQLITE) - 1) /* sqlite:///PATH */
        scheme = strstr(scheme + 1, "://");
    return strncmp(url, SQLITE, strlen(SQLITE)) == 0 &&
           (scheme != NULL || strstr(url, "password=") != NULL);
}

/* mkdir -p of everything before the last `/`, private to this user. */
static il_status
make_folder(const char *path, il_error *reterr)
{
    AUTO_FREE char *copy = il__strdup(path);

    if (copy == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory");
    for (char *slash = strchr(copy + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST)
            return il__error_set(reterr, IL_STORE, "cannot create folder %.400s: %s", copy,
                                 strerror(errno));
        *slash = '/';
    }
    return IL_OK;
}

/* Split `ranks` into names. */
static il_status
split_ranks(struct cli *cli, il_error *reterr)
{
    const char *text = CLI_SETTING(cli, ranks)->text;
    size_t      n    = 1;

    if (text[0] == '\0' || cli->ranks != NULL)
        return IL_OK;
    for (const char *p = text; *p != '\0'; p++)
        n += *p == ',';
    cli->ranks_text = il__strdup(text);
    cli->ranks      = il__calloc(n, sizeof *cli->ranks);
    if (cli->ranks_text == NULL || cli->ranks == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory");
    for (char *p = cli->ranks_text; p != NULL;) {
        cli->ranks[cli->n_ranks++] = p;
        p                          = strchr(p, ',');
        if (p != NULL)
            *p++ = '\0';
    }
    CHECK(cli->n_ranks == n);
    return IL_OK;
}

il_status
il__cli_store_prepare(struct cli *cli, bool create, il_open_opts *ret_opts, il_error *reterr)
{
    const struct cli_setting *store    = CLI_SETTING(cli, store);
    bool                      standard = store->source == CLI_FROM_DEFAULT;

    if (store->text == NULL)
        return il__error_set(
            reterr, IL_INVAL,
            "no store: the home folder is unknown; set --store or $INTERLOCK_STORE");
    if (il__cli_store_is_odd(store->text))
        return il__error_set(reterr, IL_INVAL,
                             "the store is neither a path nor a URL such as postgres://HOST/DB");
    if (create && standard) {
        il_status st = make_folder(store->text + strlen(SQLITE), reterr);
        if (st != IL_OK)
            return st;
    }
    il_status st = split_ranks(cli, reterr);
    if (st != IL_OK)
        return st;

    *ret_opts = (il_open_opts)IL_OPEN_OPTS_INIT;
    /* Not the default: through a server, the API key determines the tenant. */
    if (CLI_SETTING(cli, tenant)->source != CLI_FROM_DEFAULT)
        ret_opts->tenant = CLI_SETTING(cli, tenant)->text;
    ret_opts->ranks      = cli->ranks;
    ret_opts->n_ranks    = cli->n_ranks;
    ret_opts->timeout_ms = CLI_SETTING(cli, store_timeout)->number;
    ret_opts->flags      = create ? 0 : IL_OPEN_EXISTING;
    return IL_OK;
}

/* Is it the default store, and has it never been used? */
static bool
is_missing(const struct cli_setting *store)
{
    return store->source == CLI_FROM_DEFAULT && access(store->text + strlen(SQLITE), F_OK) != 0 &&
           errno == ENOENT;
}

il_status
il__cli_store_open(struct cli *cli, bool create, il_error *reterr)
{
    il_open_opts opts;
    il_status    st  = il__cli_store_prepare(cli, create, &opts, reterr);
    const char  *url = CLI_SETTING(cli, store)->text;

    CHECK(cli->store == NULL);
    if (st != IL_OK)
        return st;
    /* Reading creates no files. A missing store that was named may be a typo and is an error;
     * the default store is just empty until the first run, and so is a store in our memory. */
    cli->store_missing = !create && is_missing(CLI_SETTING(cli, store));
    if (cli->store_missing) {
        url        = "memory:";
        opts.flags = 0;
    }
    return il_open(url, &opts, &cli->store, reterr);
}
