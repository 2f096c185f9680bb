-- job_result: the result of an ended job.
-- params:  1 queue  2 state  3 seq
-- returns: result
SELECT result FROM il_done WHERE queue = ?1 AND state = ?2 AND seq = ?3;
