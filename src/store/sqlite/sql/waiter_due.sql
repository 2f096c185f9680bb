-- waiter_due: keys with a dead waiter.
-- params:  1 now_ms  2 limit
-- returns: tenant, key
SELECT tenant, key FROM il_waiter WHERE drop_ms <= ?1 ORDER BY drop_ms LIMIT ?2;
