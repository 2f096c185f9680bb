-- raw_job_mark: a worker takes a job.
-- params:  1 no  2 worker  3 now
UPDATE job SET status = 1, worker = ?2, attempts = attempts + 1, updated_at = ?3 WHERE no = ?1 AND status = 0;
