-- raw_job_push: a new job.
-- params:  1 id  2 now  3 payload
INSERT INTO job (id, status, attempts, created_at, updated_at, payload) VALUES (?1, 0, 0, ?2, ?2, ?3);
