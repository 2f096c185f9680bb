-- audit_list_act: of one kind.
-- params:  1 before  2 limit  3 act
-- returns: as audit_list
SELECT seq, at_ms, tenant, who, act, what, reason, outcome, details
FROM il_audit WHERE act = ?3 AND seq < ?1 ORDER BY seq DESC LIMIT ?2;
