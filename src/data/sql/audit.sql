-- audit.sql: the audit log of administrative actions. Entries are never changed.

-- part: audit_columns
at_ms, tenant, who, action, what, reason, outcome, details

-- name: audit_add
-- Add an entry to the audit log. Race-free: it reads nothing, and the engine gives each entry a seq
-- of its own. On PostgreSQL an entry may become visible after one with a greater seq.
-- params:  1 at_ms  2 tenant  3 who  4 action  5 what  6 reason  7 outcome  8 details
INSERT INTO @schema.audit (@audit_columns@)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: audit_list
-- A page of the audit log, newest first. Race-free: each page is one snapshot, and seq never
-- changes, so pages repeat nothing. They lack what was committed later with a greater seq than
-- the cursor: the next listing has it.
-- params:  1 before  2 limit
-- returns: seq, audit_columns
SELECT seq, @audit_columns@
FROM @schema.audit WHERE seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: audit_list_tenant
-- The same for one tenant. Race-free: as audit_list.
-- params:  1 before  2 limit  3 tenant
-- returns: seq, audit_columns
SELECT seq, @audit_columns@
FROM @schema.audit WHERE tenant = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: audit_list_action
-- The same for one action. Race-free: as audit_list.
-- params:  1 before  2 limit  3 action
-- returns: seq, audit_columns
SELECT seq, @audit_columns@
FROM @schema.audit WHERE action = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: audit_list_both
-- The same for one tenant and one action. Race-free: as audit_list.
-- params:  1 before  2 limit  3 tenant  4 action
-- returns: seq, audit_columns
SELECT seq, @audit_columns@
FROM @schema.audit WHERE tenant = $3 AND action = $4 AND seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: audit_purge
-- Delete the oldest entries, at most a thousand. Race-free: of two purges that chose the same entry
-- one deletes it; the other waits, finds it gone and does not count it. Should PostgreSQL have to
-- break a deadlock of two, one fails and starts again in the next round.
-- params:  1 older than, in ms since 1970
-- returns: a row for each that was deleted
DELETE FROM @schema.audit
WHERE seq IN (SELECT seq FROM @schema.audit
              WHERE at_ms < $1 ORDER BY at_ms LIMIT 1000)
RETURNING seq;
