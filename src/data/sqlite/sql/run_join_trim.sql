-- run_join_trim: of a run's joins the newest stay. Looks at as many rows as may stay and deletes what is beyond them, which is seldom more than was just added.
-- params:  1 tenant  2 run  3 how many stay
DELETE FROM il_run_join
WHERE tenant = ?1 AND run = ?2
  AND (at_ms, request_id) <= (SELECT at_ms, request_id FROM il_run_join WHERE tenant = ?1 AND run = ?2
                              ORDER BY at_ms DESC, request_id DESC LIMIT 1 OFFSET ?3);
