-- job_ready: the next jobs of a queue in claiming order. Found here and marked by job_claim in one BEGIN IMMEDIATE
-- transaction under the lock file, so nobody else can take them in between. (One UPDATE … RETURNING that finds and
-- marks was measured: a third slower, and it cannot hand out tokens in claiming order.)
-- params:  1 lane  2 rows
-- returns: as job_live, then payload
SELECT j.seq, j.queue, j.id, j.priority, j.max_attempts, j.is_parent, j.n_children, j.created_ms, j.unique_until_ms,
       j.parent, j.parent_id, j.grp, j.unique_key, l.last, l.attempt, l.token, l.flags, l.progress, l.run_at_ms, l.started_ms, l.worker, l.error,
       l.message, l.lane, l.ord, l.lease_ms, l.updated_ms, j.payload
  FROM il_live l JOIN il_job j ON j.seq = l.seq
 WHERE l.lane = ?1
 ORDER BY l.lane, l.ord, l.at, l.seq LIMIT ?2;
