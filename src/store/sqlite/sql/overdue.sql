-- overdue: would a sweep find something to do? Three looks at the start of a tree.
-- params:  1 now_ms  2 ended_ms up to which
SELECT EXISTS (SELECT 1 FROM il_lease WHERE expires_ms <= ?1)
    OR EXISTS (SELECT 1 FROM il_waiter)
    OR (SELECT ended_ms FROM il_ended ORDER BY seq LIMIT 1) <= ?2;
