-- waiter_overdue: is somebody who waits for the key dead? Costs what is overdue, in all queues.
-- params:  1 tenant  2 key  3 now_ms
SELECT EXISTS (SELECT 1 FROM il_waiter INDEXED BY il_waiter_drop WHERE drop_ms <= ?3 AND tenant = ?1 AND key = ?2);
