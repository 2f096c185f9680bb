-- schema_postgres.sql: as schema_sqlite.sql.

-- name: check_postgres_1
CREATE TABLE check_result (
    tenant        text    NOT NULL,
    id            text    NOT NULL COLLATE "C",
    name          text    NOT NULL COLLATE "C",
    severity      text    NOT NULL CHECK (severity IN ('info', 'warning', 'error')),
    outcome       text    NOT NULL CHECK (outcome IN ('passed', 'broken', 'error')),
    n_new         bigint  NOT NULL CHECK (n_new >= 0),
    n_known       bigint  NOT NULL CHECK (n_known >= 0),
    offenders     text    NOT NULL,
    not_needed    text    NOT NULL,
    runs          text    NOT NULL,
    error         text    NOT NULL,
    started_at_ms bigint  NOT NULL,
    duration_ms   bigint  NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX check_result_name ON check_result (tenant, name, started_at_ms, id);
CREATE INDEX check_result_started ON check_result (tenant, started_at_ms, id);
