-- cache_value_purge: forget values that are gone. Costs what it removes, and what went in the same
-- millisecond: the index on purge_at is read from its start.
-- params:  1 wall_ms  2 limit
DELETE FROM il_cache_value
 WHERE id IN (SELECT id FROM il_cache_value WHERE purge_at <= ?1 ORDER BY purge_at, filled LIMIT ?2);
