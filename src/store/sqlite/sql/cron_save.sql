-- cron_save: a schedule is set.
-- params:  1 tenant  2 name  3 queue  4 schedule  5 missed  6 priority  7 max_attempts  8 n_ticks  9 next_ms  10 last_ms
--          11 payload
INSERT INTO il_cron (tenant, name, queue, schedule, missed, priority, max_attempts, n_ticks, next_ms, last_ms, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
    ON CONFLICT (tenant, name) DO UPDATE
   SET queue = excluded.queue, schedule = excluded.schedule, missed = excluded.missed, priority = excluded.priority,
       max_attempts = excluded.max_attempts, n_ticks = excluded.n_ticks, next_ms = excluded.next_ms,
       last_ms = excluded.last_ms, payload = excluded.payload;
