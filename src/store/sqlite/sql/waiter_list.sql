-- waiter_list: a page of live waiters by key, then ticket.
-- params:  1 tenant  2 lowest key  3 key below which  4 after key  5 after ticket  6 now_ms  7 limit
-- returns: as waiter_of_key, then key and the number of live waiters of the key
SELECT ticket, holder, mode, permits, ttl_ms, settle_ms, queued_ms, seen_ms, deadline_ms, drop_ms, meta,
       place, verdict, run, key,
       (SELECT count(*) FROM il_waiter o
         WHERE o.tenant = w.tenant AND o.key = w.key AND o.drop_ms > ?6 AND o.verdict = '')
  FROM il_waiter w
 WHERE tenant = ?1 AND key >= ?2 AND key < ?3 AND (key, ticket) > (?4, ?5) AND drop_ms > ?6
   AND verdict = ''
 ORDER BY key, ticket
 LIMIT ?7;
