-- run_due: runs that were kept long enough, the first to go first. Costs what it returns: the index is read from its start.
-- params:  1 wall_ms  2 limit
-- returns: seq
SELECT seq FROM il_run WHERE purge_ms <= ?1 ORDER BY purge_ms, seq LIMIT ?2;
