-- once_overdue: is anything gone? Two looks into an index.
-- params:  1 now_ms  2 wall_ms
SELECT EXISTS (SELECT 1 FROM il_once WHERE state = 1 AND purge_ms <= ?1)
    OR EXISTS (SELECT 1 FROM il_once WHERE state = 2 AND purge_ms <= ?2);
