-- job_claim: mark a READY job as running: compare and set. Changes one row, or none when it is not READY any more.
-- params:  1 seq  2 lane it was seen in  3 expires_ms  4 attempt  5 token  6 flags  7 lease_ms  8 started_ms, updated_ms
--          9 worker
UPDATE il_live
   SET lane = 0, ord = ?3, at = 0, last = 0, attempt = ?4, token = ?5, flags = ?6, progress = -1, lease_ms = ?7,
       started_ms = ?8, updated_ms = ?8, worker = ?9, message = ''
 WHERE seq = ?1 AND lane = ?2;
