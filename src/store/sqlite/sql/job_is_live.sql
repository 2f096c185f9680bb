-- job_is_live: is the job live?
-- params:  1 seq
-- returns: 0 or 1
SELECT EXISTS (SELECT 1 FROM il_live WHERE seq = ?1);
