-- tenant.sql: tenants and their limits. They are never deleted, and their ids never change.

-- part: tenant_columns
id, name, requests_per_second, burst, waiters, streams, locks, jobs, triggers_per_minute,
triggers_per_hour, runs, runs_per_day, bytes, created_at_ms

-- name: tenant_add
-- Add a tenant. An existing one stays. Race-free: the primary key decides. Of two that add the same
-- id, the second waits for the first to end and adds a row only if that was rolled back.
-- params:  1 id  2 name  3..13 limits  14 created_at_ms
-- returns: its id if it is new
INSERT INTO @schema.tenant (@tenant_columns@)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: tenant_set
-- Change the given columns of a tenant. Race-free: nothing that was read before is written. A
-- second change waits for the row (on SQLite, to begin) and gets what the first has committed, so
-- changes of different values keep both; of the same value the last one wins.
-- params:  1 id  2 name  3..13 limits, -1 = keep  14 whether the name is given, else it is kept
-- returns: tenant_columns if it exists
UPDATE @schema.tenant
SET name = CASE WHEN $14 <> 0 THEN $2 ELSE name END,
    requests_per_second = coalesce(nullif($3, -1), requests_per_second),
    burst = coalesce(nullif($4, -1), burst),
    waiters = coalesce(nullif($5, -1), waiters),
    streams = coalesce(nullif($6, -1), streams),
    locks = coalesce(nullif($7, -1), locks),
    jobs = coalesce(nullif($8, -1), jobs),
    triggers_per_minute = coalesce(nullif($9, -1), triggers_per_minute),
    triggers_per_hour = coalesce(nullif($10, -1), triggers_per_hour),
    runs = coalesce(nullif($11, -1), runs),
    runs_per_day = coalesce(nullif($12, -1), runs_per_day),
    bytes = coalesce(nullif($13, -1), bytes)
WHERE id = $1
RETURNING @tenant_columns@;

-- name: tenant_get
-- A tenant by its id. Race-free: one row of one snapshot, and nothing computed from it is written
-- back (see tenant_set).
-- params:  1 id
-- returns: tenant_columns
SELECT @tenant_columns@
FROM @schema.tenant WHERE id = $1;

-- name: tenant_list
-- A page of tenants by id. Race-free: each page is one snapshot. Since rows stay in their places,
-- pages neither repeat nor skip a tenant that existed when the first one was read.
-- params:  1 after  2 limit
-- returns: tenant_columns
SELECT @tenant_columns@
FROM @schema.tenant WHERE id > $1 ORDER BY id LIMIT $2;
