/*
 * store.c: what kind of store a URL names, showing it, and opening it. The library interprets
 * everything in a URL beyond its scheme.
 */
#include "cli/store.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/cli.h"

#define SQLITE "sqlite:"

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
il__cli_store_is_unreachable(const char *url, const il_error *err)
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
il__cli_store_not_server(const struct cli *cli, const char *why, il_error *reterr)
{
    const struct il__setting *store = CLI_SETTING(cli, store);

    if (store->text == NULL || !il__config_is_server(store->text))
        return IL_OK;
    return il__error_set(reterr, IL_INVAL, "%s: cannot be used with a server (%s): %s",
                         cli->command->name, store->origin, why);
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

    if (slashes == NULL && (is_path || il__config_scheme_bytes(url) == 0))
        return NULL;
    const char *authority = slashes != NULL ? slashes + 3 : url + il__config_scheme_bytes(url);
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

il_status
il__cli_store_prepare(struct cli *cli, bool create, il_open_opts *ret_opts, il_error *reterr)
{
    struct il__config c = il__cli_config_view(&cli->config);

    return il__config_open_opts(&c, create, &cli->ranks, ret_opts, reterr);
}

/* Is it the default store, and has it never been used? */
static bool
is_missing(const struct il__setting *store)
{
    return store->source == IL__FROM_DEFAULT && access(store->text + strlen(SQLITE), F_OK) != 0 &&
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

il_status
il__cli_shared_store(struct cli *cli, il_open_opts *ret_opts, const char **ret_url,
                     il_error *reterr)
{
    il_status st = il__cli_store_prepare(cli, true, ret_opts, reterr);

    if (st != IL_OK)
        return st;
    *ret_url = CLI_SETTING(cli, store)->text;
    if (!il__cli_store_is_private(*ret_url))
        return IL_OK;
    return il__error_set(reterr, IL_INVAL,
                         "%s: store '%s' is private to one process; use sqlite:PATH",
                         cli->command->name, *ret_url);
}
