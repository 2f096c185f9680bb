-- cache_stats: count the values that may be used, and the builds that are alive, by key prefix. The length of a value is
-- known without reading it.
-- params:  1 tenant  2 lowest key  3 key below which (prefix, then a byte that no key has)  4 now_ms  5 wall_ms
-- returns: values, their bytes, fresh ones, negative ones, builds
SELECT count(*), ifnull(sum(length(value)), 0), ifnull(sum(fresh_until > ?5), 0), ifnull(sum(negative <> 0), 0),
       (SELECT count(*) FROM il_cache_build WHERE tenant = ?1 AND key >= ?2 AND key < ?3 AND expires_ms > ?4)
  FROM il_cache_value
 WHERE tenant = ?1 AND key >= ?2 AND key < ?3 AND (fresh_until > ?5 OR stale_until > ?5);
