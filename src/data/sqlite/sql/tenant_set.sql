-- tenant_set
-- params:  1 id  2 name  3..12 limits
-- returns: its id if it is there
UPDATE il_tenant
SET name = ?2, requests_per_second = ?3, burst = ?4, waiters = ?5, streams = ?6, locks = ?7, jobs = ?8,
    triggers_per_minute = ?9, triggers_per_hour = ?10, runs = ?11, runs_per_day = ?12
WHERE id = ?1
RETURNING id;
