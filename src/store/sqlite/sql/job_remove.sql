-- job_remove: purge a job; il_live or il_done has been told before.
-- params:  1 seq
DELETE FROM il_job WHERE seq = ?1;
