-- day.sql: statements on daily_usage_cache.
--
-- A row is written by the holder of the lease usage_day:DATE alone, in a transaction that shows the
-- fence of that lease: of two writers the later holder's row stays, whatever the earlier one does.
-- Readers see the row before or after such a transaction, never half of it.
-- Dates are printed by to_char(): a cast to text depends on the session's DateStyle.

-- part: columns
raw_data, aggregated_by_user, aggregated_by_model, aggregated_by_provider, total_metrics,
    updated_at, is_complete

-- part: parts
aggregated_by_user, aggregated_by_model, aggregated_by_provider

-- part: replace
ON CONFLICT (tenant, date) DO UPDATE SET raw_data = excluded.raw_data,
    aggregated_by_user = excluded.aggregated_by_user,
    aggregated_by_model = excluded.aggregated_by_model,
    aggregated_by_provider = excluded.aggregated_by_provider,
    total_metrics = excluded.total_metrics, updated_at = excluded.updated_at,
    is_complete = excluded.is_complete

-- name: usage_put_sqlite
-- params:  1 tenant  2 date  3.. the columns; updated_at in ms
INSERT INTO daily_usage_cache (tenant, date, @columns@)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) @replace@;

-- name: usage_put_postgres
-- params:  as usage_put_sqlite
INSERT INTO daily_usage_cache (tenant, date, @columns@)
VALUES ($1, $2::date, $3::jsonb, $4::jsonb, $5::jsonb, $6::jsonb, $7::jsonb,
    to_timestamp($8::bigint / 1000.0), $9::int <> 0) @replace@;

-- name: usage_get_sqlite
-- params:  1 tenant  2 date
-- returns: date, updated_at in ms, is_complete, total_metrics, the parts
SELECT date, updated_at, is_complete, total_metrics, @parts@
FROM daily_usage_cache WHERE tenant = $1 AND date = $2;

-- name: usage_get_postgres
-- params:  1 tenant  2 date
-- returns: as usage_get_sqlite
SELECT to_char(date, 'YYYY-MM-DD'), (extract(epoch FROM updated_at) * 1000)::bigint,
    is_complete, total_metrics, @parts@
FROM daily_usage_cache WHERE tenant = $1 AND date = $2::date;

-- name: usage_range_sqlite
-- params:  1 tenant  2 first date  3 last date  4 which part: 0, 1, 2; another number: none
-- returns: date, updated_at in ms, is_complete, total_metrics, that part
SELECT date, updated_at, is_complete, total_metrics, CASE $4 WHEN 0 THEN aggregated_by_user
    WHEN 1 THEN aggregated_by_model WHEN 2 THEN aggregated_by_provider END
FROM daily_usage_cache WHERE tenant = $1 AND date BETWEEN $2 AND $3 ORDER BY date;

-- name: usage_range_postgres
-- params:  as usage_range_sqlite
-- returns: as usage_range_sqlite
SELECT to_char(date, 'YYYY-MM-DD'), (extract(epoch FROM updated_at) * 1000)::bigint,
    is_complete, total_metrics, CASE $4::int WHEN 0 THEN aggregated_by_user
    WHEN 1 THEN aggregated_by_model WHEN 2 THEN aggregated_by_provider END
FROM daily_usage_cache WHERE tenant = $1 AND date BETWEEN $2::date AND $3::date ORDER BY date;

-- name: usage_purge_sqlite
-- Some days of all tenants before a date, so that no transaction is long. Two servers that purge at
-- once delete each row once. A day that is being built is written again: the next purge finds it.
-- params:  1 date  2 limit
-- returns: tenant, date
DELETE FROM daily_usage_cache WHERE (tenant, date) IN (
    SELECT tenant, date FROM daily_usage_cache WHERE date < $1 LIMIT $2)
RETURNING tenant, date;

-- name: usage_purge_postgres
-- params:  as usage_purge_sqlite
-- returns: as usage_purge_sqlite
DELETE FROM daily_usage_cache WHERE (tenant, date) IN (
    SELECT tenant, date FROM daily_usage_cache WHERE date < $1::date LIMIT $2)
RETURNING tenant, to_char(date, 'YYYY-MM-DD');

-- name: usage_complete_early_sqlite
-- Days that are kept as complete although their build started before the day was over.
-- params:  1 tenant
-- returns: date, updated_at
SELECT date, updated_at FROM daily_usage_cache WHERE tenant = $1 AND is_complete = 1
    AND updated_at < (unixepoch(date) + 86400) * 1000 ORDER BY date;

-- name: usage_complete_early_postgres
-- params:  as usage_complete_early_sqlite
-- returns: as usage_complete_early_sqlite
SELECT to_char(date, 'YYYY-MM-DD'), updated_at FROM daily_usage_cache
WHERE tenant = $1 AND is_complete
    AND updated_at < (date + 1)::timestamp AT TIME ZONE 'UTC' ORDER BY date;
