-- job_group_count: jobs of a group that run, or are ready to be claimed, without one of them; counted up to a limit.
-- params:  1 queue  2 grp  3 seq that does not count  4 limit
-- returns: the number
SELECT count(*)
  FROM (SELECT 1 FROM il_live WHERE queue = ?1 AND grp = ?2 AND lane IN (0, 8 * ?1 + 2) AND seq <> ?3 LIMIT ?4);
