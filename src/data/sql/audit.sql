-- audit.sql: the audit log of administrative acts.

-- part: audit_columns
at_ms, tenant, who, act, what, reason, outcome, details

-- name: audit_add
-- Add an entry to the audit log.
-- params:  1 at_ms  2 tenant  3 who  4 act  5 what  6 reason  7 outcome  8 details
INSERT INTO @schema.audit (@audit_columns@)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: audit_list
-- A page of the audit log, newest first.
-- params:  1 before  2 limit
-- returns: seq, audit_columns
SELECT seq, @audit_columns@
FROM @schema.audit WHERE seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: audit_list_tenant
-- The same for one tenant.
-- params:  1 before  2 limit  3 tenant
-- returns: seq, audit_columns
SELECT seq, @audit_columns@
FROM @schema.audit WHERE tenant = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: audit_list_act
-- The same for one act.
-- params:  1 before  2 limit  3 act
-- returns: seq, audit_columns
SELECT seq, @audit_columns@
FROM @schema.audit WHERE act = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: audit_list_both
-- The same for one tenant and one act.
-- params:  1 before  2 limit  3 tenant  4 act
-- returns: seq, audit_columns
SELECT seq, @audit_columns@
FROM @schema.audit WHERE tenant = $3 AND act = $4 AND seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: audit_purge
-- Delete the oldest entries, at most a thousand.
-- params:  1 older than, in ms since 1970
-- returns: a row for each that was deleted
DELETE FROM @schema.audit
WHERE seq IN (SELECT seq FROM @schema.audit
              WHERE at_ms < $1 ORDER BY at_ms LIMIT 1000)
RETURNING seq;
