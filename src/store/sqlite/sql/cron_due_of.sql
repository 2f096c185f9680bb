-- cron_due_of: the same of one queue.
-- params:  1 wall_ms  2 tenant  3 queue
-- returns: as cron_load
SELECT tenant, name, queue, schedule, missed, priority, max_attempts, n_ticks, next_ms, last_ms, payload
  FROM il_cron WHERE tenant = ?2 AND queue = ?3 AND next_ms <= ?1 ORDER BY tenant, queue, next_ms, name LIMIT 1;
