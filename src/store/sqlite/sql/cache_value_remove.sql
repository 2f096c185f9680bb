-- cache_value_remove: a value was dropped.
-- params:  1 tenant  2 key
DELETE FROM il_cache_value WHERE tenant = ?1 AND key = ?2;
