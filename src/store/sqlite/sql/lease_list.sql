-- lease_list: a page of live leases by key, then fence. One that has expired (state HELD, 3) but whose key
-- still settles is live.
-- params:  1 tenant  2 lowest key  3 key below which (prefix, then a byte that no key has)  4 after key
--          5 after fence  6 now_ms  7 limit
-- returns: as lease_of_key, then key and the number of live waiters of the key
SELECT fence, holder, mode, permits, state, ttl_ms, settle_ms, granted_ms, renewed_ms, expires_ms, meta,
       place, reason, run, key,
       (SELECT count(*) FROM il_waiter w
         WHERE w.tenant = l.tenant AND w.key = l.key AND w.drop_ms > ?6 AND w.verdict = '')
  FROM il_lease l
 WHERE tenant = ?1 AND key >= ?2 AND key < ?3 AND (key, fence) > (?4, ?5)
   AND (expires_ms > ?6 OR (state = 3 AND expires_ms + settle_ms > ?6))
 ORDER BY key, fence
 LIMIT ?7;
