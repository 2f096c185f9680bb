-- queue_load: a queue by its name. The transaction's truth until the commit: BEGIN IMMEDIATE lets one writer in.
-- params:  1 tenant  2 name
-- returns: no, tenant, name, the settings in the order of il_queue_opts, paused, reason, the totals in the order of
--          struct il__totals
SELECT no, tenant, name, strategy, max_attempts, lease_ms, backoff_ms, backoff_max_ms, group_limit, rate_n, rate_ms,
       keep_ms, keep_dead_ms, processing_timeout_ms, executing_timeout_ms, paused, reason, pushed, claimed, completed,
       failed, dead, snoozed, cancelled, recovered, duplicates, stale
  FROM il_queue WHERE tenant = ?1 AND name = ?2;
