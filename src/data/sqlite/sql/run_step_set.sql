-- run_step_set: all of the row, so that repeating it changes nothing. What has ended stays so: of a write whose outcome was unknown, an older one may come late.
-- params:  1 tenant  2 run  3 n  4 attempt  5 step  6 type  7 state  8 level  9 started_at_ms  10 ended_at_ms  11 exit_code  12 out_bytes  13 err_bytes  14 error
--          15 details  16 out  17 err
INSERT INTO il_run_step (tenant, run, n, attempt, step, type, state, level, started_at_ms, ended_at_ms, exit_code, out_bytes, err_bytes,
                         error, details, out, err)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
ON CONFLICT (tenant, run, n, attempt) DO UPDATE
          SET step = excluded.step, type = excluded.type, state = excluded.state, level = excluded.level,
              started_at_ms = excluded.started_at_ms, ended_at_ms = excluded.ended_at_ms, exit_code = excluded.exit_code, out_bytes = excluded.out_bytes,
              err_bytes = excluded.err_bytes, error = excluded.error, details = excluded.details, out = excluded.out,
              err = excluded.err
        WHERE il_run_step.ended_at_ms = 0 OR excluded.ended_at_ms <> 0;
