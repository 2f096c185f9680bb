-- run_log_add: a new piece of a log.
-- params:  1 run  2 offset  3 data
INSERT INTO il_run_log (run, offset, data) VALUES (?1, ?2, ?3);
