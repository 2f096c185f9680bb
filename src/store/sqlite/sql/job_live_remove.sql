-- job_live_remove: a job has ended, or is purged.
-- params:  1 seq
DELETE FROM il_live WHERE seq = ?1;
