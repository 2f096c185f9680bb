-- cron_due: the first schedule whose tick has come.
-- params:  1 wall_ms
-- returns: as cron_load
SELECT tenant, name, queue, schedule, missed, priority, max_attempts, n_ticks, next_ms, last_ms, payload
  FROM il_cron WHERE next_ms <= ?1 ORDER BY next_ms, tenant, name LIMIT 1;
