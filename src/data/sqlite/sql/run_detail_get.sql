-- run_detail_get
-- params:  1 tenant  2 run
-- returns: tenant, run, pipeline, version, node, parameters, renewals, renewed_at_ms, created_at_ms
SELECT tenant, run, pipeline, version, node, parameters, renewals, renewed_at_ms, created_at_ms
FROM il_run_detail WHERE tenant = ?1 AND run = ?2 AND pipeline <> '';
