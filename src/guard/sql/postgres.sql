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
-- holder waiting: the server aborts such a transaction. Applies to this transaction only, like the
-- settings below.
SET LOCAL idle_in_transaction_session_timeout = '30s';

-- name: postgres_lock_timeout
SET LOCAL lock_timeout = @ms;

-- name: postgres_statement_timeout
SET LOCAL statement_timeout = @ms;

-- name: postgres_search_path
-- @names were checked: plain names, quoted.
SET LOCAL search_path = @names;

-- name: postgres_savepoint
SAVEPOINT @name;

-- name: postgres_savepoint_release
RELEASE @name;

-- name: postgres_savepoint_undo
ROLLBACK TO @name;

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

-- name: postgres_primary_key
-- The columns of a primary key, in its order; 1 if a column holds integers, 2 if floats. A domain
-- is what it is made of.
-- params:  1 schema  2 table
-- returns: name, 0, 1 or 2
SELECT a.attname,
       (WITH RECURSIVE base(oid) AS (
            SELECT a.atttypid
             UNION ALL
            SELECT t.typbasetype FROM base AS b
              JOIN pg_catalog.pg_type t ON t.oid = b.oid AND t.typtype = 'd')
        SELECT CASE WHEN pg_catalog.bool_or(base.oid IN (20, 21, 23, 26)) THEN 1
                    WHEN pg_catalog.bool_or(base.oid IN (700, 701)) THEN 2 ELSE 0 END FROM base)
  FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN LATERAL pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
 WHERE n.nspname = $1 AND c.relname = $2 AND i.indisprimary
 ORDER BY k.place;

-- name: postgres_constraint
-- A constraint that is in force, or a valid unique index.
-- params:  1 schema  2 table  3 name
-- returns: 1, 1 (no row: there is none)
SELECT 1, 1
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname = $2
   AND (EXISTS (SELECT 1 FROM pg_catalog.pg_constraint o
                 WHERE o.conrelid = c.oid AND o.conname = $3 AND o.convalidated)
        OR EXISTS (SELECT 1 FROM pg_catalog.pg_index i
                     JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
                    WHERE i.indrelid = c.oid AND x.relname = $3
                      AND i.indisunique AND i.indisvalid));

-- ---- rows ---------------------------------------------------------------------------------------

-- name: postgres_lock
-- Not FOR UPDATE: a transaction that inserts a row which refers to this one must not wait.
-- Race-free: who has waited for the row gets its newest version, and no row if @where no longer
-- fits it.
SELECT @key FROM @table WHERE @where LIMIT 2 FOR NO KEY UPDATE;

-- name: postgres_lock_many
-- Rows are locked in the order of the sort, and primary keys do not change.
SELECT @key FROM @table WHERE @where ORDER BY @order FOR NO KEY UPDATE;

-- ---- idempotency keys ---------------------------------------------------------------------------

-- name: postgres_done_make
-- In the first schema of the search_path. If two create it at once, one of them fails and looks
-- again.
CREATE TABLE IF NOT EXISTS interlock_done (
    key        text   NOT NULL PRIMARY KEY,
    done_at_ms bigint NOT NULL
);

-- name: postgres_done_add
-- Race-free: while another transaction with the same key is open, this waits for its end.
-- params:  1 key  2 now
INSERT INTO interlock_done (key, done_at_ms) VALUES ($1, $2) ON CONFLICT DO NOTHING;
