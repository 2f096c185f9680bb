-- waiter_of_key: a part of the queue of a key in the order of tickets, dead and cancelled waiters too.
-- params:  1 tenant  2 key  3 ticket behind which  4 limit
-- returns: ticket, holder, mode, permits, ttl_ms, settle_ms, queued_ms, seen_ms, deadline_ms, drop_ms, meta,
--          place, verdict, run
SELECT ticket, holder, mode, permits, ttl_ms, settle_ms, queued_ms, seen_ms, deadline_ms, drop_ms, meta,
       place, verdict, run
  FROM il_waiter
 WHERE tenant = ?1 AND key = ?2 AND ticket > ?3
 ORDER BY ticket
 LIMIT ?4;
