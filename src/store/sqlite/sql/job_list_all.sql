-- job_list_all: the same for all queues of a tenant: by the order of pushes, passing over what is not
-- meant (the + keeps SQLite from going by the ids of the tenant and sorting them all).
-- params:  1 tenant  2 seq before which the page begins  3 states, as bits  4 wall_ms  5 rows
-- returns: seq, whether it has ended
SELECT j.seq, l.seq IS NULL
  FROM il_job j
  LEFT JOIN il_live l ON l.seq = j.seq
  LEFT JOIN il_done d ON l.seq IS NULL AND d.queue = j.queue AND d.state IN (4, 5, 6) AND d.seq = j.seq
 WHERE +j.tenant = ?1 AND j.seq < ?2
   AND 1 << coalesce(d.state, iif(l.lane & 7 = 1, iif(l.ord <= ?4, 2, 1), iif(l.lane & 7 IN (2, 4), 2, 3))) & ?3 <> 0
 ORDER BY j.seq DESC LIMIT ?5;
