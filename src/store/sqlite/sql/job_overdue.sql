-- job_overdue: would a sweep find something to do?
-- params:  1 now_ms  2 wall_ms  3 lease time at or before which a worker's last claim is over
-- returns: 0 or 1
SELECT EXISTS (SELECT 1 FROM il_live WHERE lane = 0 AND ord <= ?1)
    OR EXISTS (SELECT 1 FROM il_done WHERE purge_at_ms <= ?2)
    OR EXISTS (SELECT 1 FROM il_cron WHERE next_ms <= ?2)
    OR EXISTS (SELECT 1 FROM il_worker WHERE seen_ms <= ?3);
