-- raw_job_remove: a finished job goes into the history; the second half.
-- params:  1 id
DELETE FROM job WHERE id = ?1;
