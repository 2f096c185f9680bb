-- waiter_of_unit: the keys that a unit of work waits for, the youngest wait first, as on the memory engine: the cycle that is told depends on it.
-- params:  1 tenant  2 root
-- returns: key, whether it was cancelled
SELECT key, verdict <> '' FROM il_waiter WHERE tenant = ?1 AND root = ?2 ORDER BY ticket DESC;
