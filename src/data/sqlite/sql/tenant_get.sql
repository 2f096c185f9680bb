-- tenant_get
-- params:  1 id
-- returns: id, name, limits, created_at_ms
SELECT id, name, requests_per_second, burst, waiters, streams, locks, jobs,
       triggers_per_minute, triggers_per_hour, runs, runs_per_day, created_at_ms
FROM il_tenant WHERE id = ?1;
