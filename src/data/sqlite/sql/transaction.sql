-- transaction.sql: this engine's transactions, and the check whether its tables exist.
--
-- The other files rely on this: statements that write run in a transaction started with BEGIN
-- IMMEDIATE, under the store's lock file, so there is no other writer meanwhile.

-- name: begin
-- For a data store in memory; for a file, il_tx_begin() begins it under the store's lock.
BEGIN IMMEDIATE;

-- name: commit
-- As begin.
COMMIT;

-- name: rollback
-- As begin.
ROLLBACK;

-- name: there
-- Do our tables exist?
SELECT count(*) FROM sqlite_schema WHERE name = 'il_data_meta';
