-- run_old: runs to be forgotten, the oldest first.
-- params:  1 created before, in ms since 1970  2 limit
-- returns: tenant, run
SELECT tenant, run FROM il_run_detail WHERE created_at_ms < ?1 ORDER BY created_at_ms LIMIT ?2;
