-- cron_list: a page of a tenant's schedules, by name, of one queue or ('') of all.
-- params:  1 tenant  2 first name  3 end of the prefix  4 name after which the page begins  5 rows  6 queue
-- returns: as cron_load
SELECT tenant, name, queue, schedule, missed, priority, max_attempts, n_ticks, next_ms, last_ms, payload
  FROM il_cron
 WHERE tenant = ?1 AND name >= ?2 AND name < ?3 AND name > ?4 AND (?6 = '' OR queue = ?6)
 ORDER BY name LIMIT ?5;
