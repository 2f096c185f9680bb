-- cache_value_age: a value becomes stale. The caller has read the row in this transaction.
-- params:  1 tenant  2 key  3 fresh_until  4 stale_until  5 purge_at
UPDATE il_cache_value SET fresh_until = ?3, stale_until = ?4, purge_at = ?5 WHERE tenant = ?1 AND key = ?2;
