-- cache_build_of_key: who builds the value of a key, dead or alive.
-- params:  1 tenant  2 key
-- returns: holder, token, expires_ms, began_ms, began_at
SELECT holder, token, expires_ms, began_ms, began_at FROM il_cache_build WHERE tenant = ?1 AND key = ?2;
