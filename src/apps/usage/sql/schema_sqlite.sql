-- schema_sqlite.sql: the tables of the app, by version.

-- name: usage_sqlite_1
-- A day of a tenant. raw_data is what the source gave; the other figures are computed from it, with
-- money in micro-units. updated_at (ms since 1970) is when the build of these figures started.
CREATE TABLE daily_usage_cache (
    tenant                 TEXT    NOT NULL,
    date                   TEXT    NOT NULL CHECK (date IS date(date)),
    raw_data               TEXT    NOT NULL CHECK (json_valid(raw_data)),
    aggregated_by_user     TEXT    NOT NULL CHECK (json_valid(aggregated_by_user)),
    aggregated_by_model    TEXT    NOT NULL CHECK (json_valid(aggregated_by_model)),
    aggregated_by_provider TEXT    NOT NULL CHECK (json_valid(aggregated_by_provider)),
    total_metrics          TEXT    NOT NULL CHECK (json_valid(total_metrics)),
    updated_at             INTEGER NOT NULL,
    is_complete            INTEGER NOT NULL CHECK (is_complete IN (0, 1)),
    PRIMARY KEY (tenant, date)
) STRICT, WITHOUT ROWID;
