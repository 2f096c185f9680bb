-- run_detail_add: a row for a run that something is known of, unless there is one: the purge goes by it. One that is there is locked, not changed: whoever
-- purges either is done with it before we look, or passes it over until we are done; so nothing is left behind that no purge finds.
-- params:  1 tenant  2 run  3 created_at_ms
INSERT INTO @schema.run_detail (tenant, run, pipeline, version, node, parameters, renewals, renewed_at_ms, created_at_ms)
VALUES ($1, $2, '', '', '', '', 0, 0, $3)
ON CONFLICT (tenant, run) DO UPDATE SET run = excluded.run WHERE false;
