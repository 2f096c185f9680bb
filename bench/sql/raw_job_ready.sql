-- raw_job_ready: the next jobs, oldest first.
-- params:  1 rows
-- returns: no, id, payload
SELECT no, id, payload FROM job WHERE status = 0 ORDER BY created_at LIMIT ?1;
