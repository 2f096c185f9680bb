/*
 * file.c: the files of a store: DB (SQLite's, with DB-wal and DB-shm), DB-lock (flock) and DB-wake
 * (the board). All have mode 0600, or 0660 in a store of a group (group_access.c). They are opened,
 * and checked for having been deleted or replaced, here; lock_file.c takes the lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "store/sqlite/sqlite_internal.h"

il_status
il__sq_file_fail(il_error *reterr, const char *path)
{
    int       err = errno;
    il_status st  = IL_STORE;

    if (err == ENOSPC || err == EDQUOT || err == EFBIG)
        st = IL_FULL;
    else if (err == ENOMEM)
        st = IL_NOMEM;
    if (il__sq_group_denied(path, reterr) != IL_OK)
        return IL_STORE;
    return il__error_set(reterr, st, "%s: %s", path, strerror(err));
}

/* Only we, root and the owner of the database may own the files beside it; in a store of a group,
 * its members. */
static bool
is_trusted(const struct sq_file *f, const struct stat *st)
{
    return st->st_uid == geteuid() || st->st_uid == 0 || st->st_uid == f->owner ||
           (f->group.on && st->st_gid == f->group.gid);
}

/* Create a file beside the database, with its mode whatever the umask. */
static int
create_private(const struct sq_file *f, const char *path, int flags)
{
    int         fd = open(path, flags | O_CREAT | O_EXCL, f->group.on ? 0660 : 0600);
    struct stat st;

    if (fd < 0)
        return fd;
    bool ok = !f->group.on ? fchmod(fd, 0600) == 0
                           : fstat(fd, &st) == 0 && il__sq_group_adopt(&f->group, fd, &st) == IL_OK;
    if (ok)
        return fd;
    int err = errno;
    (void)close(fd);
    errno = err == EEXIST ? EIO : err;
    return -1;
}

/*
 * Open or create a file beside the database, with mode 0600 whatever the umask. In a directory that
 * others can write to, anyone can put a file there first: a symbolic or hard link would make us
 * extend and truncate a file of their choice, and the owner of the file could truncate it or keep
 * it locked.
 */
static il_status
open_private(const struct sq_file *f, const char *path, int *ret_fd, il_error *reterr)
{
    /* O_NONBLOCK: opening a FIFO or a device must not block before we have checked what it is. */
    int flags = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK;
    int fd    = open(path, flags);

    if (fd < 0 && errno == ENOENT) {
        fd = create_private(f, path, flags);
        if (fd < 0 && errno == EEXIST)
            fd = open(path, flags); /* another process was faster */
    }
    if (fd < 0 && errno == ELOOP)
        return il__error_set(reterr, IL_STORE, "%s is a symbolic link; remove it", path);
    if (fd < 0)
        return il__sq_file_fail(reterr, path);
    struct stat st;
    CHECK(fstat(fd, &st) == 0);
    bool is_linked = st.st_nlink > 1; /* 0: deleted meanwhile, which is detected later */
#ifdef IL_MUTANT_hard_link_followed
    is_linked = false;
#endif
    if (S_ISREG(st.st_mode) && !is_linked && is_trusted(f, &st)) {
        if (f->group.on)
            IGNORE(il__sq_group_adopt(&f->group, fd, &st) != IL_OK); /* it may have been restored */
        *ret_fd = fd;
        return IL_OK;
    }
    (void)close(fd);
    if (!S_ISREG(st.st_mode))
        return il__error_set(reterr, IL_STORE, "%s is not a regular file; remove it", path);
    if (is_linked)
        return il__error_set(reterr, IL_STORE, "%s has several hard links; remove it", path);
    return il__error_set(reterr, IL_STORE, "%s is owned by user %ld; remove it", path,
                         (long)st.st_uid);
}

/*
 * Check that the database is a file we may use, and create it if it is missing. An existing one is
 * not opened here: closing the descriptor would drop the POSIX locks that SQLite holds on it for
 * another handle.
 */
static il_status
check_database(const char *path, bool existing, il_error *reterr)
{
    struct stat st;

    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return il__error_set(reterr, IL_STORE, "%s is a folder, not a database", path);
        if (!S_ISREG(st.st_mode))
            return il__error_set(reterr, IL_STORE, "%s: not a regular file", path);
        return access(path, R_OK | W_OK) == 0 ? IL_OK : il__sq_file_fail(reterr, path);
    }
    if (errno != ENOENT || existing)
        return il__sq_file_fail(reterr, path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == EEXIST ? IL_OK : il__sq_file_fail(reterr, path);
    int rc  = fchmod(fd, 0600);
    int err = errno;
    (void)close(fd); /* empty */
    errno = err;
    return rc == 0 ? IL_OK : il__sq_file_fail(reterr, path);
}

/* The board must be backed by disk blocks: a hole that cannot be filled later would raise
 * SIGBUS. */
static il_status
extend(int fd, const char *name, struct stat *st, il_error *reterr)
{
    CHECK(fstat(fd, st) == 0);
    /* The ring after the words may be missing: the locks still work on a full disk. */
    if (st->st_size < (off_t)IL__BOARD_FILE_BYTES &&
        posix_fallocate(fd, 0, IL__BOARD_FILE_BYTES) == 0)
        st->st_size = IL__BOARD_FILE_BYTES;
    if (st->st_size < (off_t)IL__BOARD_BYTES) {
        errno = posix_fallocate(fd, 0, IL__BOARD_BYTES);
        if (errno != 0)
            return il__sq_file_fail(reterr, name);
        st->st_size = IL__BOARD_BYTES;
    }
    return IL_OK;
}

/* Whose database it is now. */
static il_status
note_owner(struct sq_file *f, il_error *reterr)
{
    struct stat db;

    if (stat(f->names[SQ_PART_DB], &db) != 0)
        return il__sq_file_fail(reterr, f->path);
    f->owner = db.st_uid;
    return il__sq_group_look(f->real, &db, &f->group, reterr);
}

/* Open and map the wake file: for the first time, or in place of the current mapping. */
static il_status
open_wake(struct sq_file *f, il_error *reterr)
{
    struct stat st;
    int         fd = -1;

    il_status status = note_owner(f, reterr);
    if (status == IL_OK)
        status = open_private(f, f->wake_name, &fd, reterr);
    if (status != IL_OK)
        return status;
    status = extend(fd, f->wake_name, &st, reterr);
    if (status == IL_OK) {
        f->wake_dev = st.st_dev;
        f->wake_ino = st.st_ino;
        bool mapped = f->board.words == NULL
                          ? il__board_init_file(&f->board, fd, (size_t)st.st_size)
                          : il__board_map_again(&f->board, fd, (size_t)st.st_size);
        if (!mapped)
            status = il__sq_file_fail(reterr, f->wake_name);
    }
    (void)close(fd); /* the mapping stays */
    return status;
}

static char *
join(const char *path, const char *suffix)
{
    struct il__buf AUTO_BUF name = { .n_bytes_max = 8192 };

    il__buf_addf(&name, "%s%s", path, suffix);
    return name.failed ? NULL : il__strdup(il__buf_str(&name));
}

static void
free_path(char **path)
{
    free(*path);
}

/*
 * The absolute names of the files, since the process may change its directory. The path leads to
 * the database as everyone else who opens it will find it; the other files are where SQLite puts
 * its own, even if the path is a symbolic link.
 */
static il_status
set_names(struct sq_file *f, const char *path, il_error *reterr)
{
    AUTO(free_path) char *cwd  = path[0] != '/' ? realpath(".", NULL) : NULL;
    AUTO(free_path) char *real = realpath(path, NULL);

    if (real == NULL || (cwd == NULL && path[0] != '/'))
        return il__sq_file_fail(reterr, path);
    struct il__buf AUTO_BUF name = { .n_bytes_max = 8192 };
    if (cwd != NULL)
        il__buf_addf(&name, "%s/", cwd);
    f->names[SQ_PART_DB]   = join(il__buf_str(&name), path);
    f->names[SQ_PART_LOCK] = join(real, "-lock");
    f->names[SQ_PART_WAL]  = join(real, "-wal");
    f->names[SQ_PART_SHM]  = join(real, "-shm");
    f->wake_name           = join(real, "-wake");
    f->real                = il__strdup(real);
    bool ok                = !name.failed && f->wake_name != NULL && f->real != NULL;
    for (int i = 0; i < SQ_PARTS; i++)
        ok = ok && f->names[i] != NULL;
    return ok ? IL_OK : il__error_set(reterr, IL_NOMEM, "out of memory for a store");
}

il_status
il__sq_file_open(struct sq_file *f, const char *path, bool existing, int64_t timeout_ms,
                 il_error *reterr)
{
    *f = (struct sq_file){ .lock_fd = -1, .timeout_ms = timeout_ms };
    if (path[0] == '\0')
        return il__error_set(reterr, IL_INVAL, "sqlite: needs a path, sqlite:PATH");
    f->path = il__strdup(path);
    if (f->path == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    il_status st = check_database(path, existing, reterr);
    if (st == IL_OK)
        st = set_names(f, path, reterr);
    if (st == IL_OK)
        st = note_owner(f, reterr);
    if (st == IL_OK)
        st = open_private(f, f->names[SQ_PART_LOCK], &f->lock_fd, reterr);
    if (st == IL_OK)
        il__sq_file_reserve(f, false);
    return st == IL_OK ? open_wake(f, reterr) : st;
}

/* ---- deleted or replaced --------------------------------------------------------------------- */

static il_status
gone(struct sq_file *f, il_error *reterr)
{
    atomic_store(&f->is_gone, true);
    il__error_set(reterr, IL_STORE,
                  "%s was deleted or replaced while open; restart all programs that use it",
                  f->path);
    if (reterr != NULL)
        (void)snprintf(reterr->native, sizeof reterr->native, "%s", IL__NATIVE_GONE);
    return IL_STORE;
}

il_status
il__sq_file_note(struct sq_file *f, sqlite3 *db, il_error *reterr)
{
    struct stat st;
    int         moved = 0;

    for (int i = 0; i < SQ_PARTS; i++) {
        int rc = i == SQ_PART_LOCK ? fstat(f->lock_fd, &st) : stat(f->names[i], &st);
        if (rc != 0)
            return il__sq_file_fail(reterr, f->names[i]);
        f->ids[i] = (struct sq_id){ st.st_dev, st.st_ino };
    }
    /* SQLite knows which inode it has open: if it is not the one just checked, start over. */
    int rc = sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    if (rc != SQLITE_OK || moved != 0)
        return gone(f, reterr);
    f->is_noted = true;
    return il__sq_file_check(f, reterr);
}

/*
 * Which file has this name? Not with stat(): since Linux 6.13, reading the times of a file makes
 * its next write change them, which each fsync() then has to write: a fifth of a commit.
 */
static bool
id_of(const char *name, struct sq_id *ret)
{
    struct statx st;

    if (statx(AT_FDCWD, name, 0, STATX_INO, &st) != 0)
        return false;
    *ret = (struct sq_id){ makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino };
    return true;
}

/*
 * The inode of an open file is not reused, so equal ids mean the same file. The check precedes the
 * transaction that it is for. If the store is deleted after it, the next transaction notices; for a
 * holder that is its renewal, which fails, and the lease is given up in time.
 */
static il_status
check(struct sq_file *f, int n_parts, il_error *reterr)
{
    struct sq_id id;

    if (atomic_load(&f->is_gone))
        return gone(f, reterr);
#ifdef IL_MUTANT_deleted_store_used
    n_parts = 0;
#endif
    for (int i = 0; f->is_noted && i < n_parts; i++) {
        if (!id_of(f->names[i], &id)) {
            if (errno != ENOENT && errno != ENOTDIR)
                return il__sq_file_fail(reterr, f->names[i]); /* cannot tell: perhaps next time */
            return gone(f, reterr);
        }
        if (id.dev != f->ids[i].dev || id.ino != f->ids[i].ino)
            return gone(f, reterr);
    }
    return IL_OK;
}

il_status
il__sq_file_check(struct sq_file *f, il_error *reterr)
{
    return check(f, SQ_PARTS, reterr);
}

il_status
il__sq_file_check_read(struct sq_file *f, il_error *reterr)
{
    return check(f, SQ_PART_DB + 1, reterr);
}

void
il__sq_file_check_wake(struct sq_file *f)
{
    struct stat st;

    if (lstat(f->wake_name, &st) != 0 || st.st_dev != f->wake_dev || st.st_ino != f->wake_ino ||
        st.st_size < (off_t)f->board.n_bytes)
        atomic_store(&f->is_deaf, true);
}

void
il__sq_file_close(struct sq_file *f)
{
    il__board_release(&f->board);
    if (f->lock_fd >= 0)
        (void)close(f->lock_fd); /* and gives up a lock */
    for (int i = 0; i < SQ_PARTS; i++)
        il__free(f->names[i]);
    il__free(f->wake_name);
    il__free(f->real);
    il__free(f->path);
    *f = (struct sq_file){ .lock_fd = -1 };
}

/* Under the lock file, no one else does the same. Without the wake file the locks still work, and
 * waiters poll every five seconds. */
void
il__sq_file_mend_wake(struct sq_file *f)
{
    if (f->wake_name != NULL)
        atomic_store(&f->is_deaf, open_wake(f, NULL) != IL_OK);
}
