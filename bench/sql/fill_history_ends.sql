-- fill_history_ends: and how they ended.
INSERT INTO il_done (queue, state, seq, purge_at_ms, last, attempt, token, flags, progress, run_at_ms, started_ms,
                     completed_ms, worker, error, message, result)
SELECT 1, 4, seq, 9000000000000 + seq, 1, 1, seq, 0, -1, 1, 1, 1, 'worker-1', '', '', x'' FROM il_job
 WHERE seq > 1000000;
