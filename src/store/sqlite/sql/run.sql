-- run.sql: runs, their logs, and the rates at which they may start.
--
-- Two starts cannot both find a key without a live run, nor both be the last one that a limit
-- allows: each looks and adds its row in one write transaction (transaction.sql), so the second
-- sees the run of the first.

-- ---- runs ---------------------------------------------------------------------------------------

-- part: run_row
-- A run, with the required columns of its lease or waiter, if it is live.
SELECT r.seq, r.id, r.key, r.holder, r.fence, r.ticket, r.state, r.cancelled, r.finished, r.error,
       r.trigger_, r.by_, r.meta, r.stage, r.progress, r.n_joined, r.log_bytes, r.ttl_ms, r.keep_ms,
       r.created_ms, r.started_ms, r.ended_ms, r.updated_ms,
       l.state, l.ttl_ms, l.expires_ms, l.reason, w.ttl_ms, w.drop_ms, w.deadline_ms
  FROM il_run r
  LEFT JOIN il_lease l ON l.tenant = r.tenant AND l.key = r.key AND l.fence = r.fence
                      AND r.state <= @RUN_RUNNING@
  LEFT JOIN il_waiter w ON w.ticket = r.ticket

-- name: run_of_id
-- A run by its id.
-- params:  1 tenant  2 id
-- returns: run_row
@run_row@
 WHERE r.tenant = ?1 AND r.id = ?2;

-- name: run_of_seq
-- The run of a lease or waiter.
-- params:  1 seq
-- returns: run_row
@run_row@
 WHERE r.seq = ?1;

-- name: run_live
-- The live runs of a key, oldest first. The cost is that of the live runs: the index holds nothing
-- else.
-- params:  1 tenant  2 key
-- returns: run_row
@run_row@
 WHERE r.tenant = ?1 AND r.key = ?2 AND r.state <= @RUN_RUNNING@
 ORDER BY r.seq;

-- name: run_list
-- Runs of a tenant that a page reads, newest first, of each state through the index. The caller
-- skips runs that are overdue or have another key.
-- params:  1 tenant  2 seq below which
--          3 states, 1 << state: live ones too where they may be shown as they will end  4 rows
--          5 rows of one state in which runs have ended
-- returns: seq, key
SELECT * FROM (
    SELECT * FROM (SELECT seq AS seq, key AS key FROM il_run
                    WHERE tenant = ?1 AND state = @RUN_PENDING@ AND seq < ?2
                      AND ?3 >> @RUN_PENDING@ & 1
                    ORDER BY seq DESC LIMIT ?4)
    UNION ALL
    SELECT * FROM (SELECT seq, key FROM il_run
                    WHERE tenant = ?1 AND state = @RUN_RUNNING@ AND seq < ?2
                      AND ?3 >> @RUN_RUNNING@ & 1
                    ORDER BY seq DESC LIMIT ?4)
    UNION ALL
    SELECT * FROM (SELECT seq, key FROM il_run
                    WHERE tenant = ?1 AND state = @RUN_COMPLETED@ AND seq < ?2
                      AND ?3 >> @RUN_COMPLETED@ & 1
                    ORDER BY seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq, key FROM il_run
                    WHERE tenant = ?1 AND state = @RUN_FAILED@ AND seq < ?2
                      AND ?3 >> @RUN_FAILED@ & 1
                    ORDER BY seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq, key FROM il_run
                    WHERE tenant = ?1 AND state = @RUN_CANCELLED@ AND seq < ?2
                      AND ?3 >> @RUN_CANCELLED@ & 1
                    ORDER BY seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq, key FROM il_run
                    WHERE tenant = ?1 AND state = @RUN_TIMEOUT@ AND seq < ?2
                      AND ?3 >> @RUN_TIMEOUT@ & 1
                    ORDER BY seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq, key FROM il_run
                    WHERE tenant = ?1 AND state = @RUN_INTERRUPTED@ AND seq < ?2
                      AND ?3 >> @RUN_INTERRUPTED@ & 1
                    ORDER BY seq DESC LIMIT ?5))
 ORDER BY seq DESC LIMIT ?4;

-- name: run_list_key
-- The same of a key.
-- params:  1 tenant  2 seq below which  3 states, 1 << state  4 rows
--          5 rows of one state in which runs have ended  6 key
-- returns: seq, key
SELECT * FROM (
    SELECT * FROM (SELECT seq AS seq, key AS key FROM il_run
                    WHERE tenant = ?1 AND key = ?6 AND state = @RUN_PENDING@ AND seq < ?2
                      AND ?3 >> @RUN_PENDING@ & 1
                    ORDER BY seq DESC LIMIT ?4)
    UNION ALL
    SELECT * FROM (SELECT seq, key FROM il_run
                    WHERE tenant = ?1 AND key = ?6 AND state = @RUN_RUNNING@ AND seq < ?2
                      AND ?3 >> @RUN_RUNNING@ & 1
                    ORDER BY seq DESC LIMIT ?4)
    UNION ALL
    SELECT * FROM (SELECT seq, key FROM il_run
                    WHERE tenant = ?1 AND key = ?6 AND state = @RUN_COMPLETED@ AND seq < ?2
                      AND ?3 >> @RUN_COMPLETED@ & 1
                    ORDER BY seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq, key FROM il_run
                    WHERE tenant = ?1 AND key = ?6 AND state = @RUN_FAILED@ AND seq < ?2
                      AND ?3 >> @RUN_FAILED@ & 1
                    ORDER BY seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq, key FROM il_run
                    WHERE tenant = ?1 AND key = ?6 AND state = @RUN_CANCELLED@ AND seq < ?2
                      AND ?3 >> @RUN_CANCELLED@ & 1
                    ORDER BY seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq, key FROM il_run
                    WHERE tenant = ?1 AND key = ?6 AND state = @RUN_TIMEOUT@ AND seq < ?2
                      AND ?3 >> @RUN_TIMEOUT@ & 1
                    ORDER BY seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq, key FROM il_run
                    WHERE tenant = ?1 AND key = ?6 AND state = @RUN_INTERRUPTED@ AND seq < ?2
                      AND ?3 >> @RUN_INTERRUPTED@ & 1
                    ORDER BY seq DESC LIMIT ?5))
 ORDER BY seq DESC LIMIT ?4;

-- name: run_count_live
-- Live runs of a tenant whose keys are of a class, without overdue ones. The cost is that of the
-- live runs: the index holds nothing else, and its range is that of the keys that begin with the
-- class.
-- params:  1 tenant  2 class  3 count up to  4 now_ms  5 key of the run that is to be made
--          6 runs of that key do not count up to this state
SELECT count(*)
  FROM (SELECT 1
          FROM il_run r INDEXED BY il_run_live
          LEFT JOIN il_lease l ON l.tenant = r.tenant AND l.key = r.key AND l.fence = r.fence
          LEFT JOIN il_waiter w ON w.ticket = r.ticket
         WHERE r.tenant = ?1 AND r.state <= @RUN_RUNNING@ AND r.key >= ?2 AND r.key < ?2 || ';'
           AND (r.key = ?2 OR r.key >= ?2 || ':')
           AND ifnull(l.expires_ms > ?4, r.state = @RUN_PENDING@) AND ifnull(w.drop_ms > ?4, 1)
           AND NOT (r.key = ?5 AND r.state <= ?6)
         LIMIT ?3);

-- name: run_count_day
-- Runs of a tenant whose keys are of a class, live and ended, created since a time. Reads no more
-- than it may count.
-- params:  1 tenant  2 class  3 count up to  4 since, wall clock
SELECT count(*)
  FROM (SELECT 1
          FROM il_run r INDEXED BY il_run_day
         WHERE r.tenant = ?1 AND substr(r.key, 1, instr(r.key || ':', ':') - 1) = ?2
           AND r.created_ms >= ?4
         LIMIT ?3);

-- name: run_position
-- How many pending runs of a key there are up to a seq, without those that have ended.
-- params:  1 tenant  2 key  3 seq  4 now_ms
SELECT count(*)
  FROM il_run r
  LEFT JOIN il_lease l ON l.tenant = r.tenant AND l.key = r.key AND l.fence = r.fence
  LEFT JOIN il_waiter w ON w.ticket = r.ticket
 WHERE r.tenant = ?1 AND r.key = ?2 AND r.state <= @RUN_RUNNING@ AND r.state = @RUN_PENDING@
   AND r.seq <= ?3
   AND ifnull(l.expires_ms > ?4, 1) AND ifnull(w.drop_ms > ?4, 1);

-- name: run_add
-- A new run. Its seq was drawn in this transaction, which has also checked that there is no run
-- with this id.
-- params:  1 seq  2 tenant  3 id  4 key  5 holder  6 fence  7 ticket  8 state  9 trigger_  10 by_
--          11 meta  12 ttl_ms  13 keep_ms  14 wall_ms  15 started_ms
INSERT INTO il_run (seq, tenant, id, key, holder, fence, ticket, state, cancelled, finished, error,
                    trigger_, by_, meta, stage, progress, n_joined, log_bytes, ttl_ms, keep_ms,
                    created_ms, started_ms, ended_ms, updated_ms, purge_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, '', ?9, ?10, ?11, '', -1, 0, 0, ?12, ?13, ?14, ?15, 0,
        ?14, NULL);

-- name: run_change
-- Everything about a run that can change. An ended one is purged after its retention.
-- params:  1 seq  2 holder  3 fence  4 ticket  5 state  6 cancelled  7 finished  8 error  9 stage
--          10 progress  11 n_joined  12 log_bytes  13 ttl_ms  14 started_ms  15 ended_ms
--          16 updated_ms
UPDATE il_run
   SET holder = ?2, fence = ?3, ticket = ?4, state = ?5, cancelled = ?6, finished = ?7, error = ?8,
       stage = ?9, progress = ?10, n_joined = ?11, log_bytes = ?12, ttl_ms = ?13, started_ms = ?14,
       ended_ms = ?15, updated_ms = ?16,
       purge_ms = CASE WHEN ?5 > @RUN_RUNNING@ THEN ?15 + keep_ms END
 WHERE seq = ?1;

-- name: run_offered
-- The waiter of a pending run has become an offered lease.
-- params:  1 seq  2 fence
UPDATE il_run SET fence = ?2, ticket = 0 WHERE seq = ?1;

-- name: run_due
-- Runs past their retention, the first to expire first. The cost is that of the returned rows: the
-- index is read from its start.
-- params:  1 wall_ms  2 limit
-- returns: seq
SELECT seq FROM il_run WHERE purge_ms <= ?1 ORDER BY purge_ms, seq LIMIT ?2;

-- name: run_overdue
-- Is there a run to be purged? A lookup at the start of the index.
-- params:  1 wall_ms
SELECT EXISTS (SELECT 1 FROM il_run WHERE purge_ms <= ?1);

-- name: run_remove
-- Purge a run; run_log_remove deletes its log.
-- params:  1 seq
DELETE FROM il_run WHERE seq = ?1;

-- ---- logs ---------------------------------------------------------------------------------------

-- name: run_log_add
-- A new piece of a log.
-- params:  1 run  2 offset  3 data
INSERT INTO il_run_log (run, offset, data) VALUES (?1, ?2, ?3);

-- name: run_log_extend
-- Append to a short piece, so that many small writes do not become many rows. || converts the bytes
-- to text, whatever they are; the cast converts them back.
-- params:  1 piece  2 data
UPDATE il_run_log SET data = CAST(data || ?2 AS BLOB) WHERE piece = ?1;

-- name: run_log_last
-- The newest piece of a log.
-- params:  1 run
-- returns: piece, its length
SELECT piece, length(data) FROM il_run_log WHERE run = ?1 ORDER BY offset DESC LIMIT 1;

-- name: run_log_read
-- The pieces that overlap the range between two offsets. No piece is longer than 65,536 bytes.
-- params:  1 run  2 from  3 to
-- returns: offset, data
SELECT offset, data FROM il_run_log
 WHERE run = ?1 AND offset > ?2 - @LOG_PIECE_BYTES@ AND offset < ?3
 ORDER BY offset;

-- name: run_log_remove
-- The log of a run that is purged.
-- params:  1 run
DELETE FROM il_run_log WHERE run = ?1;

-- name: run_log_trim
-- The pieces that lie entirely before an offset.
-- params:  1 run  2 offset
DELETE FROM il_run_log WHERE run = ?1 AND offset < ?2 AND offset + length(data) <= ?2;

-- ---- rates --------------------------------------------------------------------------------------

-- name: rate_add
-- A start was admitted. A slot that was last used a window ago or longer restarts at one.
-- params:  1 tenant  2 class  3 span_ms  4 place in the ring  5 slot
INSERT INTO il_rate (tenant, class, span_ms, place, slot, n) VALUES (?1, ?2, ?3, ?4, ?5, 1)
    ON CONFLICT (tenant, class, span_ms, place)
    DO UPDATE SET n = CASE WHEN slot = excluded.slot THEN n + 1 ELSE 1 END, slot = excluded.slot;

-- name: rate_sum
-- How many starts of a tenant and class were admitted in the slots of a window that still count,
-- and the oldest of these slots. At most 60 rows are read.
-- params:  1 tenant  2 class  3 span_ms  4 slots after this one count
SELECT coalesce(sum(n), 0), coalesce(min(slot), 0)
  FROM il_rate
 WHERE tenant = ?1 AND class = ?2 AND span_ms = ?3 AND slot > ?4;

-- name: rate_overdue
-- Does a window have slots to be deleted? A lookup at one place of the index.
-- params:  1 span_ms  2 slots up to this one
SELECT EXISTS (SELECT 1 FROM il_rate WHERE span_ms = ?1 AND slot <= ?2);

-- name: rate_purge
-- Delete slots that no longer count. The cost is that of the deleted rows: the index is read from
-- where the window begins.
-- params:  1 span_ms  2 slots up to this one  3 limit
DELETE FROM il_rate
 WHERE (tenant, class, span_ms, place) IN (SELECT tenant, class, span_ms, place FROM il_rate
                                            WHERE span_ms = ?1 AND slot <= ?2
                                            ORDER BY slot LIMIT ?3);
