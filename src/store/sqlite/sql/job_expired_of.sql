-- job_expired_of: claims of one queue that have run out. Passes over those of other queues, which sweeps soon recover.
-- params:  1 now_ms  2 rows  3 queue
-- returns: seq
SELECT seq FROM il_live WHERE lane = 0 AND ord <= ?1 AND queue = ?3 ORDER BY lane, ord, at, seq LIMIT ?2;
