-- lease_of_key: the leases of a key, oldest first, overdue ones too.
-- params:  1 tenant  2 key
-- returns: fence, holder, mode, permits, state, ttl_ms, settle_ms, granted_ms, renewed_ms, expires_ms, meta,
--          place, reason, run
SELECT fence, holder, mode, permits, state, ttl_ms, settle_ms, granted_ms, renewed_ms, expires_ms, meta,
       place, reason, run
  FROM il_lease
 WHERE tenant = ?1 AND key = ?2
 ORDER BY fence;
