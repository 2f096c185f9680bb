/*
 * file.c: the files of a store: DB (SQLite's, with DB-wal and DB-shm), DB-lock (flock) and DB-wake (the
 * board). All are 0600.
 *
 * Why a lock file: SQLite before 3.51.3 can damage a WAL when a checkpoint meets a writer that starts the
 * WAL anew. So every write transaction and every checkpoint, in any process, is taken under an exclusive
 * flock of DB-lock. flock belongs to the open file description: it ends with the process, however that ends,
 * and no descriptor of ours is inherited (close-on-exec; the command wrapper forks before it opens a store).
 *
 * Fairness: a process that writes all the time would take the lock again before those who wait for it have
 * woken up. Who waits bumps the word WANTED; who gives the lock up and finds WANTED changed then waits
 * (2 ms at most) until somebody has bumped TAKEN. The words are hints: a lost one costs those 2 ms.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "store/sqlite/sqlite_internal.h"

#define YIELD_NS 2000000
#define LOOK_AGAIN_NS 20000000 /* a wake-up may have been missed: the owner was killed */

static il_status
fail(il_error *reterr, const char *path)
{
    int       err = errno;
    il_status st  = IL_STORE;

    if (err == ENOSPC || err == EDQUOT)
        st = IL_FULL;
    else if (err == ENOMEM)
        st = IL_NOMEM;
    return il__error_set(reterr, st, "%s: %s", path, strerror(err));
}

/* Open or create a file, 0600 whatever the umask. */
static int
open_private(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if (fd >= 0 && fchmod(fd, 0600) != 0) {
        int err = errno;
        (void)close(fd);
        errno = err;
        return -1;
    }
    return fd;
}

/*
 * See that the database is a file we may use, and make it when it is not there. An existing one is not opened
 * here: closing a descriptor would drop the POSIX locks that SQLite has on it for another handle.
 */
static il_status
check_database(const char *path, bool existing, il_error *reterr)
{
    struct stat st;

    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return il__error_set(reterr, IL_STORE, "%s: is a directory, not a database", path);
        if (!S_ISREG(st.st_mode))
            return il__error_set(reterr, IL_STORE, "%s: not a regular file", path);
        return access(path, R_OK | W_OK) == 0 ? IL_OK : fail(reterr, path);
    }
    if (errno != ENOENT || existing)
        return fail(reterr, path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == EEXIST ? IL_OK : fail(reterr, path);
    int rc  = fchmod(fd, 0600);
    int err = errno;
    (void)close(fd); /* empty */
    errno = err;
    return rc == 0 ? IL_OK : fail(reterr, path);
}

static il_status
open_beside(const char *path, const char *suffix, struct il__buf *name, int *ret_fd, il_error *reterr)
{
    il__buf_clear(name);
    il__buf_addf(name, "%s%s", path, suffix);
    if (name->failed) {
        errno = ENOMEM;
        return fail(reterr, path);
    }
    *ret_fd = open_private(il__buf_str(name));
    return *ret_fd >= 0 ? IL_OK : fail(reterr, il__buf_str(name));
}

/* The board must be backed by disk blocks: a hole that cannot be filled later would be a SIGBUS. */
static il_status
open_board(struct sq_file *f, int fd, const char *name, il_error *reterr)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return fail(reterr, name);
    /* The ring behind the words may be missing: on a full disk, the locks go on working. */
    if (st.st_size < (off_t)IL__BOARD_FILE_BYTES && posix_fallocate(fd, 0, IL__BOARD_FILE_BYTES) == 0)
        st.st_size = IL__BOARD_FILE_BYTES;
    if (st.st_size < (off_t)IL__BOARD_BYTES) {
        errno = posix_fallocate(fd, 0, IL__BOARD_BYTES);
        if (errno != 0)
            return fail(reterr, name);
        st.st_size = IL__BOARD_BYTES;
    }
    if (!il__board_init_file(&f->board, fd, (size_t)st.st_size))
        return fail(reterr, name);
    return IL_OK;
}

il_status
il__sq_file_open(struct sq_file *f, const char *path, bool existing, int64_t timeout_ms, il_error *reterr)
{
    struct il__buf AUTO_BUF name = { .n_bytes_max = 8192 };

    *f = (struct sq_file){ .lock_fd = -1, .timeout_ms = timeout_ms };
    if (path[0] == '\0')
        return il__error_set(reterr, IL_INVAL, "sqlite: needs a path");
    f->path = il__strdup(path);
    if (f->path == NULL)
        return il__error_set(reterr, IL_NOMEM, "no memory for a store");
    il_status st = check_database(path, existing, reterr);
    if (st != IL_OK)
        return st;
    int fd = -1;
    st     = open_beside(path, "-lock", &name, &f->lock_fd, reterr);
    if (st == IL_OK)
        st = open_beside(path, "-wake", &name, &fd, reterr);
    if (st != IL_OK)
        return st;
    st = open_board(f, fd, il__buf_str(&name), reterr);
    (void)close(fd); /* the mapping stays */
    return st;
}

il_status
il__sq_file_open_lock(struct sq_file *f, int fd, il_error *reterr)
{
    char name[64];

    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd); /* the same file, wherever it is now */
    f->lock_fd = open(name, O_RDWR | O_CLOEXEC | O_NOCTTY);
    return f->lock_fd >= 0 ? IL_OK : fail(reterr, f->path);
}

void
il__sq_file_close(struct sq_file *f)
{
    il__board_release(&f->board);
    if (f->lock_fd >= 0)
        (void)close(f->lock_fd); /* and gives up a lock */
    il__free(f->path);
    *f = (struct sq_file){ .lock_fd = -1 };
}

static bool
try_lock(struct sq_file *f)
{
    int rc;

    do
        rc = flock(f->lock_fd, LOCK_EX | LOCK_NB);
    while (rc != 0 && errno == EINTR);
    return rc == 0;
}

bool
il__sq_file_try_lock(struct sq_file *f)
{
    bool locked = try_lock(f);

    f->wanted_at = il__board_read(&f->board, IL__BOARD_LOCK_WANTED);
    return locked;
}

static void
close_file(FILE **file)
{
    if (*file != NULL)
        (void)fclose(*file); /* only read */
}

/* Who has the lock, for a message: pid, or 0 when the kernel does not say (another pid namespace, no /proc). */
static int
owner_of(const struct sq_file *f)
{
    AUTO(close_file) FILE *locks = fopen("/proc/locks", "re");
    struct stat            st;
    char                   line[256];

    if (locks == NULL || fstat(f->lock_fd, &st) != 0)
        return 0;
    while (fgets(line, sizeof line, locks) != NULL) {
        unsigned      major, minor;
        unsigned long inode;
        int           pid;
        /* "1: FLOCK  ADVISORY  WRITE 4711 fe:00:10952747 0 EOF"; who waits has "->" and does not match. */
        if (sscanf(line, "%*d: FLOCK %*s WRITE %d %x:%x:%lu", &pid, &major, &minor, &inode) == 4 &&
            makedev(major, minor) == st.st_dev && inode == st.st_ino)
            return pid;
    }
    return 0;
}

/* Whether it was stopped (SIGSTOP, Ctrl-Z, a debugger), and so cannot give the lock up. */
static bool
is_stopped(int pid)
{
    char name[64], text[256];

    (void)snprintf(name, sizeof name, "/proc/%d/stat", pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd); /* only read */
    text[n > 0 ? n : 0] = '\0';
    const char *state   = strrchr(text, ')'); /* the name before it may be anything */
    return state != NULL && (strncmp(state, ") T", 3) == 0 || strncmp(state, ") t", 3) == 0);
}

static il_status
busy(const struct sq_file *f, il_error *reterr)
{
    int pid = owner_of(f);

    if (pid > 0)
        il__error_set(reterr, IL_STORE, "%s: pid %d%s has kept it locked for %lld ms", f->path, pid,
                      is_stopped(pid) ? ", which is stopped," : "", (long long)f->timeout_ms);
    else
        il__error_set(reterr, IL_STORE, "%s: another process has kept it locked for %lld ms",
                      f->path, (long long)f->timeout_ms);
    if (reterr != NULL)
        (void)snprintf(reterr->native, sizeof reterr->native, "%s", IL__NATIVE_BUSY);
    return IL_STORE;
}

il_status
il__sq_file_lock(struct sq_file *f, il_error *reterr)
{
    struct il__board *b        = &f->board;
    int64_t           until_ns = il__clock_boot_ns() + f->timeout_ms * IL__NS_PER_MS;

    if (f->yields)
        (void)il__board_sleep(b, IL__BOARD_LOCK_TAKEN, f->taken_at, YIELD_NS);
    f->yields   = false;
    bool locked = try_lock(f);
    bool waited = !locked;
    while (!locked) {
        if (errno != EWOULDBLOCK)
            return fail(reterr, f->path);
        int64_t left_ns = until_ns - il__clock_boot_ns();
        if (left_ns <= 0)
            return busy(f, reterr);
        /* Say that we want it, then look: whoever gives it up after the look sees that, and wakes us. */
        uint32_t freed = il__board_read(b, IL__BOARD_LOCK_FREED);
        il__board_bump(b, IL__BOARD_LOCK_WANTED);
        locked = try_lock(f);
        if (!locked && errno == EWOULDBLOCK) {
            (void)il__board_sleep(b, IL__BOARD_LOCK_FREED, freed, MIN(left_ns, LOOK_AGAIN_NS));
            locked = try_lock(f);
        }
    }
    f->wanted_at = il__board_read(b, IL__BOARD_LOCK_WANTED);
    if (waited)
        il__board_wake(b, IL__BOARD_LOCK_TAKEN);
    return IL_OK;
}

void
il__sq_file_unlock(struct sq_file *f)
{
    struct il__board *b = &f->board;

    f->yields   = il__board_read(b, IL__BOARD_LOCK_WANTED) != f->wanted_at;
    f->taken_at = il__board_read(b, IL__BOARD_LOCK_TAKEN);
    CHECK(flock(f->lock_fd, LOCK_UN) == 0);
    if (f->yields)
        il__board_wake(b, IL__BOARD_LOCK_FREED);
}
