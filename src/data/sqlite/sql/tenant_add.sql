-- tenant_add: unless there is one.
-- params:  1 id  2 name  3..12 limits  13 created_at_ms
-- returns: its id if it is new
INSERT INTO il_tenant (id, name, requests_per_second, burst, waiters, streams, locks, jobs,
                       triggers_per_minute, triggers_per_hour, runs, runs_per_day, created_at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT (id) DO NOTHING
RETURNING id;
