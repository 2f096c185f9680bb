-- raw_job_move: a finished job goes into the history; the first half.
-- params:  1 id  2 now  3 worker
INSERT INTO history (id, worker, attempts, created_at, completed_at, payload)
SELECT id, worker, attempts, created_at, ?2, payload FROM job WHERE id = ?1 AND status = 1 AND worker = ?3;
