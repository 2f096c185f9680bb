-- cache_build_purge: forget builds that died. Costs what it removes, and what died in the same millisecond: the
-- index on expires_ms is read from its start.
-- params:  1 now_ms  2 limit
DELETE FROM il_cache_build
 WHERE (tenant, key) IN (SELECT tenant, key FROM il_cache_build WHERE expires_ms <= ?1 ORDER BY expires_ms, token LIMIT ?2);
