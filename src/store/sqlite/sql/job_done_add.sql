-- job_done_add: a job that has ended.
-- params:  1 queue  2 state  3 seq  4 purge_at_ms  5 last  6 attempt  7 token  8 flags  9 progress  10 run_at_ms
--          11 started_ms  12 completed_ms  13 worker  14 error  15 message  16 result
INSERT INTO il_done (queue, state, seq, purge_at_ms, last, attempt, token, flags, progress, run_at_ms, started_ms,
                     completed_ms, worker, error, message, result)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16);
