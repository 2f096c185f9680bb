-- queue_load_no: the same by its number.
-- params:  1 no
-- returns: as queue_load
SELECT no, tenant, name, strategy, max_attempts, lease_ms, backoff_ms, backoff_max_ms, group_limit, rate_n, rate_ms,
       keep_ms, keep_dead_ms, processing_timeout_ms, executing_timeout_ms, paused, reason, pushed, claimed, completed,
       failed, dead, snoozed, cancelled, recovered, duplicates, stale
  FROM il_queue WHERE no = ?1;
