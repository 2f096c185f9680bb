-- run_count_day: runs of a tenant whose keys are of a class, live and ended, made since a time. Looks at as many as it may count. Inside BEGIN IMMEDIATE it is the truth until
-- the commit, so that two starts cannot both be the last one.
-- params:  1 tenant  2 class  3 count up to  4 since, wall clock
SELECT count(*)
  FROM (SELECT 1
          FROM il_run r INDEXED BY il_run_day
         WHERE r.tenant = ?1 AND substr(r.key, 1, instr(r.key || ':', ':') - 1) = ?2 AND r.created_ms >= ?4
         LIMIT ?3);
