-- cron_ticked: a schedule has ticked.
-- params:  1 tenant  2 name  3 n_ticks  4 next_ms  5 last_ms
UPDATE il_cron SET n_ticks = ?3, next_ms = ?4, last_ms = ?5 WHERE tenant = ?1 AND name = ?2;
