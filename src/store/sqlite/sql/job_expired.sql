-- job_expired: claims of all queues that have run out.
-- params:  1 now_ms  2 rows
-- returns: seq
SELECT seq FROM il_live WHERE lane = 0 AND ord <= ?1 ORDER BY lane, ord, at, seq LIMIT ?2;
