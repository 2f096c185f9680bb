-- cron.sql: schedules. One write transaction (transaction.sql) reads a due tick, pushes its job and
-- sets the next tick, so no tick is pushed twice.

-- part: cron_columns
tenant, name, queue, schedule, missed, priority, max_attempts, n_ticks, next_ms, last_ms, payload

-- name: cron_load
-- A schedule by its name.
-- params:  1 tenant  2 name
-- returns: cron_columns
SELECT @cron_columns@
  FROM il_cron WHERE tenant = ?1 AND name = ?2;

-- name: cron_list
-- A page of a tenant's schedules, by name.
-- params:  1 tenant  2 first name  3 end of the prefix  4 name after which the page begins  5 rows
-- returns: cron_columns
SELECT @cron_columns@
  FROM il_cron
 WHERE tenant = ?1 AND name >= max(?2, ?4) AND name < ?3 AND name <> ?4
 ORDER BY name LIMIT ?5;

-- name: cron_list_of
-- The same of one queue.
-- params:  1 tenant  2 first name  3 end of the prefix  4 name after which the page begins  5 rows
--          6 queue
-- returns: cron_columns
SELECT @cron_columns@
  FROM il_cron INDEXED BY il_cron_list
 WHERE tenant = ?1 AND queue = ?6 AND name >= max(?2, ?4) AND name < ?3 AND name <> ?4
 ORDER BY name LIMIT ?5;

-- name: cron_due
-- The first schedule whose tick has come.
-- params:  1 wall_ms
-- returns: cron_columns
SELECT @cron_columns@
  FROM il_cron WHERE next_ms <= ?1 ORDER BY next_ms, tenant, name LIMIT 1;

-- name: cron_due_of
-- The same of one queue.
-- params:  1 wall_ms  2 tenant  3 queue
-- returns: cron_columns
SELECT @cron_columns@
  FROM il_cron
 WHERE tenant = ?2 AND queue = ?3 AND next_ms <= ?1
 ORDER BY tenant, queue, next_ms, name LIMIT 1;

-- name: cron_next
-- When the next schedule of a queue ticks.
-- params:  1 tenant  2 queue
-- returns: next_ms, NULL without any
SELECT min(next_ms) FROM il_cron WHERE tenant = ?1 AND queue = ?2;

-- name: cron_save
-- A schedule is set.
-- params:  1 tenant  2 name  3 queue  4 schedule  5 missed  6 priority  7 max_attempts  8 n_ticks
--          9 next_ms  10 last_ms  11 payload
INSERT INTO il_cron (@cron_columns@)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
    ON CONFLICT (tenant, name) DO UPDATE
   SET queue = excluded.queue, schedule = excluded.schedule, missed = excluded.missed,
       priority = excluded.priority, max_attempts = excluded.max_attempts,
       n_ticks = excluded.n_ticks, next_ms = excluded.next_ms, last_ms = excluded.last_ms,
       payload = excluded.payload;

-- name: cron_ticked
-- A schedule has ticked.
-- params:  1 tenant  2 name  3 n_ticks  4 next_ms  5 last_ms
UPDATE il_cron SET n_ticks = ?3, next_ms = ?4, last_ms = ?5 WHERE tenant = ?1 AND name = ?2;

-- name: cron_remove
-- Delete a schedule. Changes one row, or none if there is no such schedule.
-- params:  1 tenant  2 name
DELETE FROM il_cron WHERE tenant = ?1 AND name = ?2;
