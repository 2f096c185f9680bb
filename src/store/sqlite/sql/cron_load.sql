-- cron_load: a schedule by its name.
-- params:  1 tenant  2 name
-- returns: tenant, name, queue, schedule, missed, priority, max_attempts, n_ticks, next_ms, last_ms, payload
SELECT tenant, name, queue, schedule, missed, priority, max_attempts, n_ticks, next_ms, last_ms, payload
  FROM il_cron WHERE tenant = ?1 AND name = ?2;
