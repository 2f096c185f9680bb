-- run_remove: purge a run; its log goes with run_log_remove.
-- params:  1 seq
DELETE FROM il_run WHERE seq = ?1;
