-- postgres.sql: fenced transactions on the user's PostgreSQL database.
--
-- Transactions are READ COMMITTED: a statement that has waited for the row of a fence sees what its
-- owner has committed, and so does every statement after it.

-- ---- transactions -------------------------------------------------------------------------------

-- name: postgres_begin
-- READ COMMITTED, whatever the default.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;

-- name: postgres_begin_read
-- One snapshot for all reads.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- name: postgres_idle
-- A process stopped in the middle of its transaction keeps the fence's row locked and the next
-- holder waiting: the server aborts such a transaction. Applies to this transaction only.
SET LOCAL idle_in_transaction_session_timeout = '30s';

-- name: postgres_commit
COMMIT;

-- name: postgres_rollback
ROLLBACK;

-- ---- fences -------------------------------------------------------------------------------------

-- name: postgres_fence_make
-- The highest fence shown for each key; in the first schema of the connection's search_path. If two
-- create the table at once, one of them fails (duplicate_table, duplicate_object or
-- unique_violation) and checks again.
CREATE TABLE IF NOT EXISTS interlock_fence (
    tenant   text        NOT NULL,
    key      text        NOT NULL,
    fence    bigint      NOT NULL,
    shown_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
    PRIMARY KEY (tenant, key)
);

-- name: postgres_fence_show
-- Record a fence as the highest shown, in a transaction that is committed at once. Race-free: it
-- waits for transactions that have locked the row, then sees the committed row.
-- params:  1 tenant  2 key  3 fence
-- returns: fence (no row: a higher one was shown before)
INSERT INTO interlock_fence AS f (tenant, key, fence) VALUES ($1, $2, $3::bigint)
    ON CONFLICT (tenant, key) DO UPDATE SET fence = excluded.fence, shown_at = pg_catalog.now()
    WHERE f.fence <= excluded.fence
    RETURNING f.fence;

-- name: postgres_fence_share
-- The highest fence shown; it cannot change until the end of the transaction. The lock is shared:
-- concurrent steps of one run do not wait for each other. Race-free: postgres_fence_show, the only
-- statement that changes it, waits for all share locks; if it is running, this statement waits for
-- it and sees what it has written.
-- params:  1 tenant  2 key
-- returns: fence
SELECT fence FROM interlock_fence WHERE tenant = $1 AND key = $2 FOR SHARE;

-- ---- the catalogue ------------------------------------------------------------------------------

-- name: postgres_table
-- A table or view by its name.
-- params:  1 schema, NULL = as the search_path finds it  2 name
-- returns: schema, name
SELECT n.nspname, c.relname
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relname = $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
   AND CASE WHEN $1::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid)
            ELSE n.nspname = $1::text END
 LIMIT 1;

-- name: postgres_column
-- A column of a table.
-- params:  1 schema  2 table  3 column
-- returns: name
SELECT a.attname
  FROM pg_catalog.pg_attribute a
  JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname = $2 AND a.attname = $3 AND a.attnum > 0 AND NOT a.attisdropped;
