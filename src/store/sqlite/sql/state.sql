-- state.sql: the store as a whole: its version, its counters and its clock.

-- name: is_ours
-- Is this a store (2), an empty file (0), or some other database (1)?
SELECT CASE WHEN EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'il_state') THEN 2
            WHEN EXISTS (SELECT 1 FROM sqlite_schema) THEN 1
            ELSE 0 END;

-- name: version
-- The schema's version; 0 for an empty file.
PRAGMA user_version;

-- name: state_create
-- The single row of il_state, when the store is created.
-- params:  1 version  2 fence  3 boot_id  4 offset_ms  5 mark_ms  6 test_clock  7 seed
--          8 min_version
INSERT INTO il_state (id, version, min_version, fence, ticket, boot_id, offset_ms, mark_ms, seed,
                      ended_seq, order_n, test_clock)
VALUES (1, ?1, ?8, ?2, 0, ?3, ?4, ?5, ?7, 0, 0, ?6);

-- name: state_load
-- Counters and clock.
-- returns: version, min_version, fence, ticket, boot_id, offset_ms, mark_ms, order_n, test_clock,
--          seed, ended_seq
SELECT version, min_version, fence, ticket, boot_id, offset_ms, mark_ms, order_n, test_clock, seed,
       ended_seq
  FROM il_state WHERE id = 1;

-- name: state_save
-- Once per write transaction, before the commit.
-- params:  1 fence  2 ticket  3 boot_id  4 offset_ms  5 mark_ms  6 order_n  7 ended_seq
UPDATE il_state
   SET fence = ?1, ticket = ?2, boot_id = ?3, offset_ms = ?4, mark_ms = ?5, order_n = ?6,
       ended_seq = ?7
 WHERE id = 1;
