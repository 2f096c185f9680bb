-- tenant.sql: tenants and their limits.

-- part: tenant_columns
id, name, requests_per_second, burst, waiters, streams, locks, jobs, triggers_per_minute,
triggers_per_hour, runs, runs_per_day, bytes, created_at_ms

-- name: tenant_add
-- Add a tenant. An existing one stays.
-- params:  1 id  2 name  3..13 limits  14 created_at_ms
-- returns: its id if it is new
INSERT INTO @schema.tenant (@tenant_columns@)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: tenant_set
-- Change a tenant.
-- params:  1 id  2 name  3..13 limits
-- returns: its id if it exists
UPDATE @schema.tenant
SET name = $2, requests_per_second = $3, burst = $4, waiters = $5, streams = $6,
    locks = $7, jobs = $8, triggers_per_minute = $9, triggers_per_hour = $10,
    runs = $11, runs_per_day = $12, bytes = $13
WHERE id = $1
RETURNING id;

-- name: tenant_get
-- A tenant by its id.
-- params:  1 id
-- returns: tenant_columns
SELECT @tenant_columns@
FROM @schema.tenant WHERE id = $1;

-- name: tenant_list
-- A page of tenants by id.
-- params:  1 after  2 limit
-- returns: tenant_columns
SELECT @tenant_columns@
FROM @schema.tenant WHERE id > $1 ORDER BY id LIMIT $2;
