-- queue_add: make a queue; its number is the rowid. Settings and totals follow with queue_save.
-- params:  1 tenant  2 name
INSERT INTO il_queue (tenant, name, strategy, max_attempts, lease_ms, backoff_ms, backoff_max_ms, group_limit, rate_n,
                      rate_ms, keep_ms, keep_dead_ms, processing_timeout_ms, executing_timeout_ms, paused, reason,
                      pushed, claimed, completed, failed, dead, snoozed, cancelled, recovered, duplicates, stale)
VALUES (?1, ?2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
