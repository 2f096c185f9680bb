-- cache_value_of_key: the value of a key, of whatever age. Its bytes, which may be many, are read only where the answer shows or
-- compares them.
-- params:  1 tenant  2 key  3 wall_ms: bytes if it may be used then  4, 5 bytes if it was filled with a token between these
-- returns: filled, began_at, fresh_until, stale_until, purge_at, build_ms, code, negative, value or NULL
SELECT filled, began_at, fresh_until, stale_until, purge_at, build_ms, code, negative,
       CASE WHEN stale_until > ?3 OR filled BETWEEN ?4 AND ?5 THEN value END
  FROM il_cache_value
 WHERE tenant = ?1 AND key = ?2;
