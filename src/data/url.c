/*
 * url.c: the URL of the data store that belongs to a store.
 */
#include <errno.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "data/data_internal.h"

static bool
has_scheme(const char *url, const char *const *schemes)
{
    for (; *schemes != NULL; schemes++) {
        if (strncmp(url, *schemes, strlen(*schemes)) == 0)
            return true;
    }
    return false;
}

/* The user's state folder, following XDG: relative paths are ignored. False: no home folder
 * either. */
static bool
add_state_folder(struct il__buf *path)
{
    const char    *state = getenv("XDG_STATE_HOME");
    const char    *home  = getenv("HOME");
    char           text[4096];
    struct passwd  row;
    struct passwd *found = NULL;

    if (state != NULL && state[0] == '/') {
        il__buf_adds(path, state);
        return true;
    }
    if (home == NULL || home[0] != '/') {
        if (getpwuid_r(geteuid(), &row, text, sizeof text, &found) != 0 || found == NULL ||
            found->pw_dir == NULL || found->pw_dir[0] != '/')
            return false;
        home = found->pw_dir;
    }
    il__buf_addf(path, "%s/.local/state", home);
    return true;
}

/* mkdir -p, accessible only to the user. */
static il_status
make_folder(const char *folder, il_error *reterr)
{
    AUTO_FREE char *copy = il__strdup(folder);

    if (copy == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a data store");
    for (char *slash = copy; slash != NULL;) {
        slash = strchr(slash + 1, '/');
        if (slash != NULL)
            *slash = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST)
            return il__error_set(reterr, IL_STORE, "cannot create folder %.400s: %s", copy,
                                 strerror(errno));
        if (slash != NULL)
            *slash = '/';
    }
    return IL_OK;
}

/* Redis has no tables: use a file in the user's state folder. */
static il_status
default_file(bool existing, struct il__buf *url, il_error *reterr)
{
    struct il__buf AUTO_BUF folder = { 0 };

    il__buf_init(&folder, 4096);
    if (!add_state_folder(&folder))
        return il__error_set(
            reterr, IL_INVAL,
            "the home folder is unknown ($HOME is unset or relative, and passwd "
            "has no entry); with Redis, pass --data sqlite:PATH or postgres://...");
    il__buf_adds(&folder, "/interlock");
    if (folder.failed)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a data store");
    il__buf_addf(url, "sqlite:%s/data.db", il__buf_str(&folder));
    return existing ? IL_OK : make_folder(il__buf_str(&folder), reterr);
}

il_status
il__data_url(const struct il__data_open *o, struct il__buf *url, il_error *reterr)
{
    static const char *const keeps[] = { "sqlite:", "postgres:", "postgresql:", "memory:", NULL };
    static const char *const redis[] = { "redis:", "rediss:", "redis+unix:", NULL };
    const char              *given   = o->data_url != NULL ? o->data_url : o->store_url;

    CHECK(given != NULL);
    il_status st = IL_OK;
    if (o->data_url == NULL && has_scheme(given, redis))
        st = default_file(o->existing, url, reterr);
    else if (has_scheme(given, keeps))
        il__buf_adds(url, given);
    else
        return il__error_set(reterr, IL_INVAL,
                             "%s cannot hold tables; use sqlite:PATH or postgres://...",
                             o->data_url != NULL ? "the data store" : "the store");
    if (st == IL_OK && url->failed)
        st = il__error_set(reterr, IL_NOMEM, "out of memory for a data store");
    return st;
}
