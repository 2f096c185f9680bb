-- job_done_of_id: an ended job by its id.
-- params:  1 tenant  2 id
-- returns: seq, queue, id, priority, max_attempts, is_parent, n_children, created_ms, unique_until_ms, parent, parent_id,
--          grp, unique_key, last, attempt, token, flags, progress, run_at_ms, started_ms, worker, error, message,
--          state, purge_at_ms, completed_ms
SELECT j.seq, j.queue, j.id, j.priority, j.max_attempts, j.is_parent, j.n_children, j.created_ms, j.unique_until_ms,
       j.parent, j.parent_id, j.grp, j.unique_key, d.last, d.attempt, d.token, d.flags, d.progress, d.run_at_ms, d.started_ms, d.worker, d.error,
       d.message, d.state, d.purge_at_ms, d.completed_ms
  FROM il_job j JOIN il_done d ON d.queue = j.queue AND d.state IN (4, 5, 6) AND d.seq = j.seq
 WHERE j.tenant = ?1 AND j.id = ?2;
