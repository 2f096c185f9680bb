-- audit_list_both: of one kind, of one tenant.
-- params:  1 before  2 limit  3 tenant  4 act
-- returns: as audit_list
SELECT seq, at_ms, tenant, who, act, what, reason, outcome, details
FROM il_audit WHERE tenant = ?3 AND act = ?4 AND seq < ?1 ORDER BY seq DESC LIMIT ?2;
