-- audit_purge: the oldest of what is older, a thousand at most.
-- params:  1 older than, in ms since 1970
-- returns: a row for each that is gone
DELETE FROM il_audit WHERE seq IN (SELECT seq FROM il_audit WHERE at_ms < ?1 ORDER BY at_ms LIMIT 1000)
RETURNING seq;
