-- advisory.sql: advisory locks for programs that do not use a store.

-- name: advisory_begin
-- The transaction that holds the lock. READ COMMITTED and otherwise idle: it has no snapshot, so it
-- does not hinder clean-up.
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY

-- name: advisory_limit
-- The holder sends a statement more often than this; a holder that was stopped, or cut off, cannot.
-- params:  1 milliseconds
SELECT pg_catalog.set_config('idle_in_transaction_session_timeout', $1, true)

-- name: advisory_take
-- The lock with this id, otherwise that of this key: the first 8 bytes of its SHA-256, big-endian,
-- mod 2^31, which are the last 31 bits of them.
-- params:  1 id or NULL  2 key
SELECT pg_catalog.pg_try_advisory_xact_lock(coalesce($1,
    pg_catalog.concat('x', pg_catalog.right(pg_catalog.encode(
        pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to($2, 'UTF8')), 1, 8), 'hex'), 8))
    ::pg_catalog.bit(32)::pg_catalog.int8 & 2147483647::pg_catalog.int8))
