-- job_group_last: the last job in claiming order of a group's jobs that can be claimed.
-- params:  1 queue  2 grp
-- returns: seq, priority, run_at_ms
SELECT seq, ord, at FROM il_live
 WHERE queue = ?1 AND grp = ?2 AND lane = 8 * ?1 + 2
 ORDER BY queue DESC, grp DESC, lane DESC, ord DESC, at DESC, seq DESC LIMIT 1;
