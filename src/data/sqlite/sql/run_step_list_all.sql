-- run_step_list_all: steps of a run with their output, in order.
-- params:  1 tenant  2 run  3 limit
-- returns: tenant, run, n, attempt, step, type, state, level, started_at_ms, ended_at_ms, exit_code, out_bytes, err_bytes, error, details, out, err
SELECT tenant, run, n, attempt, step, type, state, level, started_at_ms, ended_at_ms, exit_code, out_bytes, err_bytes, error, details, out, err
FROM il_run_step WHERE tenant = ?1 AND run = ?2 ORDER BY n, attempt LIMIT ?3;
