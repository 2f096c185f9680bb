-- call.sql: the engine's calls to the functions in a store's schema, and the transactions around
-- them. @schema, @channel and @name are filled in when a store is opened.
--
-- A call is one statement, so one transaction: functions/base.sql describes the mutexes that make
-- it race-free, and why it must be READ COMMITTED.

-- ---- calls --------------------------------------------------------------------------------------

-- name: call
-- A batch of requests; see functions/apply.sql.
-- params:  1 requests  2 blobs  3 now_ms or NULL  4 wall_ms or NULL
SELECT i, out, data, data2 FROM @schema.apply($1, $2, $3, $4)

-- name: work
-- A single claim, many finishes, or finishes followed by a claim; see
-- functions/queue_finish_claim.sql. The columns are those of enum work_column in job_many.c.
-- params:  1 the claim or NULL; of finishes, or NULL:  2 tenant  3 queue  4 their worker  5 tokens
--          6 places  7 results or NULL  8 some have unique keys
--          9 now_ms or NULL  10 wall_ms or NULL
SELECT * FROM @schema.work_rows($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, true)

-- name: locks
-- Acquires, renewals and releases of many callers; see functions/lock_many.sql. The columns are
-- those of enum lock_column in lock_many.c.
-- params:  1 kinds  2 tenants  3 keys  4 holders  5 fences  6 ttls  7 settle times  8 metas
--          9 places  10 now_ms or NULL
SELECT * FROM @schema.lock_many($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)

-- ---- waking -------------------------------------------------------------------------------------

-- name: notify
-- Wake-ups for other processes, after the commit that they report, and in a transaction of its own:
-- NOTIFY takes a lock that all commits of the database share, so it must not be held while a commit
-- waits for the disk. That is why this one does not wait either.
-- params:  1 channel  2 words of the board
SELECT pg_catalog.set_config('synchronous_commit', 'off', true), pg_catalog.pg_notify($1, $2)

-- name: listen
-- On the connection of the listener, and nowhere else.
LISTEN @channel

-- name: alive
-- Does the server answer?
SELECT 1

-- ---- transactions -------------------------------------------------------------------------------

-- name: begin
-- The transaction of one call, where the default of the database or role is not READ COMMITTED.
BEGIN ISOLATION LEVEL READ COMMITTED

-- name: commit
COMMIT

-- name: rollback
-- Nothing was done.
ROLLBACK

-- name: report_begin
-- A transaction in which apply() can be called whatever the role's defaults are: those are to be
-- reported.
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY
