-- job.sql: jobs. il_job has what never changes, il_live where a live job waits or who runs it,
-- il_done how a job ended.
--
-- A claim, which finds jobs and marks them, and an end, which compares the token and moves the job,
-- are one write transaction each, so the job cannot be taken in between (transaction.sql). Lanes:
-- enum il__job_lane.

-- part: job_columns
j.seq, j.queue, j.id, j.priority, j.max_attempts, j.is_parent, j.n_children, j.created_ms,
j.unique_until_ms, j.parent, j.parent_id, j.grp, j.unique_key

-- part: live_columns
@job_columns@,
l.last, l.attempt, l.token, l.flags, l.progress, l.run_at_ms, l.started_ms, l.worker, l.error,
l.message, l.lane, l.ord, l.lease_ms, l.updated_ms

-- part: done_columns
@job_columns@,
d.last, d.attempt, d.token, d.flags, d.progress, d.run_at_ms, d.started_ms, d.worker, d.error,
d.message, d.state, d.purge_at_ms, d.completed_ms

-- part: ended
@JOB_COMPLETED@, @JOB_FAILED@, @JOB_CANCELLED@

-- part: child_of_live
SELECT 1 FROM il_job j JOIN il_live p ON p.seq = j.parent WHERE j.seq = d.seq

-- ---- one job ------------------------------------------------------------------------------------

-- name: job_live
-- A live job by its number.
-- params:  1 seq
-- returns: live_columns
SELECT @live_columns@
  FROM il_job j JOIN il_live l ON l.seq = j.seq
 WHERE j.seq = ?1;

-- name: job_live_of_id
-- A live job by its id.
-- params:  1 tenant  2 id
-- returns: live_columns
SELECT @live_columns@
  FROM il_job j JOIN il_live l ON l.seq = j.seq
 WHERE j.tenant = ?1 AND j.id = ?2;

-- name: job_done
-- An ended job by its number.
-- params:  1 seq
-- returns: done_columns
SELECT @done_columns@
  FROM il_job j JOIN il_done d ON d.queue = j.queue AND d.state IN (@ended@) AND d.seq = j.seq
 WHERE j.seq = ?1;

-- name: job_done_of_id
-- An ended job by its id.
-- params:  1 tenant  2 id
-- returns: done_columns
SELECT @done_columns@
  FROM il_job j JOIN il_done d ON d.queue = j.queue AND d.state IN (@ended@) AND d.seq = j.seq
 WHERE j.tenant = ?1 AND j.id = ?2;

-- name: job_is_live
-- Is the job live?
-- params:  1 seq
-- returns: 0 or 1
SELECT EXISTS (SELECT 1 FROM il_live WHERE seq = ?1);

-- name: job_payload
-- The payload of a job. Separate from the other columns, because it may be large.
-- params:  1 seq
-- returns: payload
SELECT payload FROM il_job WHERE seq = ?1;

-- name: job_result
-- The result of an ended job.
-- params:  1 queue  2 state  3 seq
-- returns: result
SELECT result FROM il_done WHERE queue = ?1 AND state = ?2 AND seq = ?3;

-- name: job_blobs
-- The payload and the result of a job, each if it is not too large, and their sizes. length() reads
-- the head of a row, and a CASE reads only what it returns: what is too large is not read.
-- params:  1 seq  2 state  3 bytes to read at most
-- returns: bytes of the payload, payload or NULL, bytes of the result (NULL = it has none), result
--          or NULL
SELECT length(j.payload), CASE WHEN length(j.payload) <= ?3 THEN j.payload END,
       length(d.result), CASE WHEN length(d.result) <= ?3 THEN d.result END
  FROM il_job j LEFT JOIN il_done d ON d.queue = j.queue AND d.state = ?2 AND d.seq = j.seq
 WHERE j.seq = ?1;

-- ---- changing -----------------------------------------------------------------------------------

-- name: job_add
-- A new job, unless its id exists: then nothing is changed.
-- params:  1 seq  2 queue  3 tenant  4 id  5 priority  6 max_attempts  7 is_parent  8 n_children
--          9 created_ms  10 unique_until_ms  11 parent  12 ordinal  13 parent_id  14 grp
--          15 unique_key  16 payload
INSERT INTO il_job (seq, queue, tenant, id, priority, max_attempts, is_parent, n_children,
                    created_ms, unique_until_ms, parent, ordinal, parent_id, grp, unique_key,
                    payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
    ON CONFLICT (tenant, id) DO NOTHING;

-- name: job_live_add
-- Add a live job: a new one, or one that was retried.
-- params:  1 seq  2 queue  3 lane  4 ord  5 at  6 last  7 attempt  8 token  9 flags  10 progress
--          11 run_at_ms  12 lease_ms  13 started_ms  14 updated_ms  15 worker  16 error  17 message
--          18 parent  19 grp
INSERT INTO il_live (seq, queue, lane, ord, at, last, attempt, token, flags, progress, run_at_ms,
                     lease_ms, started_ms, updated_ms, worker, error, message, parent, grp)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19);

-- name: job_live_save
-- What changes of a live job.
-- params:  1 seq  3 lane  4 ord  5 at  6 last  7 attempt  8 token  9 flags  10 progress
--          11 run_at_ms  12 lease_ms  13 started_ms  14 updated_ms  15 worker  16 error
--          17 message; 2 is not used
UPDATE il_live
   SET lane = ?3, ord = ?4, at = ?5, last = ?6, attempt = ?7, token = ?8, flags = ?9,
       progress = ?10, run_at_ms = ?11, lease_ms = ?12, started_ms = ?13, updated_ms = ?14,
       worker = ?15, error = ?16, message = ?17
 WHERE seq = ?1;

-- name: job_live_remove
-- A job has ended, or is purged.
-- params:  1 seq
DELETE FROM il_live WHERE seq = ?1;

-- name: job_done_add
-- A job that has ended.
-- params:  1 queue  2 state  3 seq  4 purge_at_ms  5 last  6 attempt  7 token  8 flags  9 progress
--          10 run_at_ms  11 started_ms  12 completed_ms  13 worker  14 error  15 message  16 result
INSERT INTO il_done (queue, state, seq, purge_at_ms, last, attempt, token, flags, progress,
                     run_at_ms, started_ms, completed_ms, worker, error, message, result)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16);

-- name: job_done_unkeep
-- The parent of an ended job has ended, too: the job may now be purged.
-- params:  1 queue  2 state  3 seq  4 purge_at_ms
UPDATE il_done SET purge_at_ms = ?4 WHERE queue = ?1 AND state = ?2 AND seq = ?3;

-- name: job_done_remove
-- An ended job is retried, or purged.
-- params:  1 queue  2 state  3 seq
DELETE FROM il_done WHERE queue = ?1 AND state = ?2 AND seq = ?3;

-- name: job_remove
-- Purge a job; its row in il_live or il_done is already deleted.
-- params:  1 seq
DELETE FROM il_job WHERE seq = ?1;

-- ---- claiming -----------------------------------------------------------------------------------

-- name: job_ready
-- The next jobs of a queue in claiming order. (One UPDATE … RETURNING that finds and marks was
-- measured: a third slower, and it cannot hand out tokens in claiming order.)
-- params:  1 lane  2 rows
-- returns: live_columns, payload
SELECT @live_columns@, j.payload
  FROM il_live l JOIN il_job j ON j.seq = l.seq
 WHERE l.lane = ?1
 ORDER BY l.lane, l.ord, l.at, l.seq LIMIT ?2;

-- name: job_claim
-- Mark a READY job as running: compare-and-set. Changes one row, or none if it is no longer READY.
-- params:  1 seq  2 lane it was seen in  3 expires_ms  4 attempt  5 token  6 flags  7 lease_ms
--          8 started_ms, updated_ms  9 worker
UPDATE il_live
   SET lane = @LANE_CLAIMED@, ord = ?3, at = 0, last = @LAST_NONE@, attempt = ?4, token = ?5,
       flags = ?6, progress = -1, lease_ms = ?7, started_ms = ?8, updated_ms = ?8, worker = ?9,
       message = ''
 WHERE seq = ?1 AND lane = ?2;

-- name: job_due
-- Scheduled jobs of a queue whose time has come.
-- params:  1 lane  2 wall_ms  3 rows
-- returns: seq
SELECT seq FROM il_live WHERE lane = ?1 AND ord <= ?2 ORDER BY lane, ord, at, seq LIMIT ?3;

-- name: job_next_due
-- When the next scheduled job of a queue is due.
-- params:  1 lane
-- returns: run_at_ms, NULL without any
SELECT min(ord) FROM il_live WHERE lane = ?1;

-- name: job_any
-- Is there a job in one of two lanes?
-- params:  1 lane  2 lane
-- returns: 0 or 1
SELECT EXISTS (SELECT 1 FROM il_live WHERE lane = ?1)
    OR EXISTS (SELECT 1 FROM il_live WHERE lane = ?2);

-- name: job_expired_of
-- Expired claims of one queue. Skips those of other queues, which sweeps soon recover.
-- params:  1 now_ms  2 rows  3 queue
-- returns: seq
SELECT seq FROM il_live
 WHERE lane = @LANE_CLAIMED@ AND ord <= ?1 AND queue = ?3
 ORDER BY lane, ord, at, seq LIMIT ?2;

-- ---- groups -------------------------------------------------------------------------------------

-- name: job_lane
-- A READY job must now wait for its group, or no longer.
-- params:  1 seq  2 lane
UPDATE il_live SET lane = ?2 WHERE seq = ?1;

-- name: job_group_blocked
-- The first job in claiming order among those that wait for their group.
-- params:  1 queue  2 grp
-- returns: seq, priority, run_at_ms
SELECT seq, ord, at FROM il_live
 WHERE queue = ?1 AND grp = ?2 AND lane = @LANE_BLOCKED@ + 8 * ?1
 ORDER BY queue, grp, lane, ord, at, seq LIMIT 1;

-- name: job_group_count
-- How many jobs of a group are running or ready to be claimed, without one of them; counted up to a
-- limit.
-- params:  1 queue  2 grp  3 seq that does not count  4 limit
-- returns: the number
SELECT count(*)
  FROM (SELECT 1 FROM il_live
         WHERE queue = ?1 AND grp = ?2 AND lane IN (@LANE_CLAIMED@, @LANE_READY@ + 8 * ?1)
           AND seq <> ?3
         LIMIT ?4);

-- name: job_group_last
-- The last job in claiming order of a group's jobs that can be claimed.
-- params:  1 queue  2 grp
-- returns: seq, priority, run_at_ms
SELECT seq, ord, at FROM il_live
 WHERE queue = ?1 AND grp = ?2 AND lane = @LANE_READY@ + 8 * ?1
 ORDER BY queue DESC, grp DESC, lane DESC, ord DESC, at DESC, seq DESC LIMIT 1;

-- ---- parents and children -----------------------------------------------------------------------

-- name: job_children_pushed
-- How many children a live parent has: they are numbered, and not purged while it lives.
-- params:  1 parent
-- returns: ordinal of the last one, NULL without any
SELECT max(ordinal) FROM il_job WHERE parent = ?1;

-- name: job_children_count
-- The children of a parent, counted from their rows.
-- params:  1 parent
-- returns: all, completed, failed or cancelled
SELECT count(*), coalesce(sum(d.state = @JOB_COMPLETED@), 0),
       coalesce(sum(d.state IN (@JOB_FAILED@, @JOB_CANCELLED@)), 0)
  FROM il_job j LEFT JOIN il_done d ON d.queue = j.queue AND d.state IN (@ended@) AND d.seq = j.seq
 WHERE j.parent = ?1;

-- name: job_children_done
-- Ended children of a parent.
-- params:  1 parent
-- returns: queue, state, seq, unique_until_ms
SELECT d.queue, d.state, d.seq, j.unique_until_ms
  FROM il_job j JOIN il_done d ON d.queue = j.queue AND d.state IN (@ended@) AND d.seq = j.seq
 WHERE j.parent = ?1;

-- name: job_children_live
-- Live children of a parent, some or all of them, by seq.
-- params:  1 parent  2 rows
-- returns: seq
SELECT seq FROM il_live WHERE parent = ?1 ORDER BY parent, seq LIMIT ?2;

-- ---- listing ------------------------------------------------------------------------------------

-- name: job_list
-- A page of the jobs of a queue, newest first: from each lane and from each final state, each
-- through an index. Scheduled jobs whose time has come are READY: others are skipped, up to a
-- limit.
-- params:  1 queue  2 seq before which the page begins  3 states, as bits  4 wall_ms  5 rows
--          6 only seqs above this  7 scheduled jobs to look at
-- returns: seq
SELECT * FROM (
    SELECT * FROM (SELECT seq AS seq FROM il_live
                    WHERE queue = ?1 AND lane & 7 = @LANE_CLAIMED@ AND seq < ?2 AND seq > ?6
                      AND ?3 >> @JOB_RUNNING@ & 1
                    ORDER BY seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq FROM il_live
                    WHERE queue = ?1 AND lane & 7 = @LANE_READY@ AND seq < ?2 AND seq > ?6
                      AND ?3 >> @JOB_READY@ & 1
                    ORDER BY seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq FROM il_live
                    WHERE queue = ?1 AND lane & 7 = @LANE_PARENT@ AND seq < ?2 AND seq > ?6
                      AND ?3 >> @JOB_RUNNING@ & 1
                    ORDER BY seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq FROM il_live
                    WHERE queue = ?1 AND lane & 7 = @LANE_BLOCKED@ AND seq < ?2 AND seq > ?6
                      AND ?3 >> @JOB_READY@ & 1
                    ORDER BY seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq
                     FROM (SELECT seq, iif(ord <= ?4, @JOB_READY@, @JOB_SCHEDULED@) AS state
                             FROM il_live
                            WHERE queue = ?1 AND lane & 7 = @LANE_SCHEDULED@
                              AND seq < ?2 AND seq > ?6
                              AND (?3 >> @JOB_SCHEDULED@ & 1 OR ?3 >> @JOB_READY@ & 1)
                            ORDER BY seq DESC LIMIT ?7)
                    WHERE ?3 >> state & 1 LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq FROM il_done
                    WHERE queue = ?1 AND state = @JOB_COMPLETED@ AND seq < ?2 AND seq > ?6
                      AND ?3 >> @JOB_COMPLETED@ & 1
                    ORDER BY seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq FROM il_done
                    WHERE queue = ?1 AND state = @JOB_FAILED@ AND seq < ?2 AND seq > ?6
                      AND ?3 >> @JOB_FAILED@ & 1
                    ORDER BY seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq FROM il_done
                    WHERE queue = ?1 AND state = @JOB_CANCELLED@ AND seq < ?2 AND seq > ?6
                      AND ?3 >> @JOB_CANCELLED@ & 1
                    ORDER BY seq DESC LIMIT ?5))
 ORDER BY seq DESC LIMIT ?5;

-- name: job_list_floor
-- How far job_list has read among the scheduled jobs of a queue.
-- params:  1 queue  2 seq before which the page begins  3 jobs that it passed over at most
-- returns: the seq of the last one, nothing if it has looked at all
SELECT seq FROM il_live
 WHERE queue = ?1 AND lane & 7 = @LANE_SCHEDULED@
   AND seq < ?2 ORDER BY seq DESC LIMIT 1 OFFSET ?3 - 1;

-- ---- sweeping and purging -----------------------------------------------------------------------

-- name: job_overdue
-- Would a sweep find something to do?
-- params:  1 now_ms  2 wall_ms  3 lease time at or before which a worker's last claim is over
-- returns: 0 or 1
SELECT EXISTS (SELECT 1 FROM il_live WHERE lane = @LANE_CLAIMED@ AND ord <= ?1)
    OR EXISTS (SELECT 1 FROM il_done WHERE purge_at_ms <= ?2)
    OR EXISTS (SELECT 1 FROM il_cron WHERE next_ms <= ?2)
    OR EXISTS (SELECT 1 FROM il_worker WHERE seen_ms <= ?3);

-- name: job_expired
-- Expired claims of all queues.
-- params:  1 now_ms  2 rows
-- returns: seq
SELECT seq FROM il_live
 WHERE lane = @LANE_CLAIMED@ AND ord <= ?1 ORDER BY lane, ord, at, seq LIMIT ?2;

-- name: job_purge_due
-- Ended jobs past their retention.
-- params:  1 wall_ms  2 rows
-- returns: seq
SELECT seq FROM il_done WHERE purge_at_ms <= ?1 ORDER BY purge_at_ms, seq LIMIT ?2;

-- name: job_purgeable
-- Jobs of a queue that a purge may delete, by seq. RUNNING is never among the states; the children
-- of a live parent stay.
-- params:  1 queue  2 newest updated_ms  3 states, as bits  4 wall_ms  5 rows
-- returns: seq, whether it has ended
SELECT * FROM (
    SELECT * FROM (SELECT l.seq AS seq, 0 AS ended FROM il_live l
                    WHERE l.queue = ?1 AND (?3 >> @JOB_SCHEDULED@ & 1 OR ?3 >> @JOB_READY@ & 1)
                      AND ?3 >> iif(l.lane & 7 = @LANE_SCHEDULED@,
                                    iif(l.ord <= ?4, @JOB_READY@, @JOB_SCHEDULED@),
                                    iif(l.lane & 7 IN (@LANE_READY@, @LANE_BLOCKED@),
                                        @JOB_READY@, @JOB_RUNNING@)) & 1
                      AND l.updated_ms <= ?2
                      AND NOT EXISTS (SELECT 1 FROM il_live p WHERE p.seq = l.parent)
                    ORDER BY l.queue, l.seq LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT d.seq, 1 FROM il_done d
                    WHERE d.queue = ?1 AND d.state = @JOB_COMPLETED@ AND ?3 >> @JOB_COMPLETED@ & 1
                      AND d.completed_ms <= ?2
                      AND NOT EXISTS (@child_of_live@)
                    ORDER BY d.queue, d.state, d.seq LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT d.seq, 1 FROM il_done d
                    WHERE d.queue = ?1 AND d.state = @JOB_FAILED@ AND ?3 >> @JOB_FAILED@ & 1
                      AND d.completed_ms <= ?2
                      AND NOT EXISTS (@child_of_live@)
                    ORDER BY d.queue, d.state, d.seq LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT d.seq, 1 FROM il_done d
                    WHERE d.queue = ?1 AND d.state = @JOB_CANCELLED@ AND ?3 >> @JOB_CANCELLED@ & 1
                      AND d.completed_ms <= ?2
                      AND NOT EXISTS (@child_of_live@)
                    ORDER BY d.queue, d.state, d.seq LIMIT ?5))
 ORDER BY seq LIMIT ?5;
