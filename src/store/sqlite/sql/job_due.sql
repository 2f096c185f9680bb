-- job_due: scheduled jobs of a queue whose time has come.
-- params:  1 lane  2 wall_ms  3 rows
-- returns: seq
SELECT seq FROM il_live WHERE lane = ?1 AND ord <= ?2 ORDER BY lane, ord, at, seq LIMIT ?3;
