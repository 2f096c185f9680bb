-- raw_lock.sql: the baseline for locks: a typical hand-written row lease.

-- name: raw_connect
-- The settings of the baseline's connection; the same durability as the engine's. Checkpoints are
-- SQLite's own (wal_autocheckpoint = 1000, the default).
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;

-- name: raw_begin
-- Take the write lock at once.
BEGIN IMMEDIATE;

-- name: raw_commit
-- Syncs the WAL.
COMMIT;

-- name: raw_create
-- The tables of a hand-written row lease: the holder of each key, its fence and expiry; and the
-- counter that fences are drawn from.
CREATE TABLE lease (
    tenant  TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    holder  TEXT    NOT NULL,
    fence   INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
CREATE TABLE counter (
    id    INTEGER PRIMARY KEY,
    fence INTEGER NOT NULL
);
INSERT INTO counter (id, fence) VALUES (1, 0);

-- name: raw_fence
-- Draw the next fence.
-- returns: fence
UPDATE counter SET fence = fence + 1 WHERE id = 1 RETURNING fence;

-- name: raw_acquire
-- Take a key that is free or whose lease has expired. Changes one row, or none if it is held.
-- params:  1 tenant  2 key  3 holder  4 fence  5 expires  6 now
INSERT INTO lease (tenant, key, holder, fence, expires)
VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (tenant, key) DO UPDATE
   SET holder = excluded.holder, fence = excluded.fence, expires = excluded.expires
 WHERE lease.expires <= ?6;

-- name: raw_release
-- Release a key that is still ours. Changes one row, or none if the lease was lost.
-- params:  1 tenant  2 key  3 holder  4 fence
DELETE FROM lease WHERE tenant = ?1 AND key = ?2 AND holder = ?3 AND fence = ?4;

-- name: lease_create
-- The table of a typical hand-written row lease on PostgreSQL.
CREATE TABLE IF NOT EXISTS lease (
    key     text PRIMARY KEY,
    holder  text NOT NULL,
    fence   bigint NOT NULL,
    expires timestamptz NOT NULL
);
