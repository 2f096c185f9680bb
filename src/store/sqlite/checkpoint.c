/*
 * checkpoint.c: checkpoints the WAL before it grows too large.
 *
 * SQLite restarts the WAL only while no reader uses it. Overlapping reads, from any number of
 * processes, may never leave such a moment, so above WAIT_FRAMES the checkpoint waits for one while
 * it holds the lock file. That wait is bounded, because no commit can happen meanwhile:
 *   - A reader that starts now sees the last commit. It takes a mark there as soon as one of
 *     SQLite's four marks is free, and then does not block copying the frames before that mark.
 *   - Once all frames are copied, a new reader uses only the database file and does not block the
 *     restart.
 * So each wait is for reads that started before it, and three such waits are enough: short reads,
 * however many, cannot prevent the restart. A killed reader gives up its mark together with its
 * locks; a writer killed here has changed nothing that others wait for.
 *
 * A read that takes longer than WAIT_MS (a backup by another program, a process stopped in the
 * middle) does block the restart: the frames it may need cannot be overwritten. Writers then
 * continue and the WAL grows. They wait again after every AGAIN_FRAMES, and above LARGE_FRAMES each
 * time it has grown by an eighth.
 */
#include "store/sqlite/sqlite_internal.h"

#define WAIT_FRAMES 12000  /* 49 MB: above this, wait for readers */
#define LARGE_FRAMES 24000 /* 99 MB: so many failed waits mean that a long read is in the way */
#define WAIT_MS 500        /* a third of it is far more than any of our reads takes */
#define AGAIN_FRAMES 1000  /* a failed checkpoint costs two syncs: not after every commit */

void
il__sq_wal_init(struct sq_wal *w)
{
    atomic_init(&w->n_frames, 0);
    atomic_init(&w->try_at, SQ_CHECKPOINT_FRAMES);
    atomic_init(&w->wait_at, WAIT_FRAMES);
}

static bool
restart(struct sq_conn *c, int wait_ms, int64_t timeout_ms)
{
    (void)sqlite3_busy_timeout(c->db, wait_ms);
    /* RESTART, not TRUNCATE: every following commit would have to extend a truncated WAL, which
     * costs a single caller 40 % of its rate. The next commit cuts it to journal_size_limit. */
    int rc = sqlite3_wal_checkpoint_v2(c->db, "main", SQLITE_CHECKPOINT_RESTART, NULL, NULL);
    (void)sqlite3_busy_timeout(c->db, (int)MIN(timeout_ms, INT32_MAX));
    return rc == SQLITE_OK; /* if not, nothing is lost: the WAL stays */
}

bool
il__sq_wal_is_large(struct sq_wal *w, int n_frames)
{
    /* Fewer than before: it was restarted, by us or by another process. */
    if (n_frames < atomic_exchange(&w->n_frames, n_frames)) {
        atomic_store(&w->try_at, SQ_CHECKPOINT_FRAMES);
        atomic_store(&w->wait_at, WAIT_FRAMES);
    }
    return n_frames >= atomic_load(&w->try_at);
}

void
il__sq_checkpoint(struct sq_wal *w, struct sq_conn *c, int64_t timeout_ms)
{
    int  n_frames = atomic_load(&w->n_frames);
    bool waits    = n_frames >= atomic_load(&w->wait_at);

#ifdef IL_MUTANT_readers_keep_the_wal
    waits = false;
#endif
    if (restart(c, waits ? WAIT_MS : 0, timeout_ms))
        return;
    atomic_store(&w->try_at, n_frames + AGAIN_FRAMES);
    if (waits && n_frames >= LARGE_FRAMES)
        atomic_store(&w->wait_at, n_frames + n_frames / 8);
}
