-- run.sql: the history of pipeline runs: details, steps, and starts that joined.

-- ---- details ------------------------------------------------------------------------------------

-- part: detail_columns
tenant, run, pipeline, version, node, parameters, renewals, renewed_at_ms, created_at_ms

-- name: run_detail_add
-- Make sure that a run has a row, since the purge relies on it. An existing row is not changed, but
-- PostgreSQL locks it. Race-free: a purge has either deleted the row before we read it, or skips it
-- until we commit (run_old), so nothing is left behind that no purge finds.
-- params:  1 tenant  2 run  3 created_at_ms  4 class
INSERT INTO @schema.run_detail (@detail_columns@, class)
VALUES ($1, $2, '', '', '', '', 0, 0, $3, $4)
ON CONFLICT (tenant, run) DO UPDATE SET run = excluded.run WHERE false;

-- name: run_detail_set
-- Writes the whole row, so that repeating it changes nothing.
-- params:  1 tenant  2 run  3 pipeline  4 version  5 node  6 parameters  7 renewals
--          8 renewed_at_ms  9 created_at_ms  10 class
INSERT INTO @schema.run_detail (@detail_columns@, class)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (tenant, run) DO UPDATE
          SET pipeline = excluded.pipeline, version = excluded.version, node = excluded.node,
              parameters = excluded.parameters, renewals = excluded.renewals,
              renewed_at_ms = excluded.renewed_at_ms, created_at_ms = excluded.created_at_ms,
              class = excluded.class;

-- name: run_detail_get
-- The details of a run.
-- params:  1 tenant  2 run
-- returns: detail_columns
SELECT @detail_columns@
FROM @schema.run_detail WHERE tenant = $1 AND run = $2 AND pipeline <> '';

-- ---- steps --------------------------------------------------------------------------------------

-- part: step_columns
tenant, run, n, attempt, step, type, state, level, started_at_ms, ended_at_ms, exit_code,
out_bytes, err_bytes, error, details

-- name: run_step_set
-- Writes the whole row, so that repeating it changes nothing. An ended attempt stays ended: an
-- older write whose outcome was unknown may arrive late.
-- params:  1 tenant  2 run  3 n  4 attempt  5 step  6 type  7 state  8 level  9 started_at_ms
--          10 ended_at_ms  11 exit_code  12 out_bytes  13 err_bytes  14 error  15 details  16 out
--          17 err
INSERT INTO @schema.run_step AS old (@step_columns@, out, err)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
ON CONFLICT (tenant, run, n, attempt) DO UPDATE
          SET step = excluded.step, type = excluded.type, state = excluded.state,
              level = excluded.level, started_at_ms = excluded.started_at_ms,
              ended_at_ms = excluded.ended_at_ms, exit_code = excluded.exit_code,
              out_bytes = excluded.out_bytes, err_bytes = excluded.err_bytes,
              error = excluded.error, details = excluded.details, out = excluded.out,
              err = excluded.err
        WHERE old.ended_at_ms = 0 OR excluded.ended_at_ms <> 0;

-- name: run_step_list
-- Steps of a run without their output, in order.
-- params:  1 tenant  2 run  3 limit
-- returns: step_columns, out, err
SELECT @step_columns@, '', ''
FROM @schema.run_step WHERE tenant = $1 AND run = $2 ORDER BY n, attempt LIMIT $3;

-- name: run_step_list_all
-- Steps of a run with their output, in order.
-- params:  1 tenant  2 run  3 limit
-- returns: step_columns, out, err
SELECT @step_columns@, out, err
FROM @schema.run_step WHERE tenant = $1 AND run = $2 ORDER BY n, attempt LIMIT $3;

-- name: run_step_get
-- The attempts of one step with their output, in order.
-- params:  1 tenant  2 run  3 limit  4 step
-- returns: step_columns, out, err
SELECT @step_columns@, out, err
FROM @schema.run_step WHERE tenant = $1 AND run = $2 AND step = $4 ORDER BY n, attempt LIMIT $3;

-- name: run_step_purge
-- Delete some steps of a run. Fewer rows than the limit: there are no more.
-- params:  1 tenant  2 run  3 limit
-- returns: a row for each that was deleted
DELETE FROM @schema.run_step
WHERE tenant = $1 AND run = $2
  AND (n, attempt) IN (SELECT n, attempt FROM @schema.run_step
                       WHERE tenant = $1 AND run = $2 LIMIT $3)
RETURNING n;

-- ---- joins --------------------------------------------------------------------------------------

-- part: join_columns
tenant, run, at_ms, request_id, who, type

-- name: run_join_add
-- Add a start that joined a run. Does nothing the second time, since a write may be repeated.
-- params:  1 tenant  2 run  3 at_ms  4 request_id  5 who  6 type
INSERT INTO @schema.run_join (@join_columns@)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, run, at_ms, request_id) DO NOTHING;

-- name: run_join_trim
-- Keep only the newest joins of a run. Reads as many rows as may stay and deletes the rest, which
-- is rarely more than was just added.
-- params:  1 tenant  2 run  3 how many stay
DELETE FROM @schema.run_join
WHERE tenant = $1 AND run = $2
  AND (at_ms, request_id) <= (SELECT at_ms, request_id FROM @schema.run_join
                              WHERE tenant = $1 AND run = $2
                              ORDER BY at_ms DESC, request_id DESC LIMIT 1 OFFSET $3);

-- name: run_join_list
-- The newest joins of a run, oldest of them first.
-- params:  1 tenant  2 run  3 limit
-- returns: join_columns
SELECT @join_columns@
FROM (SELECT @join_columns@ FROM @schema.run_join
      WHERE tenant = $1 AND run = $2
      ORDER BY at_ms DESC, request_id DESC LIMIT $3) AS newest
ORDER BY at_ms, request_id;

-- ---- usage and purging --------------------------------------------------------------------------

-- name: run_usage
-- Add up a page of a tenant's runs: their rows here, and bytes. Only the tail of an output is kept.
-- (The inner sum would be numeric, and pg_catalog has no operator that adds an int to a numeric: it
-- would be taken from another schema of the search_path.)
-- params:  1 tenant  2 after run  3 limit
-- returns: runs, rows, bytes, last run
SELECT count(*), CAST(coalesce(sum(q.n), 0) AS bigint), CAST(coalesce(sum(q.b), 0) AS bigint),
       coalesce(max(q.run), '')
  FROM (SELECT d.run,
               1 + (SELECT count(*) FROM @schema.run_join AS j
                     WHERE j.tenant = d.tenant AND j.run = d.run)
                 + (SELECT count(*) FROM @schema.run_step AS s
                     WHERE s.tenant = d.tenant AND s.run = d.run) AS n,
               @bytes_of_parameters@ +
                 coalesce((SELECT CAST(sum(@bytes_of_details@ + least(s.out_bytes, 65536) +
                                           least(s.err_bytes, 65536)) AS bigint)
                             FROM @schema.run_step AS s
                            WHERE s.tenant = d.tenant AND s.run = d.run), 0) AS b
          FROM @schema.run_detail AS d
         WHERE d.tenant = $1 AND d.run > $2 ORDER BY d.run LIMIT $3) AS q;

-- name: run_old
-- Runs of a class to purge, the oldest first. Race-free: only the transaction that has locked a
-- run's row deletes what belongs to the run. Two purges do not wait for each other (SKIP LOCKED),
-- and since writers also lock this row first, they do not deadlock.
-- params:  1 created before, in ms since 1970  2 limit  3 class
-- returns: tenant, run
SELECT tenant, run FROM @schema.run_detail
WHERE class = $3 AND created_at_ms < $1 ORDER BY created_at_ms @limit_to_unlocked@;

-- name: run_purge_joins
-- Delete the joins of a run; run_join_trim limits their number.
-- params:  1 tenant  2 run
DELETE FROM @schema.run_join WHERE tenant = $1 AND run = $2;

-- name: run_purge
-- Delete the row of a run.
-- params:  1 tenant  2 run
-- returns: a row if it existed
DELETE FROM @schema.run_detail WHERE tenant = $1 AND run = $2 RETURNING run;
