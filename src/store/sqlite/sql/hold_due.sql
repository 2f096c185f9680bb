-- hold_due: the key of the lease or waiter that is overdue longest; of equal ones a lease, by tenant and key, then a waiter,
-- by ticket. Both indexes are read from their start, in the order that they have.
-- params:  1 now_ms
-- returns: tenant, key
SELECT tenant, key FROM (
    SELECT * FROM (SELECT tenant, key, expires_ms AS due_ms, 0 AS waits FROM il_lease
                    WHERE expires_ms <= ?1 ORDER BY expires_ms, tenant, key LIMIT 1)
    UNION ALL
    SELECT * FROM (SELECT tenant, key, drop_ms, 1 FROM il_waiter
                    WHERE drop_ms <= ?1 ORDER BY drop_ms, ticket LIMIT 1))
 ORDER BY due_ms, waits LIMIT 1;
