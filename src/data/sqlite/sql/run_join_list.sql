-- run_join_list: the newest, oldest first.
-- params:  1 tenant  2 run  3 limit
-- returns: tenant, run, at_ms, request_id, who, type
SELECT tenant, run, at_ms, request_id, who, type
FROM (SELECT tenant, run, at_ms, request_id, who, type FROM il_run_join WHERE tenant = ?1 AND run = ?2
      ORDER BY at_ms DESC, request_id DESC LIMIT ?3) AS newest
ORDER BY at_ms, request_id;
