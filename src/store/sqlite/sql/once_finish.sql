-- once_finish: the answer. The caller has read in this transaction that the claim is its own and alive.
-- params:  1 tenant  2 key  3 purge_ms  4 code  5 response
UPDATE il_once SET state = 2, purge_ms = ?3, code = ?4, response = ?5 WHERE tenant = ?1 AND key = ?2;
