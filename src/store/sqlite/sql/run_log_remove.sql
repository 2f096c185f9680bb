-- run_log_remove: the log of a run that is purged.
-- params:  1 run
DELETE FROM il_run_log WHERE run = ?1;
