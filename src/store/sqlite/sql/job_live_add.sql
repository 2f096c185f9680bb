-- job_live_add: a job that is live: a new one, or one that was retried.
-- params:  1 seq  2 queue  3 lane  4 ord  5 at  6 last  7 attempt  8 token  9 flags  10 progress  11 run_at_ms
--          12 lease_ms  13 started_ms  14 updated_ms  15 worker  16 error  17 message  18 parent  19 grp
INSERT INTO il_live (seq, queue, lane, ord, at, last, attempt, token, flags, progress, run_at_ms, lease_ms, started_ms,
                     updated_ms, worker, error, message, parent, grp)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19);
