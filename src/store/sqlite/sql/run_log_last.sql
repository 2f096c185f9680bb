-- run_log_last: the newest piece of a log.
-- params:  1 run
-- returns: piece, its length
SELECT piece, length(data) FROM il_run_log WHERE run = ?1 ORDER BY offset DESC LIMIT 1;
