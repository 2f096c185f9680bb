-- job_group_blocked: the first job in claiming order of those that wait for their group.
-- params:  1 queue  2 grp
-- returns: seq, priority, run_at_ms
SELECT seq, ord, at FROM il_live
 WHERE queue = ?1 AND grp = ?2 AND lane = 8 * ?1 + 4
 ORDER BY queue, grp, lane, ord, at, seq LIMIT 1;
