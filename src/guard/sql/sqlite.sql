-- sqlite.sql: fenced transactions on the user's SQLite file.
--
-- The fence is checked and the user's statements run in one transaction, started with sqlite_begin:
-- it holds the file's only write lock from begin to end, so no other fence can be shown, and no one
-- else can write, in between.

-- ---- transactions -------------------------------------------------------------------------------

-- name: sqlite_begin
-- IMMEDIATE takes the file's only write lock now. A transaction that reads first and writes later
-- could find that another one has written meanwhile.
BEGIN IMMEDIATE;

-- name: sqlite_begin_read
-- All reads see the same state of the file; nothing is locked until the first of them.
BEGIN DEFERRED;

-- name: sqlite_commit
-- A commit hook refuses every other commit.
COMMIT;

-- name: sqlite_rollback
-- Also after a failure that left the transaction open.
ROLLBACK;

-- name: sqlite_savepoint
SAVEPOINT @name;

-- name: sqlite_savepoint_release
RELEASE @name;

-- name: sqlite_savepoint_undo
ROLLBACK TO @name;

-- ---- files that Interlock's programs own --------------------------------------------------------

-- name: sqlite_own
-- Readers and a writer do not block each other; a commit is on disk when it returns.
PRAGMA journal_mode = WAL;

-- name: sqlite_own_sync
PRAGMA synchronous = FULL;

-- name: sqlite_own_keys
PRAGMA foreign_keys = ON;

-- name: sqlite_own_checkpoints
-- Only under the lock file: see sqlite_file.c.
PRAGMA wal_autocheckpoint = 0;

-- name: sqlite_own_size
-- The WAL is overwritten after a checkpoint. If a long read has made it larger, it is cut to this.
PRAGMA journal_size_limit = 16777216;

-- ---- fences -------------------------------------------------------------------------------------

-- name: sqlite_fence_there
-- Was a fence shown in this file before?
-- returns: 1 or 0
SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'interlock_fence');

-- name: sqlite_fence_make
-- The highest fence shown for each key. Created in the transaction that shows the first one, under
-- the write lock, so no one else creates it at the same time.
CREATE TABLE IF NOT EXISTS main.interlock_fence (
    tenant      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fence       INTEGER NOT NULL,
    shown_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;

-- name: sqlite_fence_show
-- Show a fence.
-- params:  1 tenant  2 key  3 fence  4 now
-- returns: fence (no row: a higher one was shown before)
INSERT INTO main.interlock_fence (tenant, key, fence, shown_at_ms)
VALUES ($1, $2, $3, $4)
    ON CONFLICT (tenant, key) DO UPDATE
   SET fence = excluded.fence, shown_at_ms = excluded.shown_at_ms
 WHERE interlock_fence.fence <= excluded.fence
RETURNING fence;

-- name: sqlite_fence_seen
-- The highest fence shown, for the error message.
-- params:  1 tenant  2 key
-- returns: fence
SELECT fence FROM main.interlock_fence WHERE tenant = $1 AND key = $2;

-- ---- the catalogue ------------------------------------------------------------------------------

-- name: sqlite_is_store
-- Is the file a store? Stores may only be written under their lock file (src/store/sqlite). The
-- same check as is_ours in src/store/sqlite/sql/state.sql.
-- returns: 1 or 0
SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = 'il_state');

-- name: sqlite_table
-- A table or view by its name. Names are compared the way SQLite does.
-- params:  1 schema, NULL = main  2 name
-- returns: schema, name
SELECT schema, name FROM pragma_table_list
 WHERE schema = coalesce($1, 'main') COLLATE NOCASE AND name = $2 COLLATE NOCASE LIMIT 1;

-- name: sqlite_column
-- A column of a table, as the catalogue spells it.
-- params:  1 schema  2 table  3 column
-- returns: name
SELECT name FROM pragma_table_xinfo($2) WHERE schema = $1 AND name = $3 COLLATE NOCASE LIMIT 1;

-- name: sqlite_primary_key
-- The columns of a primary key, in its order; 1 if a column holds integers.
-- params:  1 schema  2 table
-- returns: name, 1 or 0
SELECT name, type LIKE '%INT%' FROM pragma_table_xinfo($2)
 WHERE schema = $1 AND pk > 0 ORDER BY pk;

-- name: sqlite_constraint
-- A unique index of this name, or the text of the table, which may declare such a constraint.
-- params:  1 schema  2 table  3 name
-- returns: 1, or the text; 1 if foreign keys are enforced
SELECT 1, 1 FROM pragma_index_list($2, $1) WHERE "unique" AND name = $3 COLLATE NOCASE
 UNION ALL
SELECT sql, (SELECT foreign_keys FROM pragma_foreign_keys)
  FROM main.sqlite_schema WHERE type = 'table' AND name = $2 COLLATE NOCASE AND $1 = 'main';

-- name: sqlite_unique_of
-- The unique index of a table over these columns, for an error message.
-- params:  1 table  2 columns: 'a, b'
-- returns: name
SELECT l.name FROM pragma_index_list($1) AS l
 WHERE l."unique" AND (SELECT group_concat(i.name, ', ') FROM
                        (SELECT name FROM pragma_index_info(l.name) ORDER BY seqno) AS i) = $2
 LIMIT 1;

-- ---- rows ---------------------------------------------------------------------------------------

-- name: sqlite_lock
-- The transaction has the write lock of the file since its begin: nobody changes the row.
SELECT @key FROM @table WHERE @where LIMIT 2;

-- name: sqlite_lock_many
SELECT @key FROM @table WHERE @where ORDER BY @order;

-- ---- idempotency keys ---------------------------------------------------------------------------

-- name: sqlite_done_make
CREATE TABLE IF NOT EXISTS main.interlock_done (
    key        TEXT    NOT NULL PRIMARY KEY,
    done_at_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- name: sqlite_done_add
-- params:  1 key  2 now
INSERT INTO main.interlock_done (key, done_at_ms) VALUES ($1, $2) ON CONFLICT DO NOTHING;
