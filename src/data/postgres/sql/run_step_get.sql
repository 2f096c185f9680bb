-- run_step_get: the attempts of one step with their output, in order.
-- params:  1 tenant  2 run  3 limit  4 step
-- returns: tenant, run, n, attempt, step, type, state, level, started_at_ms, ended_at_ms, exit_code, out_bytes, err_bytes, error, details, out, err
SELECT tenant, run, n, attempt, step, type, state, level, started_at_ms, ended_at_ms, exit_code, out_bytes, err_bytes, error, details, out, err
FROM @schema.run_step WHERE tenant = $1 AND run = $2 AND step = $4 ORDER BY n, attempt LIMIT $3;
