-- audit_add
-- params:  1 at_ms  2 tenant  3 who  4 act  5 what  6 reason  7 outcome  8 details
INSERT INTO il_audit (at_ms, tenant, who, act, what, reason, outcome, details) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8);
