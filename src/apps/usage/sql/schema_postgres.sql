-- schema_postgres.sql: as schema_sqlite.sql.

-- name: usage_postgres_1
CREATE TABLE daily_usage_cache (
    tenant                 text        NOT NULL,
    date                   date        NOT NULL,
    raw_data               jsonb       NOT NULL,
    aggregated_by_user     jsonb       NOT NULL,
    aggregated_by_model    jsonb       NOT NULL,
    aggregated_by_provider jsonb       NOT NULL,
    total_metrics          jsonb       NOT NULL,
    updated_at             timestamptz NOT NULL,
    is_complete            boolean     NOT NULL,
    PRIMARY KEY (tenant, date)
);
