-- result.sql: statements on the history of invariants, the same for both engines.

-- part: columns
id, name, severity, outcome, n_new, n_known, offenders, not_needed, runs, error, started_at_ms,
    duration_ms

-- part: visible
substr(name, 1, length(CAST($5 AS text))) = CAST($5 AS text)

-- name: check_result_add
-- params:  1 tenant  2.. the columns
INSERT INTO check_result (tenant, @columns@)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);

-- name: check_result_list
-- Newest first, from the one before (started_at_ms, id) on; only names with this prefix.
-- params:  1 tenant  2 started_at_ms  3 id  4 limit  5 prefix
-- returns: the columns
SELECT @columns@ FROM check_result
WHERE tenant = $1 AND (started_at_ms, id) < ($2, $3) AND @visible@
ORDER BY started_at_ms DESC, id DESC LIMIT $4;

-- name: check_result_list_of
-- Those of one invariant; with limit 1 its last result.
-- params:  1 tenant  2 started_at_ms  3 id  4 limit  5 prefix  6 name
-- returns: the columns
SELECT @columns@ FROM check_result
WHERE tenant = $1 AND name = $6 AND (started_at_ms, id) < ($2, $3) AND @visible@
ORDER BY started_at_ms DESC, id DESC LIMIT $4;

-- name: check_result_get
-- params:  1 tenant  2 id
-- returns: the columns
SELECT @columns@ FROM check_result WHERE tenant = $1 AND id = $2;

-- name: check_result_last
-- What the last result says about the data; one that could not run says nothing.
-- params:  1 tenant  2 name
-- returns: outcome
-- mutant check_error_decides: SELECT outcome FROM check_result WHERE tenant = $1 AND name = $2
SELECT outcome FROM check_result WHERE tenant = $1 AND name = $2 AND outcome <> 'error'
ORDER BY started_at_ms DESC, id DESC LIMIT 1;

-- name: check_result_broken
-- The invariants of all tenants that are broken by their last result, in the same sense.
-- returns: tenant, name
SELECT r.tenant, r.name FROM check_result r WHERE r.outcome = 'broken' AND NOT EXISTS (
    SELECT 1 FROM check_result n WHERE n.tenant = r.tenant AND n.name = r.name
        AND n.outcome <> 'error' AND (n.started_at_ms, n.id) > (r.started_at_ms, r.id));

-- name: check_result_purge
-- Some of those of all tenants that began before a time, so that no transaction is long. Two
-- servers that purge at once delete each row once; neither depends on what it deleted.
-- params:  1 before, ms  2 limit
DELETE FROM check_result WHERE (tenant, id) IN (
    SELECT tenant, id FROM check_result WHERE started_at_ms < $1 ORDER BY started_at_ms LIMIT $2);
