-- queue.sql: queues: settings, totals, groups, unique keys, rates and workers.
--
-- A transaction reads the row of a queue, with its totals and job counts, once, changes it in
-- memory and writes it before the commit, together with the jobs that it counts. There is no other
-- writer meanwhile (transaction.sql). Lanes: enum il__job_lane.

-- ---- queues -------------------------------------------------------------------------------------

-- part: queue_columns
-- The settings in the order of il_queue_opts, the totals in that of struct il__totals.
no, tenant, name, strategy, max_attempts, lease_ms, backoff_ms, backoff_max_ms, group_limit,
rate_n, rate_ms, keep_ms, keep_failed_ms, processing_timeout_ms, executing_timeout_ms, paused,
reason, pushed, claimed, completed, failed_attempts, failed, snoozed, cancelled, recovered,
duplicates, stale, n_scheduled, n_ready, n_running, n_failed

-- name: queue_load
-- A queue by its name.
-- params:  1 tenant  2 name
-- returns: queue_columns
SELECT @queue_columns@
  FROM il_queue WHERE tenant = ?1 AND name = ?2;

-- name: queue_load_no
-- The same by its number.
-- params:  1 no
-- returns: queue_columns
SELECT @queue_columns@
  FROM il_queue WHERE no = ?1;

-- name: queue_list
-- A page of the tenant's queues, by name.
-- params:  1 tenant  2 first name  3 end of the prefix  4 name after which the page begins  5 rows
-- returns: queue_columns
SELECT @queue_columns@
  FROM il_queue
 WHERE tenant = ?1 AND name >= max(?2, ?4) AND name < ?3 AND name <> ?4
 ORDER BY name LIMIT ?5;

-- name: queue_numbers
-- The queues of a tenant, for a listing of all its jobs.
-- params:  1 tenant
-- returns: no
SELECT no FROM il_queue WHERE tenant = ?1;

-- name: queue_add
-- Create a queue; its number is the rowid. Settings and totals follow with queue_save.
-- params:  1 tenant  2 name
INSERT INTO il_queue (tenant, name, strategy, max_attempts, lease_ms, backoff_ms, backoff_max_ms,
                      group_limit, rate_n, rate_ms, keep_ms, keep_failed_ms, processing_timeout_ms,
                      executing_timeout_ms, paused, reason, pushed, claimed, completed,
                      failed_attempts, failed, snoozed, cancelled, recovered, duplicates, stale,
                      n_scheduled, n_ready, n_running, n_failed)
VALUES (?1, ?2, @QUEUE_PESSIMISTIC@, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0);

-- name: queue_save
-- Settings of a queue, once per transaction that changed them.
-- params:  1 no  2..13 the settings in the order of il_queue_opts  14 paused  15 reason
UPDATE il_queue
   SET strategy = ?2, max_attempts = ?3, lease_ms = ?4, backoff_ms = ?5, backoff_max_ms = ?6,
       group_limit = ?7, rate_n = ?8, rate_ms = ?9, keep_ms = ?10, keep_failed_ms = ?11,
       processing_timeout_ms = ?12, executing_timeout_ms = ?13, paused = ?14, reason = ?15
 WHERE no = ?1;

-- name: queue_totals
-- Totals and jobs by state of a queue, once per transaction that changed them.
-- params:  1 no  2..11 the totals in the order of struct il__totals  12..15 jobs by state
UPDATE il_queue
   SET pushed = ?2, claimed = ?3, completed = ?4, failed_attempts = ?5, failed = ?6, snoozed = ?7,
       cancelled = ?8, recovered = ?9, duplicates = ?10, stale = ?11, n_scheduled = ?12,
       n_ready = ?13, n_running = ?14, n_failed = ?15
 WHERE no = ?1;

-- name: queue_depth
-- What the row of a queue does not say about its jobs. The smallest run_at_ms of the ready ones is
-- searched priority by priority, of which there are at most 2,001: the first entry of each in the
-- index is its oldest.
-- params:  1 queue  2 wall_ms  3 seen_ms: workers that claimed after it  4 due jobs to count
--          5 workers to count
-- returns: due, but still scheduled; smallest run_at_ms of these, and of the ready ones, NULL
--          without any; workers
SELECT (SELECT count(*) FROM (SELECT 1 FROM il_live
                               WHERE lane = @LANE_SCHEDULED@ + 8 * ?1 AND ord <= ?2 LIMIT ?4)),
       (SELECT min(ord) FROM il_live WHERE lane = @LANE_SCHEDULED@ + 8 * ?1 AND ord <= ?2),
       (WITH RECURSIVE first (lane, ord) AS (
            SELECT k.lane, (SELECT min(l.ord) FROM il_live l WHERE l.lane = k.lane)
              FROM (SELECT @LANE_READY@ + 8 * ?1 AS lane
                    UNION ALL
                    SELECT @LANE_BLOCKED@ + 8 * ?1) AS k
            UNION ALL
            SELECT f.lane,
                   (SELECT min(l.ord) FROM il_live l WHERE l.lane = f.lane AND l.ord > f.ord)
              FROM first f WHERE f.ord IS NOT NULL)
        SELECT min((SELECT min(l.at) FROM il_live l WHERE l.lane = f.lane AND l.ord = f.ord))
          FROM first f WHERE f.ord IS NOT NULL),
       (SELECT count(*) FROM (SELECT 1 FROM il_worker WHERE queue = ?1 AND seen_ms > ?3 LIMIT ?5));

-- name: queue_regroup
-- The group limit of a queue has changed: in each group the first (limit - running) READY jobs in
-- claiming order wait in the READY lane, the others in the BLOCKED one.
-- params:  1 queue  2 limit
UPDATE il_live
   SET lane = p.lane
  FROM (SELECT w.seq AS seq,
               8 * ?1 + iif(w.place <= ?2 - (SELECT count(*) FROM il_live r
                                              WHERE r.queue = ?1 AND r.grp = w.grp
                                                AND r.lane = @LANE_CLAIMED@),
                            @LANE_READY@, @LANE_BLOCKED@) AS lane
          FROM (SELECT seq, grp, row_number() OVER (PARTITION BY grp ORDER BY ord, at, seq) AS place
                  FROM il_live
                 WHERE queue = ?1 AND grp IS NOT NULL
                   AND lane IN (@LANE_READY@ + 8 * ?1, @LANE_BLOCKED@ + 8 * ?1)) AS w) AS p
 WHERE il_live.seq = p.seq AND il_live.lane <> p.lane;

-- ---- unique keys --------------------------------------------------------------------------------

-- name: unique_find
-- Which job took a unique key last?
-- params:  1 queue  2 key
-- returns: seq
SELECT seq FROM il_unique WHERE queue = ?1 AND key = ?2;

-- name: unique_set
-- A job takes a unique key that is free.
-- params:  1 queue  2 key  3 seq
INSERT INTO il_unique (queue, key, seq) VALUES (?1, ?2, ?3)
    ON CONFLICT (queue, key) DO UPDATE SET seq = excluded.seq;

-- name: unique_remove
-- A job gives up its unique key, unless another one has taken it since.
-- params:  1 queue  2 key  3 seq
DELETE FROM il_unique WHERE queue = ?1 AND key = ?2 AND seq = ?3;

-- ---- rates --------------------------------------------------------------------------------------

-- name: start_add
-- Jobs of a queue with a rate were claimed.
-- params:  1 queue  2 at_ms  3 how many
INSERT INTO il_start (queue, at_ms, n) VALUES (?1, ?2, ?3)
    ON CONFLICT (queue, at_ms) DO UPDATE SET n = n + excluded.n;

-- name: start_count
-- How many claims of a queue the rate counts.
-- params:  1 queue
-- returns: the number
SELECT coalesce(sum(n), 0) FROM il_start WHERE queue = ?1;

-- name: start_list
-- Claims of a queue that the rate counts, oldest first.
-- params:  1 queue
-- returns: at_ms, how many
SELECT at_ms, n FROM il_start WHERE queue = ?1 ORDER BY at_ms;

-- name: start_purge
-- Forget claims that the rate no longer counts.
-- params:  1 queue  2 lease time: those at or before it
DELETE FROM il_start WHERE queue = ?1 AND at_ms <= ?2;

-- ---- workers ------------------------------------------------------------------------------------

-- name: worker_load
-- A worker's last claim.
-- params:  1 queue  2 worker
-- returns: claim, seen_ms, jobs
SELECT claim, seen_ms, jobs FROM il_worker WHERE queue = ?1 AND worker = ?2;

-- name: worker_save
-- A worker has claimed.
-- params:  1 queue  2 worker  3 claim  4 seen_ms  5 jobs
INSERT INTO il_worker (queue, worker, claim, seen_ms, jobs) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (queue, worker) DO UPDATE
   SET claim = excluded.claim, seen_ms = excluded.seen_ms, jobs = excluded.jobs;

-- name: worker_old
-- Workers that have not claimed for long, oldest first.
-- params:  1 seen_ms, the newest  2 rows
-- returns: queue, worker
SELECT queue, worker FROM il_worker WHERE seen_ms <= ?1 ORDER BY seen_ms LIMIT ?2;

-- name: worker_remove
-- Forget a worker.
-- params:  1 queue  2 worker
DELETE FROM il_worker WHERE queue = ?1 AND worker = ?2;
