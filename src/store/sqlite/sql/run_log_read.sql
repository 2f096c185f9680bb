-- run_log_read: the pieces that have something between two offsets. No piece is longer than 65,536 bytes.
-- params:  1 run  2 from  3 to
-- returns: offset, data
SELECT offset, data FROM il_run_log
 WHERE run = ?1 AND offset > ?2 - 65536 AND offset < ?3
 ORDER BY offset;
