-- queue_list: a page of the tenant's queues, by name.
-- params:  1 tenant  2 first name  3 end of the prefix  4 name after which the page begins  5 rows
-- returns: as queue_load
SELECT no, tenant, name, strategy, max_attempts, lease_ms, backoff_ms, backoff_max_ms, group_limit, rate_n, rate_ms,
       keep_ms, keep_dead_ms, processing_timeout_ms, executing_timeout_ms, paused, reason, pushed, claimed, completed,
       failed, dead, snoozed, cancelled, recovered, duplicates, stale
  FROM il_queue
 WHERE tenant = ?1 AND name >= ?2 AND name < ?3 AND name > ?4
 ORDER BY name LIMIT ?5;
