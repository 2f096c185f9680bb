-- run_detail_add: a row for a run that something is known of, unless there is one: the purge goes by it. See il_run_detail.
-- params:  1 tenant  2 run  3 created_at_ms
INSERT INTO il_run_detail (tenant, run, pipeline, version, node, parameters, renewals, renewed_at_ms, created_at_ms)
VALUES (?1, ?2, '', '', '', '', 0, 0, ?3)
ON CONFLICT (tenant, run) DO NOTHING;
