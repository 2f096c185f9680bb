-- queue_depth: jobs of a queue by state, counted from their rows through covering indexes.
-- params:  1 queue  2 wall_ms  3 seen_ms: workers that claimed after it
-- returns: scheduled; due, but still scheduled; ready; blocked by their group; live; dead; smallest run_at_ms of the
--          due ones, the ready ones and the blocked ones, NULL without any; workers
SELECT (SELECT count(*) FROM il_live WHERE lane = 8 * ?1 + 1 AND ord > ?2),
       (SELECT count(*) FROM il_live WHERE lane = 8 * ?1 + 1 AND ord <= ?2),
       (SELECT count(*) FROM il_live WHERE lane = 8 * ?1 + 2),
       (SELECT count(*) FROM il_live WHERE lane = 8 * ?1 + 4),
       (SELECT count(*) FROM il_live WHERE queue = ?1),
       (SELECT count(*) FROM il_done WHERE queue = ?1 AND state = 5),
       (SELECT min(ord) FROM il_live WHERE lane = 8 * ?1 + 1 AND ord <= ?2),
       (SELECT min(at) FROM il_live WHERE lane = 8 * ?1 + 2),
       (SELECT min(at) FROM il_live WHERE lane = 8 * ?1 + 4),
       (SELECT count(*) FROM il_worker WHERE queue = ?1 AND seen_ms > ?3);
