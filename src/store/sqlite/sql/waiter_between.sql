-- waiter_between: how many wait for a key with tickets in a range, cancelled ones left out. Costs the range.
-- params:  1 tenant  2 key  3 from ticket  4 below ticket
SELECT count(*) FROM il_waiter WHERE tenant = ?1 AND key = ?2 AND ticket >= ?3 AND ticket < ?4 AND verdict = '';
