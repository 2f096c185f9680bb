-- schema_sqlite.sql: the history of invariants. A step that has been released never changes.

-- name: check_sqlite_1
CREATE TABLE check_result (
    tenant        TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    severity      TEXT    NOT NULL CHECK (severity IN ('info', 'warning', 'error')),
    outcome       TEXT    NOT NULL CHECK (outcome IN ('passed', 'broken', 'error')),
    n_new         INTEGER NOT NULL CHECK (n_new >= 0),
    n_known       INTEGER NOT NULL CHECK (n_known >= 0),
    offenders     TEXT    NOT NULL, -- JSON: [{"key", "text"}], the first 20 new ones
    not_needed    TEXT    NOT NULL, -- JSON: {"count", "keys"}
    runs          TEXT    NOT NULL, -- JSON: ids of the runs that were active when it broke, else []
    error         TEXT    NOT NULL, -- why it could not run, or ''
    started_at_ms INTEGER NOT NULL,
    duration_ms   INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;
CREATE INDEX check_result_name ON check_result (tenant, name, started_at_ms, id);
CREATE INDEX check_result_started ON check_result (tenant, started_at_ms, id);
