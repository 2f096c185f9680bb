-- job_live_of_id: a live job by its id.
-- params:  1 tenant  2 id
-- returns: seq, queue, id, priority, max_attempts, is_parent, n_children, created_ms, unique_until_ms, parent, parent_id,
--          grp, unique_key, last, attempt, token, flags, progress, run_at_ms, started_ms, worker, error, message,
--          lane, ord, lease_ms, updated_ms
SELECT j.seq, j.queue, j.id, j.priority, j.max_attempts, j.is_parent, j.n_children, j.created_ms, j.unique_until_ms,
       j.parent, j.parent_id, j.grp, j.unique_key, l.last, l.attempt, l.token, l.flags, l.progress, l.run_at_ms, l.started_ms, l.worker, l.error,
       l.message, l.lane, l.ord, l.lease_ms, l.updated_ms
  FROM il_job j JOIN il_live l ON l.seq = j.seq
 WHERE j.tenant = ?1 AND j.id = ?2;
