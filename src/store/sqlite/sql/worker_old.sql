-- worker_old: workers that have not claimed for long, oldest first.
-- params:  1 seen_ms, the newest  2 rows
-- returns: queue, worker
SELECT queue, worker FROM il_worker WHERE seen_ms <= ?1 ORDER BY seen_ms LIMIT ?2;
