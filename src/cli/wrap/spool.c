/*
 * spool.c: writes the spool. Format and rules are in spool.h; spool_read.c reads it.
 *
 * Nothing here may affect the command: every failure turns the capture off and is recorded in the
 * head.
 */
#include "cli/wrap/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "proc/sys.h"
#include "cli/store.h"

#define SPOOL_SUFFIX ".spool"
#define OLD_SECONDS 3600
#define SWEEP_ENTRIES_MAX 1000

static uint64_t
fnv1a(uint64_t hash, const char *s)
{
    do {
        hash = (hash ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
    } while (*s++ != '\0'); /* including the NUL, so that "a","bc" and "ab","c" differ */
    return hash;
}

/* The folder, without a trailing slash. */
static bool
add_folder(struct il__buf *path)
{
    AUTO_FREE char *state = il__config_xdg_folder("XDG_STATE_HOME", ".local/state");

    if (state == NULL)
        return false;
    il__buf_addf(path, "%s/interlock/spool", state);
    return !path->failed;
}

il_status
il__spool_path(const char *tenant, const char *key, const char *holder,
               char out[IL__SPOOL_PATH_BYTES_MAX + 1], il_error *reterr)
{
    AUTO_BUF struct il__buf path;
    uint64_t                hash = UINT64_C(0xcbf29ce484222325);

    il__buf_init(&path, IL__SPOOL_PATH_BYTES_MAX);
    if (!add_folder(&path))
        return il__error_set(reterr, IL_STORE, "neither HOME nor XDG_STATE_HOME is a usable path");
    /* The beginning of the holder is for people; the hash over all of it makes the name unique. */
    il__buf_addc(&path, '/');
    for (size_t i = 0; i < 64 && holder[i] != '\0'; i++) {
        char c    = holder[i];
        bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    (c == '-' && i > 0);
        il__buf_addc(&path, safe ? c : '_');
    }
    hash = fnv1a(fnv1a(fnv1a(hash, tenant != NULL ? tenant : "default"), key), holder);
    il__buf_addf(&path, "-%016" PRIx64 SPOOL_SUFFIX, hash);
    if (path.failed)
        return il__error_set(reterr, IL_STORE, "the path of the state folder is too long");
    (void)snprintf(out, IL__SPOOL_PATH_BYTES_MAX + 1, "%s", il__buf_str(&path)); /* it fits */
    return IL_OK;
}

/* Create all missing folders of `path`, private to this user. */
static bool
make_folders(const char *path)
{
    char part[IL__SPOOL_PATH_BYTES_MAX + 1];

    for (const char *p = strchr(path + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
        (void)snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return false;
    }
    return true;
}

/* Remove one spool if it is old and has no writer. Its name is never reused, because holders are
 * not. */
static void
sweep_one(int dir_fd, const char *name)
{
    struct stat st;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) ||
        time(NULL) - st.st_mtime < OLD_SECONDS)
        return;
    AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    /* A command may be silent for hours; only the lock tells that it is over. */
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(dir_fd, name, 0); /* another sweep may have removed it */
}

static void
sweep(const char *path)
{
    char folder[IL__SPOOL_PATH_BYTES_MAX + 1];

    (void)snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return;
    for (int i = 0; i < SWEEP_ENTRIES_MAX; i++) {
        struct dirent *e = readdir(dir);
        if (e == NULL)
            break;
        if (strstr(e->d_name, SPOOL_SUFFIX) != NULL)
            sweep_one(dirfd(dir), e->d_name);
    }
    (void)closedir(dir); /* was only read from */
}

/* Does another run write to the spool of that name? Only possible with the same --holder. */
static bool
is_written(const char *path)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/* Change the head in place. */
static bool
put_head(const struct il__spool *s)
{
    return pwrite(s->fd, &s->head, sizeof s->head, 0) == (ssize_t)sizeof s->head;
}

/* Create the file, locked and with its head, under its final name; -1 and errno on failure. */
static bool
make_file(struct il__spool *s)
{
    char temporary[sizeof s->path + 32];

    (void)snprintf(temporary, sizeof temporary, "%s.%d", s->path, (int)getpid());
    (void)unlink(temporary); /* left by a dead process with our pid */
    s->fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->fd < 0)
        return false;
    /* A file system without flock() is fine: joiners then ask the store whether we still hold
     * the key. */
    (void)flock(s->fd, LOCK_EX | LOCK_NB);
    if (put_head(s) && rename(temporary, s->path) == 0)
        return true;
    int error = errno;
    (void)unlink(temporary);
    il__proc_fd_close(&s->fd);
    errno = error;
    return false;
}

il_status
il__spool_create(struct il__spool *s, const char *tenant, const char *key, const char *holder,
                 il_error *reterr)
{
    *s = (struct il__spool){ .fd = -1, .n_bytes = sizeof s->head };
    memcpy(s->head.magic, IL__SPOOL_MAGIC, sizeof s->head.magic);
    s->head.state = IL__SPOOL_WAITING;

    il_status status = il__spool_path(tenant, key, holder, s->path, reterr);
    if (status != IL_OK)
        return status;
    if (is_written(s->path)) /* do not remove it while others join it */
        return il__error_set(reterr, IL_HELD, "%.300s is in use by another run", s->path);
    if (!make_folders(s->path) || !make_file(s))
        return il__error_set(reterr, IL_STORE, "%.300s: %s", s->path, strerror(errno));
    sweep(s->path);
    return IL_OK;
}

void
il__spool_begin(struct il__spool *s, uint64_t fence)
{
    if (s->fd < 0)
        return;
    s->head.fence = fence;
    s->head.state = IL__SPOOL_RUNNING;
    if (!put_head(s))
        il__spool_drop(s); /* joiners find nothing, and say so */
}

void
il__spool_mark_incomplete(struct il__spool *s)
{
    if (s->fd < 0 || s->head.incomplete != 0)
        return;
    s->head.incomplete = 1;
    (void)put_head(s); /* in place; repeated by il__spool_end() */
}

void
il__spool_add(struct il__spool *s, uint32_t stream, const void *data, size_t n_bytes)
{
    struct il__spool_frame frame = { stream, (uint32_t)n_bytes };
    struct iovec           parts[2];
    int64_t                n_all = (int64_t)(sizeof frame + n_bytes);

    CHECK(n_bytes > 0);
    CHECK(n_bytes <= IL__SPOOL_FRAME_BYTES_MAX);
    if (s->fd < 0 || s->head.incomplete != 0)
        return;
    parts[0] = (struct iovec){ &frame, sizeof frame };
    parts[1] = (struct iovec){ (void *)(uintptr_t)data, n_bytes };
    if (s->n_bytes + n_all <= IL__SPOOL_BYTES_MAX &&
        pwritev(s->fd, parts, 2, (off_t)s->n_bytes) == (ssize_t)n_all) {
        s->n_bytes += n_all;
        return;
    }
    /*
     * Too large, or no space. Readers accept whole frames only, so none has read past n_bytes, and
     * a partial frame can be cut off. If even that fails, it is the last frame and stays
     * incomplete.
     */
    (void)!ftruncate(s->fd, (off_t)s->n_bytes);
    il__spool_mark_incomplete(s);
}

void
il__spool_end(struct il__spool *s, int exit_status)
{
    if (s->fd < 0)
        return;
    /* The status first, then the state: a reader that sees ENDED and reads again sees all of it. */
    s->head.exit_status = exit_status;
    if (put_head(s)) {
        s->head.state = IL__SPOOL_ENDED;
        (void)put_head(s); /* otherwise joiners report that the run died: wrong, but not silent */
    }
    il__proc_fd_close(&s->fd);
}

void
il__spool_drop(struct il__spool *s)
{
    if (s->fd < 0)
        return;
    (void)unlink(s->path); /* if it stays, a sweep finds it */
    il__proc_fd_close(&s->fd);
}
