-- lease_change: confirm, renew, break or settle. The caller has read the row in this transaction.
-- params:  1 tenant  2 key  3 fence  4 state  5 ttl_ms  6 renewed_ms  7 expires_ms  8 reason
UPDATE il_lease
   SET state = ?4, ttl_ms = ?5, renewed_ms = ?6, expires_ms = ?7, reason = ?8
 WHERE tenant = ?1 AND key = ?2 AND fence = ?3;
