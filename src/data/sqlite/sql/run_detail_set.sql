-- run_detail_set: all of the row, so that repeating it changes nothing.
-- params:  1 tenant  2 run  3 pipeline  4 version  5 node  6 parameters  7 renewals  8 renewed_at_ms  9 created_at_ms
INSERT INTO il_run_detail (tenant, run, pipeline, version, node, parameters, renewals, renewed_at_ms, created_at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (tenant, run) DO UPDATE
          SET pipeline = excluded.pipeline, version = excluded.version, node = excluded.node, parameters = excluded.parameters,
              renewals = excluded.renewals, renewed_at_ms = excluded.renewed_at_ms, created_at_ms = excluded.created_at_ms;
