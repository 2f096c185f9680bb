-- tenant_add: unless there is one.
-- params:  1 id  2 name  3..8 limits  9 created_at_ms
-- returns: its id if it is new
INSERT INTO il_tenant (id, name, requests_per_second, burst, waiters, streams, locks, jobs, created_at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (id) DO NOTHING
RETURNING id;
