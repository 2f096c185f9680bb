-- cache_build_remove: a build is over: filled, given up or void.
-- params:  1 tenant  2 key
DELETE FROM il_cache_build WHERE tenant = ?1 AND key = ?2;
