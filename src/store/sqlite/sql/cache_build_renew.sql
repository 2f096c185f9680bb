-- cache_build_renew: a build lives on. The caller has read the row in this transaction.
-- params:  1 tenant  2 key  3 expires_ms
UPDATE il_cache_build SET expires_ms = ?3 WHERE tenant = ?1 AND key = ?2;
