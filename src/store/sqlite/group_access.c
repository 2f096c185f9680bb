/*
 * group_access.c: stores of a group: files that all its members may use, as with git's
 * core.sharedRepository. A store belongs to a group if its database has mode 0660; nothing else
 * records it. SQLite gives DB-wal and DB-shm the mode of the database, file.c does the same for the
 * others, so the umask of the first process does not matter. Their group comes from the folder,
 * which must have the setgid bit; root sets it by itself.
 *
 * The members trust each other: whoever may write to the store can destroy it.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/parse.h"
#include "store/sqlite/sqlite_internal.h"

#define GROUP_ROW_BYTES_MAX (1024 * 1024) /* with the names of its members */
#define FOLDER_MODE 02770
#define FILE_MODE 0660

/* ---- names ----------------------------------------------------------------------------------- */

struct group_name {
    char text[40];
};

static const char *
name_of(gid_t gid, struct group_name *ret)
{
    AUTO_FREE char *row = il__calloc(1, GROUP_ROW_BYTES_MAX);
    struct group    g;
    struct group   *found = NULL;

    if (row != NULL && getgrgid_r(gid, &g, row, GROUP_ROW_BYTES_MAX, &found) == 0 && found != NULL)
        (void)snprintf(ret->text, sizeof ret->text, "'%.36s'", found->gr_name);
    else
        (void)snprintf(ret->text, sizeof ret->text, "%lu", (unsigned long)gid);
    return ret->text;
}

/* By its name, or by its number. */
static il_status
find(const char *text, gid_t *ret, il_error *reterr)
{
    AUTO_FREE char *row = il__calloc(1, GROUP_ROW_BYTES_MAX);
    struct group    g;
    struct group   *found = NULL;
    uint64_t        number;

    if (row == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    if (getgrnam_r(text, &g, row, GROUP_ROW_BYTES_MAX, &found) == 0 && found != NULL) {
        *ret = found->gr_gid;
        return IL_OK;
    }
    if (!il__parse_u64(text, UINT32_MAX - 1, &number))
        return il__error_set(reterr, IL_INVAL, "no such group: '%.80s'", text);
    *ret = (gid_t)number;
    return IL_OK;
}

static bool
is_member(gid_t gid)
{
    gid_t groups[1024];

    if (geteuid() == 0 || getegid() == gid)
        return true;
    int n = getgroups(ARRAY_LEN(groups), groups);
    for (int i = 0; i < n; i++) {
        if (groups[i] == gid)
            return true;
    }
    return false;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The folder that a path is in; il__free() it. */
static char *
folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        return il__strdup(".");
    char *folder = il__strdup(path);
    if (folder != NULL)
        folder[slash == path ? 1 : slash - path] = '\0';
    return folder;
}

/* Not a sticky one: Linux may refuse O_CREAT there for a file of another member, even to root
 * (fs.protected_regular), and SQLite opens DB-wal and DB-shm so. */
static bool
folder_fits(const struct stat *folder, gid_t gid)
{
    return (folder->st_mode & S_ISGID) != 0 && (folder->st_mode & S_IRWXG) == S_IRWXG &&
           (folder->st_mode & (S_IWOTH | S_ISVTX)) == 0 && folder->st_gid == gid;
}

static il_status
refuse_folder(const char *path, const char *folder, gid_t gid, il_error *reterr)
{
    struct group_name name;

    return il__error_set(
        reterr, IL_STORE,
        "%.120s: the folder of a store for group %s must belong to that group with mode 2770: "
        "chgrp %lu %.60s && chmod 2770 %.60s; a private store has mode 0600",
        path, name_of(gid, &name), (unsigned long)gid, folder, folder);
}

il_status
il__sq_group_look(const char *path, const struct stat *db, struct sq_group *ret, il_error *reterr)
{
    struct stat st;

    *ret =
        (struct sq_group){ .on  = (db->st_mode & 077) == (FILE_MODE & 077) && S_ISREG(db->st_mode),
                           .gid = db->st_gid };
    if (!ret->on)
        return IL_OK;
    AUTO_FREE char *folder = folder_of(path);
    if (folder == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    if (stat(folder, &st) != 0)
        return il__error_set(reterr, IL_STORE, "%s: %s", folder, strerror(errno));
    return folder_fits(&st, ret->gid) ? IL_OK : refuse_folder(path, folder, ret->gid, reterr);
}

il_status
il__sq_group_adopt(const struct sq_group *group, int fd, const struct stat *st)
{
#ifdef IL_MUTANT_group_store_private
    return fchmod(fd, 0600) == 0 ? IL_OK : IL_STORE;
#endif
    if (st->st_uid != geteuid() && geteuid() != 0)
        return IL_OK; /* its owner has done it, or will */
    if (st->st_gid != group->gid && fchown(fd, (uid_t)-1, group->gid) != 0)
        return IL_STORE;
    return (st->st_mode & 0777) == FILE_MODE || fchmod(fd, FILE_MODE) == 0 ? IL_OK : IL_STORE;
}

il_status
il__sq_group_denied(const char *path, il_error *reterr)
{
    AUTO_FREE char   *folder = folder_of(path);
    struct stat       st;
    struct group_name name;

    if (errno == EACCES && folder != NULL && stat(folder, &st) == 0 &&
        folder_fits(&st, st.st_gid) && !is_member(st.st_gid))
        return il__error_set(
            reterr, IL_STORE,
            "%.300s: permission denied: not a member of group %s (log in again if just added)",
            path, name_of(st.st_gid, &name));
    return IL_OK;
}

/* ---- creating -------------------------------------------------------------------------------- */

static il_status
failed(const char *path, il_error *reterr)
{
    return il__error_set(reterr, IL_STORE, "%.300s: %s", path, strerror(errno));
}

/* A missing folder is created; one that is there is never changed, since it may have other uses. */
static il_status
prepare_folder(const char *path, const char *folder, gid_t gid, il_error *reterr)
{
    struct stat st;

    if (mkdir(folder, 0700) == 0) {
        if (chown(folder, (uid_t)-1, gid) == 0 && chmod(folder, FOLDER_MODE) == 0)
            return IL_OK;
        il_status status = failed(folder, reterr);
        (void)rmdir(folder); /* empty */
        return status;
    }
    if (errno != EEXIST || stat(folder, &st) != 0)
        return failed(folder, reterr);
    return folder_fits(&st, gid) ? IL_OK : refuse_folder(path, folder, gid, reterr);
}

/* Under another name first: whoever opens it finds it with its final mode and group. */
static il_status
create_database(const char *path, gid_t gid, il_error *reterr)
{
    struct il__buf AUTO_BUF name  = { .n_bytes_max = 8192 };
    struct sq_group         group = { .on = true, .gid = gid };
    struct stat             st;

    il__buf_addf(&name, "%s-XXXXXX", path);
    AUTO_FREE char *temporary = il__buf_take(&name);
    if (temporary == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return failed(path, reterr);
    CHECK(fstat(fd, &st) == 0);
    bool ok = il__sq_group_adopt(&group, fd, &st) == IL_OK &&
              (link(temporary, path) == 0 || errno == EEXIST);
    il_status status = ok ? IL_OK : failed(path, reterr);
    (void)close(fd); /* empty */
    (void)unlink(temporary);
    return status;
}

/* An existing store is left alone: it may hold what the group must not see. */
static il_status
check_existing(const char *path, const struct stat *db, gid_t gid, il_error *reterr)
{
    struct group_name name, other;
    struct sq_group   group;

    il_status st = il__sq_group_look(path, db, &group, reterr);
    if (st != IL_OK)
        return st;
    if (!group.on)
        return il__error_set(reterr, IL_INVAL,
                             "%.300s exists and is not shared with a group; choose a new file",
                             path);
    if (group.gid == gid)
        return IL_OK;
    return il__error_set(reterr, IL_INVAL, "%.300s is shared with group %s, not %s", path,
                         name_of(group.gid, &other), name_of(gid, &name));
}

il_status
il__store_sqlite_create_for(const char *path, const char *group, il_error *reterr)
{
    AUTO_FREE char   *folder = folder_of(path);
    struct group_name name;
    struct stat       st;
    gid_t             gid = 0;

    if (folder == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    if (find(group, &gid, reterr) != IL_OK)
        return IL_INVAL;
    if (!is_member(gid))
        return il__error_set(reterr, IL_INVAL,
                             "only root and members of the group %s can create a store for it",
                             name_of(gid, &name));
    if (stat(path, &st) == 0)
        return check_existing(path, &st, gid, reterr);
    if (errno != ENOENT)
        return failed(path, reterr);
    il_status status = prepare_folder(path, folder, gid, reterr);
    if (status == IL_OK)
        status = create_database(path, gid, reterr);
    if (status == IL_OK && stat(path, &st) != 0)
        status = failed(path, reterr);
    return status == IL_OK ? check_existing(path, &st, gid, reterr) : status; /* made meanwhile? */
}

bool
il__store_sqlite_group(const char *path, char ret_name[IL__STORE_GROUP_BYTES])
{
    struct group_name name;
    struct sq_group   group;
    struct stat       st;

    if (stat(path, &st) != 0)
        return false;
    IGNORE(il__sq_group_look(path, &st, &group, NULL) != IL_OK); /* it is one all the same */
    if (group.on)
        (void)snprintf(ret_name, IL__STORE_GROUP_BYTES, "%s", name_of(group.gid, &name));
    return group.on;
}
