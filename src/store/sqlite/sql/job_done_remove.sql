-- job_done_remove: an ended job is retried, or purged.
-- params:  1 queue  2 state  3 seq
DELETE FROM il_done WHERE queue = ?1 AND state = ?2 AND seq = ?3;
