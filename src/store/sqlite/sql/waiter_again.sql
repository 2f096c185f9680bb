-- waiter_again: a waiter that asks again, where nothing of its key is overdue: then a sign of life is all there is to do, and its queue,
-- which may be long, is not read.
-- params:  1 tenant  2 key  3 holder  4 now_ms  5 mode  6 permits
-- returns: ticket (no row: it is not as simple as that)
SELECT w.ticket
  FROM il_waiter w
 WHERE w.tenant = ?1 AND w.key = ?2 AND w.holder = ?3 AND w.mode = ?5 AND w.permits = ?6 AND w.verdict = ''
   AND NOT EXISTS (SELECT 1 FROM il_waiter d INDEXED BY il_waiter_drop
                    WHERE d.drop_ms <= ?4 AND d.tenant = ?1 AND d.key = ?2)
   AND NOT EXISTS (SELECT 1 FROM il_lease l
                    WHERE l.tenant = ?1 AND l.key = ?2 AND (l.expires_ms <= ?4 OR l.holder = ?3));
