-- overdue: would a sweep find something to do? Three looks at the start of an index.
-- params:  1 now_ms  2 last minute to forget
SELECT EXISTS (SELECT 1 FROM il_lease WHERE expires_ms <= ?1)
    OR EXISTS (SELECT 1 FROM il_waiter)
    OR EXISTS (SELECT 1 FROM il_ended WHERE minute <= ?2);
