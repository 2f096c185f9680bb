-- lease_due: keys with an overdue lease, the longest overdue first. Costs what is overdue: the index
-- on expires_ms is read from its start.
-- params:  1 now_ms  2 limit
-- returns: tenant, key
SELECT tenant, key FROM il_lease WHERE expires_ms <= ?1 ORDER BY expires_ms LIMIT ?2;
