-- usage.sql: how much a tenant stores, one page at a time. SQLite knows the length of a blob
-- without reading it.

-- name: usage_cache
-- Add up a page of a tenant's cached values, by key.
-- params:  1 tenant  2 after key  3 limit
-- returns: rows, bytes, last key
SELECT count(*), ifnull(sum(n), 0), max(key)
  FROM (SELECT key, length(CAST(key AS BLOB)) + length(value) AS n
          FROM il_cache_value WHERE tenant = ?1 AND key > ?2 ORDER BY key LIMIT ?3);

-- name: usage_once
-- Add up a page of a tenant's idempotency keys, by key.
-- params:  1 tenant  2 after key  3 limit
-- returns: rows, bytes, last key
SELECT count(*), ifnull(sum(n), 0), max(key)
  FROM (SELECT key, length(CAST(key AS BLOB)) + length(CAST(meta AS BLOB)) +
               ifnull(length(response), 0) AS n
          FROM il_once WHERE tenant = ?1 AND key > ?2 ORDER BY key LIMIT ?3);

-- name: usage_jobs
-- Add up a page of a tenant's jobs, by id.
-- params:  1 tenant  2 after id  3 limit
-- returns: rows, bytes, last id
SELECT count(*), ifnull(sum(n), 0), max(id)
  FROM (SELECT id, length(CAST(id AS BLOB)) + length(payload) +
               ifnull((SELECT length(result) FROM il_done
                        WHERE queue = il_job.queue AND state = @JOB_COMPLETED@
                          AND seq = il_job.seq), 0) AS n
          FROM il_job WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?3);

-- name: usage_runs
-- Add up a page of a tenant's runs, by id. A log keeps its last MiB.
-- params:  1 tenant  2 after id  3 limit
-- returns: rows, bytes, last id
SELECT count(*), ifnull(sum(n), 0), max(id)
  FROM (SELECT id, length(CAST(id AS BLOB)) + length(CAST(meta AS BLOB)) +
               length(CAST(error AS BLOB)) + min(log_bytes, @LOG_BYTES_MAX@) AS n
          FROM il_run WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?3);

-- name: usage_crons
-- Add up a page of a tenant's schedules, by name.
-- params:  1 tenant  2 after name  3 limit
-- returns: rows, bytes, last name
SELECT count(*), ifnull(sum(n), 0), max(name)
  FROM (SELECT name, length(CAST(name AS BLOB)) + length(CAST(schedule AS BLOB)) +
               length(payload) AS n
          FROM il_cron WHERE tenant = ?1 AND name > ?2 ORDER BY name LIMIT ?3);
