-- tenant_list: a page in order of ids.
-- params:  1 after  2 limit
-- returns: as tenant_get
SELECT id, name, requests_per_second, burst, waiters, streams, locks, jobs,
       triggers_per_minute, triggers_per_hour, runs, runs_per_day, created_at_ms
FROM @schema.tenant WHERE id > $1 ORDER BY id LIMIT $2;
