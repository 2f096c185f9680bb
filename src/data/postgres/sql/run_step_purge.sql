-- run_step_purge: some steps of a run; all that there are if fewer rows than the limit come back.
-- params:  1 tenant  2 run  3 limit
-- returns: a row for each that is gone
DELETE FROM @schema.run_step
WHERE tenant = $1 AND run = $2
  AND (n, attempt) IN (SELECT n, attempt FROM @schema.run_step WHERE tenant = $1 AND run = $2 LIMIT $3)
RETURNING n;
