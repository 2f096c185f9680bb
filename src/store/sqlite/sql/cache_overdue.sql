-- cache_overdue: is a value gone, or a build dead? Two looks at the start of an index.
-- params:  1 now_ms  2 wall_ms
SELECT EXISTS (SELECT 1 FROM il_cache_build WHERE expires_ms <= ?1)
    OR EXISTS (SELECT 1 FROM il_cache_value WHERE purge_at <= ?2);
