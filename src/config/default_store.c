/* default_store.c: the default store, in the user's folders; what a configured URL stands for. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "config/config.h"

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
il__config_xdg_folder(const char *variable, const char *below)
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
il__config_store_default(void)
{
    AUTO_FREE char         *folder = il__config_xdg_folder("XDG_STATE_HOME", ".local/state");
    AUTO_BUF struct il__buf url    = { 0 };

    if (folder == NULL)
        return NULL;
    il__buf_init(&url, PATH_BYTES_MAX);
    il__buf_addf(&url, SQLITE "%s/interlock/interlock.db", folder);
    return il__buf_take(&url);
}

/* Length of the scheme with its colon, 0 if there is none: RFC 3986, a letter and then ALPHA
 * DIGIT + - . */
size_t
il__config_scheme_bytes(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    bool   letter = (text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z');

    return letter && text[n] == ':' ? n + 1 : 0;
}

char *
il__config_store_url(const char *text, const char *folder)
{
    AUTO_BUF struct il__buf url    = { 0 };
    bool                    sqlite = strncmp(text, SQLITE, strlen(SQLITE)) == 0;
    const char             *path   = sqlite ? text + strlen(SQLITE) : text;

    if (!sqlite && il__config_scheme_bytes(text) > 0)
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
il__config_is_server(const char *url)
{
    static const char *const schemes[] = { "http:", "https:", "http+unix:" };

    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
            return true;
    }
    return false;
}

bool
il__config_url_is_malformed(const char *url)
{
    const char *scheme = strstr(url, "://");

    if (scheme == url + strlen(SQLITE) - 1) /* sqlite:///PATH */
        scheme = strstr(scheme + 1, "://");
    return strncmp(url, SQLITE, strlen(SQLITE)) == 0 &&
           (scheme != NULL || strstr(url, "password=") != NULL);
}

/* mkdir -p of everything before the last `/`, private to this user. */
il_status
il__config_make_folder(const char *url, il_error *reterr)
{
    AUTO_FREE char *copy = il__strdup(url + strlen(SQLITE));

    if (copy == NULL)
        return il__error_nomem(reterr);
    for (char *slash = strchr(copy + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST)
            return il__error_set(reterr, IL_STORE, "cannot create folder %.400s: %s", copy,
                                 strerror(errno));
        *slash = '/';
    }
    return IL_OK;
}
