/*
 * sqlite_file.c: SQLite files that Interlock's programs own: WAL, durable, with foreign keys.
 *
 * SQLite below 3.51.3 can damage a WAL when a checkpoint meets a writer that begins the WAL anew.
 * So every write transaction and every checkpoint, in any process, is carried out under an flock of
 * PATH-lock, and there are no automatic checkpoints. Readers need no lock. The descriptor is not
 * inherited by programs that are started: an inherited flock outlives its owner.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "guard/sqlite_internal.h"

#include "guard_sqlite_sql.inc"

#define CHECKPOINT_FRAMES 1000 /* of the WAL, about 4 MB; as SQLite's own checkpoints */

static il_status
open_lock(struct sqlite_guard *g, il_error *reterr)
{
    char path[PATH_MAX];

    /* SQLite's own name of the file: with symbolic links resolved, as for its WAL. */
    if (snprintf(path, sizeof path, "%s-lock", sqlite3_db_filename(g->db, "main")) >=
        (int)sizeof path)
        return il__error_set(reterr, IL_INVAL, "%.200s: the path is too long", g->path);
    g->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (g->lock_fd < 0)
        return il__error_set(reterr, IL_STORE, "cannot open %s: %s", path, strerror(errno));
    return IL_OK;
}

/* Called by SQLite after each commit. */
static int
note_frames(void *cookie, sqlite3 *db UNUSED, const char *name UNUSED, int n_frames)
{
    struct sqlite_guard *g = cookie;

    if (n_frames < g->n_frames) /* it was begun anew, by us or by another process */
        g->try_at = CHECKPOINT_FRAMES;
    g->n_frames = n_frames;
    return SQLITE_OK;
}

il_status
il__guard_file_set_up(struct sqlite_guard *g, il_error *reterr)
{
    static const char *const texts[] = { sql_sqlite_own, sql_sqlite_own_sync, sql_sqlite_own_keys,
                                         sql_sqlite_own_checkpoints, sql_sqlite_own_size };

    il_status st = open_lock(g, reterr);
    if (st == IL_OK)
        st = il__guard_file_lock(g, reterr);
    for (size_t i = 0; st == IL_OK && i < ARRAY_LEN(texts); i++)
        st = il__guard_sqlite_exec(g, texts[i], reterr);
    g->try_at = CHECKPOINT_FRAMES;
    (void)sqlite3_wal_hook(g->db, note_frames, g); /* returns the previous hook: none */
    il__guard_file_unlock(g);
    return st;
}

/* Poll: flock() has no timeout, and a blocked one could not be interrupted. */
il_status
il__guard_file_lock(struct sqlite_guard *g, il_error *reterr)
{
    static const int delays_ms[] = { 1, 1, 2, 2, 5, 5, 10, 10, 20 };
    const il_guard  *db          = g->base.g;
    int64_t          until_ns    = il__clock_boot_ns() + db->lock_timeout_ms * IL__NS_PER_MS;
    struct pollfd    stop        = { .fd = il__guard_stop_fd(db, g->base.limit), .events = POLLIN };

    for (size_t i = 0; flock(g->lock_fd, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return il__error_set(reterr, IL_STORE, "cannot lock %s-lock: %s", g->path,
                                 strerror(errno));
        il_status st = il__guard_check_deadline(&g->base, reterr);
        if (st != IL_OK)
            return st;
        if (il__clock_boot_ns() >= until_ns)
            return il__error_set(reterr, IL_TIMEOUT,
                                 "%s: timed out waiting for another process's lock on the file",
                                 g->path);
        (void)poll(&stop, 1, delays_ms[MIN(i, ARRAY_LEN(delays_ms) - 1)]);
    }
    g->locked = true;
    return IL_OK;
}

/* RESTART, not TRUNCATE: every following commit would have to extend a truncated WAL, and a sync of
 * a file that has grown takes twice as long. A reader may keep it from finishing: try again when
 * the WAL has grown further, as each attempt costs two syncs. */
static void
checkpoint(struct sqlite_guard *g)
{
    g->commits = true; /* not interruptible, and without waiting: see wait_while_busy() */
    int rc     = sqlite3_wal_checkpoint_v2(g->db, "main", SQLITE_CHECKPOINT_RESTART, NULL, NULL);
    if (rc == SQLITE_OK)
        g->n_frames = 0;
    g->try_at  = g->n_frames + CHECKPOINT_FRAMES;
    g->commits = false;
}

void
il__guard_file_unlock(struct sqlite_guard *g)
{
    if (!g->locked)
        return;
    if (g->db != NULL && sqlite3_get_autocommit(g->db) != 0 && g->n_frames >= g->try_at)
        checkpoint(g);
    CHECK(flock(g->lock_fd, LOCK_UN) == 0);
    g->locked = false;
}

void
il__guard_file_close(struct sqlite_guard *g)
{
    if (g->lock_fd >= 0)
        (void)close(g->lock_fd);
    g->lock_fd = -1;
    g->locked  = false;
}
