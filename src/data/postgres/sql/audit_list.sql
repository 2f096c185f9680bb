-- audit_list: newest first.
-- params:  1 before  2 limit
-- returns: seq, at_ms, tenant, who, act, what, reason, outcome, details
SELECT seq, at_ms, tenant, who, act, what, reason, outcome, details
FROM @schema.audit WHERE seq < $1 ORDER BY seq DESC LIMIT $2;
