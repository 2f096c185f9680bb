-- finish: many finishes; see functions/queue_end.sql. The columns are those of enum column in rows.c.
-- params:  1 tenant  2 queue  3 ids  4 tokens  5 seqs  6 results or NULL  7 now_ms or NULL  8 wall_ms or NULL
SELECT i, out, data, data2, seq, token, created_ms, run_at_ms, started_ms, completed_ms, attempt, max_attempts, priority, progress, flags, queue,
       id, parent_id, grp, unique_key, worker, error, message
  FROM @schema.finish_rows($1, $2, $3, $4, $5, $6, $7, $8)
