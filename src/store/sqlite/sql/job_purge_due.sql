-- job_purge_due: ended jobs that were kept long enough.
-- params:  1 wall_ms  2 rows
-- returns: seq
SELECT seq FROM il_done WHERE purge_at_ms <= ?1 ORDER BY purge_at_ms, seq LIMIT ?2;
