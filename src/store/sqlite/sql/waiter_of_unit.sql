-- waiter_of_unit: the keys that a unit of work waits for.
-- params:  1 tenant  2 root
-- returns: key
SELECT key FROM il_waiter WHERE tenant = ?1 AND root = ?2 AND verdict = '' ORDER BY ticket;
