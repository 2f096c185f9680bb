-- cache_value_set: the value that was built, in the place of the old one: readers see either, never half of one. The caller has
-- read in this transaction that the build is its own and alive.
-- params:  1 tenant  2 key  3 filled  4 began_at  5 fresh_until  6 stale_until  7 purge_at  8 build_ms  9 code  10 negative
--          11 value
INSERT INTO il_cache_value (tenant, key, filled, began_at, fresh_until, stale_until, purge_at, build_ms, code,
                            negative, value)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
    ON CONFLICT (tenant, key) DO UPDATE
   SET filled = ?3, began_at = ?4, fresh_until = ?5, stale_until = ?6, purge_at = ?7, build_ms = ?8, code = ?9,
       negative = ?10, value = ?11;
