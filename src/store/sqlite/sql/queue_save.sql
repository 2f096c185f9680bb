-- queue_save: settings of a queue, once per transaction that changed them.
-- params:  1 no  2..13 the settings in the order of il_queue_opts  14 paused  15 reason
UPDATE il_queue
   SET strategy = ?2, max_attempts = ?3, lease_ms = ?4, backoff_ms = ?5, backoff_max_ms = ?6, group_limit = ?7,
       rate_n = ?8, rate_ms = ?9, keep_ms = ?10, keep_dead_ms = ?11, processing_timeout_ms = ?12,
       executing_timeout_ms = ?13, paused = ?14, reason = ?15
 WHERE no = ?1;
