-- audit_list_tenant: of one tenant.
-- params:  1 before  2 limit  3 tenant
-- returns: as audit_list
SELECT seq, at_ms, tenant, who, act, what, reason, outcome, details
FROM @schema.audit WHERE tenant = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2;
