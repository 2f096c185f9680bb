-- run_purge: the last that is known of a run.
-- params:  1 tenant  2 run
-- returns: a row if it was there
DELETE FROM @schema.run_detail WHERE tenant = $1 AND run = $2 RETURNING run;
