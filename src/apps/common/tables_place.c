/*
 * tables_place.c: where the tables of apps are; for a memory store, a temporary folder.
 *
 * The folder is TMPDIR/interlock-tables-UID/XXXXXX. Its process holds a lock (flock) on it, which
 * the kernel drops when the process ends; a folder without a lock was left behind and is removed
 * when the next one is created.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/common/tables_internal.h"
#include "base/error.h"
#include "base/mutex.h"
#include "data/data.h"

#define URL_BYTES_MAX 16384
#define PATH_BYTES_MAX 4096
#define TRIES_MAX 100
#define SQLITE "sqlite:"
#define SUFFIX ".db"

/* ---- temporary folders ----------------------------------------------------------------------- */

static int
open_folder(int parent, const char *path)
{
    return openat(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Remove the files of a folder, all of which are ours, and the folder. Its lock is held. What
 * cannot be removed is left for the next one who tries. */
static void
remove_folder(int parent, const char *name)
{
    int  fd = open_folder(parent, name); /* one that fdopendir() can take over */
    DIR *d  = fd >= 0 ? fdopendir(fd) : NULL;

    if (d == NULL) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(d)) != NULL)
        IGNORE(unlinkat(dirfd(d), entry->d_name, 0) != 0); /* also fails for . and .. */
    (void)closedir(d);
    IGNORE(unlinkat(parent, name, AT_REMOVEDIR) != 0);
}

/* Remove folders that no process has locked. Race-free: a process that has created a folder and not
 * yet locked it finds it gone (is_at()), and creates another one. */
static void
remove_left_behind(const char *parent)
{
    DIR *d = opendir(parent);

    if (d == NULL)
        return;
    const struct dirent *entry;
    while ((entry = readdir(d)) != NULL) {
        int fd = entry->d_name[0] != '.' ? open_folder(dirfd(d), entry->d_name) : -1;
        if (fd < 0)
            continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            remove_folder(dirfd(d), entry->d_name);
        (void)close(fd);
    }
    (void)closedir(d);
}

/* The folder of this user. It must be ours: in /tmp another user may have created it. */
static il_status
make_parent(struct il__buf *path, il_error *reterr)
{
    const char *shared = getenv("TMPDIR");
    struct stat st;

    if (shared == NULL || shared[0] != '/')
        shared = "/tmp";
    if (strlen(shared) > PATH_BYTES_MAX / 2)
        return il__error_set(reterr, IL_INVAL, "$TMPDIR is too long");
    il__buf_addf(path, "%s/interlock-tables-%lu", shared, (unsigned long)geteuid());
    if (path->failed)
        return il__error_set(reterr, IL_NOMEM, "out of memory for the tables of apps");
    if (mkdir(il__buf_str(path), 0700) != 0 && errno != EEXIST)
        return il__error_set(reterr, IL_STORE, "cannot create folder %s: %s", il__buf_str(path),
                             strerror(errno));
    if (lstat(il__buf_str(path), &st) != 0)
        return il__error_set(reterr, IL_STORE, "%s: %s", il__buf_str(path), strerror(errno));
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        return il__error_set(
            reterr, IL_INVAL,
            "%s must be a folder of this user with mode 0700; remove it or set TMPDIR",
            il__buf_str(path));
    return IL_OK;
}

/* Is this folder, which we have locked, still the one at `path`? */
static bool
is_at(int fd, const char *path)
{
    struct stat here, there;

    return fstat(fd, &here) == 0 && lstat(path, &there) == 0 && here.st_dev == there.st_dev &&
           here.st_ino == there.st_ino;
}

/* *ret_fd holds the lock. */
static il_status
make_locked(const char *parent, char **ret, int *ret_fd, il_error *reterr)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        struct il__buf AUTO_BUF path = { 0 };
        il__buf_init(&path, PATH_BYTES_MAX);
        il__buf_addf(&path, "%s/XXXXXX", parent);
        AUTO_FREE char *name = il__buf_take(&path);
        if (name == NULL)
            return il__error_set(reterr, IL_NOMEM, "out of memory for the tables of apps");
        if (mkdtemp(name) == NULL)
            return il__error_set(reterr, IL_STORE, "cannot create a folder in %s: %s", parent,
                                 strerror(errno));
        int fd = open_folder(AT_FDCWD, name);
        /* One that cannot be locked is about to be removed by another process. */
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_at(fd, name)) {
            *ret    = TAKE(name);
            *ret_fd = fd;
            return IL_OK;
        }
        if (fd >= 0)
            (void)close(fd);
    }
    return il__error_set(reterr, IL_STORE, "cannot lock a folder in %s", parent);
}

static il_status
open_temporary(struct tables_place *p, struct il__buf *url, il_error *reterr)
{
    struct il__buf AUTO_BUF parent = { 0 };

    il__buf_init(&parent, PATH_BYTES_MAX);
    il_status st = make_parent(&parent, reterr);
    if (st != IL_OK)
        return st;
    remove_left_behind(il__buf_str(&parent));
    st = make_locked(il__buf_str(&parent), &p->folder, &p->folder_fd, reterr);
    if (st == IL_OK)
        il__buf_addf(url, SQLITE "%s/tables", p->folder);
    return st;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* sqlite:/x.db → sqlite:/x; the options of a store are not part of its path. */
static void
add_base(struct il__buf *out, const char *url)
{
    size_t n = strcspn(url, "?");

    if (n > strlen(SUFFIX) && memcmp(url + n - strlen(SUFFIX), SUFFIX, strlen(SUFFIX)) == 0)
        n -= strlen(SUFFIX);
    il__buf_add(out, url, n);
}

static il_status
find(struct tables_place *p, const struct il__data_open *o, il_error *reterr)
{
    struct il__buf AUTO_BUF data = { 0 }, url = { 0 };

    il__buf_init(&data, URL_BYTES_MAX);
    il__buf_init(&url, URL_BYTES_MAX);
    il_status st = il__data_url(o, &data, reterr);
    if (st != IL_OK)
        return st;
    const char *text = il__buf_str(&data);
    p->is_postgres   = strncmp(text, "postgres", strlen("postgres")) == 0;
    if (p->is_postgres) {
        st = il__guard_url_parse(text, &p->server, reterr);
        il__buf_adds(&url, text);
    } else if (strncmp(text, SQLITE, strlen(SQLITE)) == 0) {
        const char *path = text + strlen(SQLITE);
        if (path[0] == '\0' || path[0] == '?' || path[0] == ':')
            return il__error_set(reterr, IL_INVAL,
                                 "the tables of apps need a file; use sqlite:PATH");
        p->is_for_group = il__data_refuse_group(text, "", NULL) != IL_OK;
        add_base(&url, text);
    } else if (!o->existing) {
        st = open_temporary(p, &url, reterr);
    } else {
        st = il__error_set(reterr, IL_NOT_FOUND, "the tables of a memory store do not exist yet");
    }
    if (st == IL_OK && (p->url = il__buf_take(&url)) == NULL)
        st = il__error_set(reterr, IL_NOMEM, "out of memory for the tables of apps");
    return st;
}

il_status
il__tables_place_open(const char *store_url, const char *data_url, bool existing,
                      struct tables_place **ret, il_error *reterr)
{
    struct il__data_open o = { .store_url = store_url, .data_url = data_url, .existing = existing };
    struct tables_place *p = il__calloc(1, sizeof *p);

    if (p == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for the tables of apps");
    p->folder_fd = -1;
    il_status st = find(p, &o, reterr);
    if (st == IL_OK)
        *ret = p;
    else
        il__tables_place_close(p);
    return st;
}

void
il__tables_place_close(struct tables_place *p)
{
    if (p == NULL)
        return;
    if (p->folder != NULL)
        remove_folder(AT_FDCWD, p->folder);
    if (p->folder_fd >= 0)
        (void)close(p->folder_fd);
    il__free(p->folder);
    il__free(p->url);
    il__free(p->store_url);
    il__free(p->data_url);
    il__free(p);
}

/* ---- sharing --------------------------------------------------------------------------------- */

/* Opening and closing happen under the mutex, so that nobody finds a place half open, or one whose
 * folder is being removed. */
static struct il__mutex     mutex = { PTHREAD_MUTEX_INITIALIZER, IL__MUTEX_tables_place };
static struct tables_place *shared;

/* Open it, and put it into the list. */
static il_status
share_new(const char *store_url, const char *data_url, bool existing, struct tables_place **ret,
          il_error *reterr)
{
    struct tables_place *p  = NULL;
    il_status            st = il__tables_place_open(store_url, data_url, existing, &p, reterr);

    if (st != IL_OK)
        return st;
    CHECK(p != NULL);
    p->store_url = il__strdup(store_url);
    p->data_url  = il__strdup(data_url != NULL ? data_url : "");
    if (p->store_url == NULL || p->data_url == NULL) {
        il__tables_place_close(p);
        return il__error_set(reterr, IL_NOMEM, "out of memory for the tables of apps");
    }
    p->next = shared;
    shared  = p;
    *ret    = p;
    return IL_OK;
}

il_status
il__tables_place_share(const char *store_url, const char *data_url, bool existing,
                       struct tables_place **ret, il_error *reterr)
{
    const char *data = data_url != NULL ? data_url : "";
    il_status   st   = IL_OK;

    il__mutex_lock(&mutex);
    struct tables_place *p = shared;
    while (p != NULL && (strcmp(p->store_url, store_url) != 0 || strcmp(p->data_url, data) != 0))
        p = p->next;
    if (p == NULL)
        st = share_new(store_url, data_url, existing, &p, reterr);
    if (st == IL_OK) {
        CHECK(p != NULL);
        p->n_shares++;
        *ret = p;
    }
    il__mutex_unlock(&mutex);
    return st;
}

void
il__tables_place_unshare(struct tables_place *p)
{
    if (p == NULL)
        return;
    il__mutex_lock(&mutex);
    CHECK(p->n_shares > 0);
    if (--p->n_shares == 0) {
        struct tables_place **at = &shared;
        while (*at != p)
            at = &(*at)->next;
        *at = p->next;
        il__tables_place_close(p);
    }
    il__mutex_unlock(&mutex);
}
