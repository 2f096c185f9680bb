-- waiter_of_holder: the waiter of a holder.
-- params:  1 tenant  2 key  3 holder
-- returns: as waiter_of_key
SELECT ticket, holder, mode, permits, ttl_ms, settle_ms, queued_ms, seen_ms, deadline_ms, drop_ms, meta,
       place, verdict, run
  FROM il_waiter
 WHERE tenant = ?1 AND key = ?2 AND holder = ?3;
