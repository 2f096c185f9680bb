/*
 * lock_file.c: DB-lock, which every writer locks.
 *
 * Why a lock file: SQLite before 3.51.3 can damage a WAL when a checkpoint meets a writer that
 * restarts the WAL. So every write transaction and every checkpoint, in any process, holds an
 * exclusive flock on DB-lock. A flock belongs to the open file description: it is released when the
 * process exits, however that happens, and child processes inherit none of our descriptors
 * (close-on-exec; the command wrapper forks before it opens a store).
 *
 * The lock file is empty except for a reserve of disk space: a purge on a full disk has to write
 * before it can free anything.
 *
 * Fairness: a process that writes continuously would take the lock again before the waiters have
 * woken up. A waiter bumps the word WANTED. A process that releases the lock and finds WANTED
 * changed then waits (2 ms at most) until another process has bumped TAKEN. The words are hints: a
 * lost one costs those 2 ms.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/sqlite/sqlite_internal.h"

#define RESERVE_BYTES ((off_t)1024 * 1024)
#define PLENTY_BYTES (16 * RESERVE_BYTES) /* of free space: enough to spare a reserve */
#define YIELD_NS 2000000
#define LOOK_AGAIN_NS 20000000 /* a wake-up may be missed if the owner is killed */

void
il__sq_file_reserve(struct sq_file *f, bool anyhow)
{
    struct stat    st;
    struct statvfs disk;

    if (fstat(f->lock_fd, &st) != 0 || st.st_size >= RESERVE_BYTES)
        return;
    if (!anyhow && (fstatvfs(f->lock_fd, &disk) != 0 ||
                    disk.f_bavail < (fsblkcnt_t)PLENTY_BYTES / MAX(disk.f_frsize, 1)))
        return;
    for (off_t n = RESERVE_BYTES; n > st.st_size && n >= 4096; n /= 2) {
        if (posix_fallocate(f->lock_fd, 0, n) == 0)
            return; /* if this fails, it is tried again at the next open */
    }
}

void
il__sq_file_unreserve(struct sq_file *f)
{
    IGNORE(ftruncate(f->lock_fd, 0) != 0); /* then there is as little space as before */
}

il_status
il__sq_file_open_lock(struct sq_file *f, int fd, il_error *reterr)
{
    char name[64];

    /* the same file, wherever it is now */
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    f->lock_fd = open(name, O_RDWR | O_CLOEXEC | O_NOCTTY);
    return f->lock_fd >= 0 ? IL_OK : il__sq_file_fail(reterr, f->path);
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

/* The process that holds the lock, for a message: its pid, or 0 if the kernel does not tell
 * (another pid namespace, no /proc). */
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
        /* "1: FLOCK ADVISORY WRITE 4711 fe:00:10952747 0 EOF"; a waiter has "->" and does not
         * match. */
        if (sscanf(line, "%*d: FLOCK %*s WRITE %d %x:%x:%lu", &pid, &major, &minor, &inode) == 4 &&
            makedev(major, minor) == st.st_dev && inode == st.st_ino)
            return pid;
    }
    return 0;
}

/* Whether it is stopped (SIGSTOP, Ctrl-Z, a debugger), and so cannot release the lock. */
static bool
is_stopped(int pid)
{
    char name[64], text[256];

    (void)snprintf(name, sizeof name, "/proc/%d/stat", pid);
    (void)il__read_small(name, text, sizeof text);
    const char *state = strrchr(text, ')'); /* the name before it may be anything */
    return state != NULL && (strncmp(state, ") T", 3) == 0 || strncmp(state, ") t", 3) == 0);
}

static il_status
busy(const struct sq_file *f, il_error *reterr)
{
    int pid = owner_of(f);

    if (pid > 0)
        il__error_set(reterr, IL_STORE, "%s: locked by pid %d%s for %lld ms", f->path, pid,
                      is_stopped(pid) ? " (stopped)" : "", (long long)f->timeout_ms);
    else
        il__error_set(reterr, IL_STORE, "%s: locked by another process for %lld ms", f->path,
                      (long long)f->timeout_ms);
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
            return il__sq_file_fail(reterr, f->path);
        int64_t left_ns = until_ns - il__clock_boot_ns();
        if (left_ns <= 0)
            return busy(f, reterr);
        /* Say that we want it, then try: a process that releases it after our attempt sees that,
         * and wakes us. */
        uint32_t freed = il__board_read(b, IL__BOARD_LOCK_FREED);
        il__board_bump(b, IL__BOARD_LOCK_WANTED);
        locked = try_lock(f);
        if (!locked && errno == EWOULDBLOCK) {
            (void)il__board_sleep(b, IL__BOARD_LOCK_FREED, freed, MIN(left_ns, LOOK_AGAIN_NS));
            locked = try_lock(f);
        }
    }
    if (atomic_load(&f->is_deaf) || il__board_is_cut(b))
        il__sq_file_mend_wake(f);
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
