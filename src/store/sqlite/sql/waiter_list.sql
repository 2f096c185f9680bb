-- waiter_list: a page of live waiters by key, then ticket. A queue is counted once, however many of it are on the page.
-- params:  1 tenant  2 lowest key  3 key below which  4 after key  5 after ticket  6 now_ms  7 limit
-- returns: as waiter_of_key, then key and the number of live waiters of the key
WITH page AS MATERIALIZED (
    SELECT ticket, holder, mode, permits, ttl_ms, settle_ms, queued_ms, seen_ms, deadline_ms, drop_ms, meta, place, verdict, run, key
      FROM il_waiter
     WHERE tenant = ?1 AND key >= ?2 AND key < ?3 AND (key, ticket) > (?4, ?5) AND drop_ms > ?6 AND verdict = ''
     ORDER BY key, ticket
     LIMIT ?7),
queue AS MATERIALIZED (
    SELECT k.key, (SELECT count(*) FROM il_waiter o WHERE o.tenant = ?1 AND o.key = k.key AND o.drop_ms > ?6 AND o.verdict = '') AS n
      FROM (SELECT DISTINCT key FROM page) k)
SELECT p.ticket, p.holder, p.mode, p.permits, p.ttl_ms, p.settle_ms, p.queued_ms, p.seen_ms, p.deadline_ms, p.drop_ms, p.meta, p.place, p.verdict, p.run, p.key,
       (SELECT q.n FROM queue q WHERE q.key = p.key)
  FROM page p
 ORDER BY p.key, p.ticket;
