-- cron_next: when the next schedule of a queue ticks.
-- params:  1 tenant  2 queue
-- returns: next_ms, NULL without any
SELECT min(next_ms) FROM il_cron WHERE tenant = ?1 AND queue = ?2;
