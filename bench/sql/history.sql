-- history.sql: a long history, written straight into the tables of a SQLite store, which is much
-- faster than pushing and finishing jobs.

-- name: fill_history
-- Finished jobs of queue 1, as the engine would have left them. Their ids are version 7 UUIDs that
-- sort before any created now; their numbers start after 1,000,000.
-- params:  1 how many
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO il_job (seq, queue, tenant, id, priority, max_attempts, is_parent, n_children,
                    created_ms, unique_until_ms, payload)
SELECT 1000000 + i, 1, 'default',
       printf('01000000-%04x-7%03x-8000-%012x', i / 4096, i % 4096, i), 0, 5, 0, 0, 1, 0,
       zeroblob(100)
  FROM n;

-- name: fill_history_ends
-- How they ended.
INSERT INTO il_done (queue, state, seq, purge_at_ms, last, attempt, token, flags, progress,
                     run_at_ms, started_ms, completed_ms, worker, error, message, result)
SELECT 1, @JOB_COMPLETED@, seq, 9000000000000 + seq, @LAST_FINISHED@, 1, seq, 0, -1, 1, 1, 1,
       'worker-1', '', '', x''
  FROM il_job
 WHERE seq > 1000000;

-- name: fill_history_ticket
-- New numbers continue after theirs.
-- params:  1 how many
UPDATE il_state SET ticket = 1000000 + ?1;
