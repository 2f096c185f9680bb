-- once_renew: a claim lives on. The caller has read the row in this transaction.
-- params:  1 tenant  2 key  3 expires_ms  4 keep_ms  5 purge_ms
UPDATE il_once SET expires_ms = ?3, keep_ms = ?4, purge_ms = ?5 WHERE tenant = ?1 AND key = ?2;
