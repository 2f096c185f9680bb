-- job_live_save: what changes of a live job.
-- params:  1 seq  3 lane  4 ord  5 at  6 last  7 attempt  8 token  9 flags  10 progress  11 run_at_ms  12 lease_ms
--          13 started_ms  14 updated_ms  15 worker  16 error  17 message; 2 is not used
UPDATE il_live
   SET lane = ?3, ord = ?4, at = ?5, last = ?6, attempt = ?7, token = ?8, flags = ?9, progress = ?10, run_at_ms = ?11,
       lease_ms = ?12, started_ms = ?13, updated_ms = ?14, worker = ?15, error = ?16, message = ?17
 WHERE seq = ?1;
