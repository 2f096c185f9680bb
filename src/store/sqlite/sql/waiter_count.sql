-- waiter_count: live waiters of a key.
-- params:  1 tenant  2 key  3 now_ms
SELECT count(*) FROM il_waiter WHERE tenant = ?1 AND key = ?2 AND drop_ms > ?3 AND verdict = '';
