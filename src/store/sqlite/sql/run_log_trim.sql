-- run_log_trim: the pieces that lie before an offset as a whole.
-- params:  1 run  2 offset
DELETE FROM il_run_log WHERE run = ?1 AND offset < ?2 AND offset + length(data) <= ?2;
