-- once_purge: forget what is gone. Costs what it removes, and what went in the same millisecond: the index on
-- (state, purge_ms) is read from its start.
-- params:  1 state  2 purge_ms up to which  3 limit
DELETE FROM il_once
 WHERE id IN (SELECT id FROM il_once WHERE state = ?1 AND purge_ms <= ?2 ORDER BY purge_ms, token LIMIT ?3);
