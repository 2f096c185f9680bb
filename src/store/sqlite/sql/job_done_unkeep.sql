-- job_done_unkeep: the parent of an ended job is live no longer: from now on it may be purged.
-- params:  1 queue  2 state  3 seq  4 purge_at_ms
UPDATE il_done SET purge_at_ms = ?4 WHERE queue = ?1 AND state = ?2 AND seq = ?3;
