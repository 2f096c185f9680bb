-- claim: a claim that comes alone; see functions/queue_claim.sql. The columns are those of enum column in rows.c.
-- params:  1 the request  2 now_ms or NULL  3 wall_ms or NULL
SELECT i, out, data, data2, seq, token, created_ms, run_at_ms, started_ms, completed_ms, attempt, max_attempts, priority, progress, flags, queue,
       id, parent_id, grp, unique_key, worker, error, message
  FROM @schema.claim_rows($1, $2, $3, true)
