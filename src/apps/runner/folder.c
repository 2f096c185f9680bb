/*
 * folder.c: the working folder of a run: created before its first step, removed after its last.
 * Also removes folders left behind by a server that was killed.
 *
 * A folder is named TAG.TENANT.RUN.XXXXXX. The tag is a hash of the store's URL, so folders of
 * servers on other stores, whose runs we cannot look up, are left alone. The server that uses a
 * folder holds a lock (flock) on it, which the kernel drops when the process ends. An unlocked
 * folder whose run has ended is removed: the missing lock shows that no server uses it, and the end
 * of the run shows that its lease has ended, and with it its processes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/runner/runner_internal.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/parse.h"

#define DEPTH_MAX 64    /* deeper folders are moved up before they are removed */
#define PASSES_MAX 1000 /* over a folder, because of those moved up */

/* ---- removing a folder recursively ----------------------------------------------------------- */

static bool
is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/*
 * Empty a folder. Nothing is followed: each name is opened relative to its own folder with
 * O_NOFOLLOW, so a symbolic link is removed, never entered. Recursion is bounded: deeper folders
 * are moved to the top (`top`) and found in the next pass. Returns how many entries could not be
 * removed; -1 = something was moved, so run another pass.
 */
static int
empty(int top, int dir, unsigned depth)
{
    static _Atomic unsigned n_moved;
    DIR                    *d      = fdopendir(dir); /* takes over the descriptor */
    int                     n_left = 0;

    if (d == NULL) {
        (void)close(dir);
        return 1;
    }
    const struct dirent *entry;
    while ((entry = readdir(d)) != NULL) {
        if (is_dot(entry->d_name) || unlinkat(dirfd(d), entry->d_name, 0) == 0 || errno == ENOENT)
            continue;
        if (errno != EISDIR && errno != EPERM && errno != ENOTEMPTY) {
            n_left = n_left < 0 ? n_left : n_left + 1;
            continue;
        }
        if (depth >= DEPTH_MAX) {
            char name[32];
            (void)snprintf(name, sizeof name, ".moved-%u", n_moved++);
            n_left = renameat(dirfd(d), entry->d_name, top, name) == 0 ? -1
                     : n_left < 0                                      ? n_left
                                                                       : n_left + 1;
            continue;
        }
        int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        int fd    = openat(dirfd(d), entry->d_name, flags);
        if (fd < 0 && errno == EACCES && fchmodat(dirfd(d), entry->d_name, 0700, 0) == 0)
            fd = openat(dirfd(d), entry->d_name, flags);
        if (fd >= 0)
            (void)fchmod(fd, 0700); /* a step may have removed write permission */
        int below = fd >= 0 ? empty(top, fd, depth + 1) : 1;
        if (below < 0)
            n_left = -1;
        else if (unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR) != 0 && n_left >= 0)
            n_left++;
    }
    (void)closedir(d);
    return n_left;
}

static bool
remove_tree(const char *path)
{
    int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (top < 0)
        return errno == ENOENT;
    (void)fchmod(top, 0700);
    int n_left = -1;
    for (unsigned i = 0; n_left < 0 && i < PASSES_MAX; i++) {
        int fd = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        n_left = fd >= 0 ? empty(top, fd, 0) : 1;
    }
    (void)close(top);
    return rmdir(path) == 0;
}

/* ---- the folder above ------------------------------------------------------------------------ */

/* It must be owned by us: in /tmp another user may have created one of this name. */
static il_status
check_owner(const char *path, il_error *reterr)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return il__error_set(reterr, IL_STORE, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
        return il__error_set(reterr, IL_INVAL,
                             "run_dir %s must be a folder of this user that others cannot write to",
                             path);
    return IL_OK;
}

il_status
runner_folder_open(struct runner *r, il_error *reterr)
{
    const char *shared = getenv("TMPDIR");
    int         n;

    if (shared == NULL || shared[0] != '/')
        shared = "/tmp";
    if (r->o.work_dir != NULL)
        n = snprintf(r->work_dir, sizeof r->work_dir, "%s/interlock-runs", r->o.work_dir);
    else /* other programs use that folder as well */
        n = snprintf(r->work_dir, sizeof r->work_dir, "%s/interlock-runs-%lu", shared,
                     (unsigned long)geteuid());
    if (n < 0 || (size_t)n >= sizeof r->work_dir - 256)
        return il__error_set(reterr, IL_INVAL, "path of run_dir too long");
    const char *url = r->o.store_url != NULL ? r->o.store_url : "";
    (void)snprintf(r->folder_tag, sizeof r->folder_tag, "%016llx",
                   (unsigned long long)il__hash_stable(url, strlen(url), 0));
    if (mkdir(r->work_dir, 0700) != 0 && errno != EEXIST)
        return il__error_set(reterr, IL_STORE, "%s: %s", r->work_dir, strerror(errno));
    return check_owner(r->work_dir, reterr);
}

/* ---- the folder of a run --------------------------------------------------------------------- */

/*
 * Anyone who can write to the store chooses the id of a run there, and here the id becomes part of
 * a path: accept only the form that triggers generate. A tenant is the name of a folder of
 * pipelines and has no slash; it is checked for the same reason.
 */
static il_status
check_names(const struct execution *e, il_error *reterr)
{
#ifndef IL_MUTANT_run_id_as_path
    if (!il__is_uuid(e->run->id))
        return il__error_set(reterr, IL_INVAL, "run id '%.80s' is not a UUID; run refused",
                             e->run->id);
#endif
    if (strchr(e->run->tenant, '/') != NULL)
        return il__error_set(reterr, IL_INVAL, "tenant '%.80s' cannot be used as a folder name",
                             e->run->tenant);
    return IL_OK;
}

il_status
runner_folder_make(struct execution *e, il_error *reterr)
{
    struct runner *r  = e->r;
    il_status      st = check_names(e, reterr);

    if (st != IL_OK)
        return st;
    int n = snprintf(e->cwd, sizeof e->cwd, "%s/%s.%s.%s.XXXXXX", r->work_dir, r->folder_tag,
                     e->run->tenant, e->run->id);

    if (n < 0 || (size_t)n >= sizeof e->cwd || mkdtemp(e->cwd) == NULL) {
        e->cwd[0] = '\0';
        return il__error_set(reterr, IL_STORE, "cannot create a folder in %s: %s", r->work_dir,
                             strerror(errno));
    }
    e->cwd_lock = open(e->cwd, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* A file system without flock(): then only the end of the run shows that it is unused. */
    if (e->cwd_lock >= 0)
        IGNORE(flock(e->cwd_lock, LOCK_EX | LOCK_NB) != 0);
    return IL_OK;
}

void
runner_folder_remove(struct execution *e)
{
    if (e->cwd[0] == '\0')
        return;
    if (!remove_tree(e->cwd)) {
        il_error error;
        (void)il__error_set(&error, IL_STORE, "%s: %s", e->cwd, strerror(errno));
        work_trouble(e->r->work, "cannot remove the folder of a run", &error);
    }
    if (e->cwd_lock >= 0)
        (void)close(e->cwd_lock);
    e->cwd_lock = -1;
    e->cwd[0]   = '\0';
}

/* ---- folders left behind --------------------------------------------------------------------- */

/* TAG.TENANT.RUN.XXXXXX → tenant and run. A tenant may contain dots, a run's id does not. */
static bool
parse_name(const struct runner *r, const char *name, char tenant[IL_TENANT_BYTES_MAX + 1],
           char run[IL_ID_BYTES_MAX + 1])
{
    size_t      n_tag = strlen(r->folder_tag);
    const char *end   = strrchr(name, '.');

    if (strncmp(name, r->folder_tag, n_tag) != 0 || name[n_tag] != '.' || end == NULL)
        return false;
    const char *from = name + n_tag + 1;
    const char *dot  = end;
    while (dot > from && dot[-1] != '.')
        dot--;
    if (dot <= from + 1 || (size_t)(end - dot) > IL_ID_BYTES_MAX ||
        (size_t)(dot - 1 - from) > IL_TENANT_BYTES_MAX)
        return false;
    memcpy(tenant, from, (size_t)(dot - 1 - from));
    tenant[dot - 1 - from] = '\0';
    memcpy(run, dot, (size_t)(end - dot));
    run[end - dot] = '\0';
    return il__is_uuid(run); /* otherwise it is not one of our folders */
}

static bool
run_is_over(struct runner *r, const char *tenant, const char *run)
{
    il_op op = { .type = IL_OP_RUN_GET, .tenant = tenant };

    op.in.run.id = run;
    bool over    = false;
    if (il_apply(r->o.h, &op, 1, NULL) == IL_OK)
        over = op.status == IL_NOT_FOUND ||
               (op.status == IL_OK && op.out.n_runs > 0 && op.out.runs[0].state > IL_RUN_RUNNING);
    il_op_release(&op);
    return over;
}

static void
clean_one(struct runner *r, const char *name)
{
    char tenant[IL_TENANT_BYTES_MAX + 1], run[IL_ID_BYTES_MAX + 1];
    char path[PATH_MAX];

    int n = snprintf(path, sizeof path, "%s/%s", r->work_dir, name);
    if (n < 0 || (size_t)n >= sizeof path || !parse_name(r, name, tenant, run))
        return;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    /* Take the lock first: a server creates and locks the folder only while the run is RUNNING,
     * so the folder of a finished run cannot be about to be locked. */
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && run_is_over(r, tenant, run))
        (void)remove_tree(path);
    (void)close(fd);
}

void
runner_folder_clean(struct runner *r)
{
    DIR *d = opendir(r->work_dir);

    if (d == NULL)
        return;
    const struct dirent *entry;
    while ((entry = readdir(d)) != NULL) {
        if (!is_dot(entry->d_name))
            clean_one(r, entry->d_name);
    }
    (void)closedir(d);
}
