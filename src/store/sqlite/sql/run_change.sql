-- run_change: everything of a run that can change. The caller has read the row in this transaction. One that has ended
-- (state > 2) is purged when it was kept long enough.
-- params:  1 seq  2 holder  3 fence  4 ticket  5 state  6 cancelled  7 finished  8 error  9 stage  10 progress
--          11 n_joined  12 log_bytes  13 ttl_ms  14 started_ms  15 ended_ms  16 updated_ms
UPDATE il_run
   SET holder = ?2, fence = ?3, ticket = ?4, state = ?5, cancelled = ?6, finished = ?7, error = ?8, stage = ?9,
       progress = ?10, n_joined = ?11, log_bytes = ?12, ttl_ms = ?13, started_ms = ?14, ended_ms = ?15,
       updated_ms = ?16, purge_ms = CASE WHEN ?5 > 2 THEN ?15 + keep_ms END
 WHERE seq = ?1;
