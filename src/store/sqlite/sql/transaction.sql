-- transaction.sql: the transactions that everything else runs in.
--
-- The other files rely on this: every writer starts with begin_write. BEGIN IMMEDIATE admits one
-- writer at a time, so what it has read stays true until it commits. It may read, decide and write
-- in several statements, and the last of them needs no comparison. Readers see one snapshot.

-- name: begin_read
-- One snapshot for all ops of the batch.
BEGIN;

-- name: begin_write
-- BEGIN IMMEDIATE takes the write lock now. A deferred transaction that turns into a writer later
-- can fail with SQLITE_BUSY_SNAPSHOT, which no busy handler helps against.
BEGIN IMMEDIATE;

-- name: commit
-- With synchronous = FULL this returns after the WAL was synced.
COMMIT;

-- name: rollback
-- Undo the batch.
ROLLBACK;

-- name: savepoint
-- What follows can be rolled back alone, within the caller's transaction.
SAVEPOINT il_apply;

-- name: savepoint_release
-- Keep what was done since the savepoint, and release it.
RELEASE il_apply;

-- name: savepoint_undo
-- Undo what was done since the savepoint, which stays.
ROLLBACK TO il_apply;
