-- run_purge_joins: of a run, whose number run_join_trim limits.
-- params:  1 tenant  2 run
DELETE FROM il_run_join WHERE tenant = ?1 AND run = ?2;
