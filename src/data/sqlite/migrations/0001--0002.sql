-- 0001--0002: what is known of pipeline runs beside their row in the store, and limits of a tenant that has pipelines. Older code can live with it: it neither reads nor writes what is new.

-- 0 is the server's default.
ALTER TABLE il_tenant ADD COLUMN triggers_per_minute INTEGER NOT NULL DEFAULT 0;
ALTER TABLE il_tenant ADD COLUMN triggers_per_hour INTEGER NOT NULL DEFAULT 0;
ALTER TABLE il_tenant ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE il_tenant ADD COLUMN runs_per_day INTEGER NOT NULL DEFAULT 0;

-- One row per run. It is there whenever one of the tables below has a row of the run: the purge goes by it. pipeline '': so far nothing else is known of the run.
CREATE TABLE il_run_detail (
    tenant        TEXT    NOT NULL,
    run           TEXT    NOT NULL,
    pipeline      TEXT    NOT NULL,
    version       TEXT    NOT NULL,
    node          TEXT    NOT NULL,
    parameters    TEXT    NOT NULL, -- JSON object
    renewals      INTEGER NOT NULL,
    renewed_at_ms INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, run)
) STRICT;
CREATE INDEX il_run_detail_created ON il_run_detail (created_at_ms);

-- One row per attempt of a step. The long texts stand last: who does not read them does not follow their pages. For the same reason it has rowids.
CREATE TABLE il_run_step (
    tenant        TEXT    NOT NULL,
    run           TEXT    NOT NULL,
    n             INTEGER NOT NULL, -- place in the pipeline
    attempt       INTEGER NOT NULL, -- 0: not begun
    step          TEXT    NOT NULL,
    type          TEXT    NOT NULL,
    state         TEXT    NOT NULL,
    level         INTEGER NOT NULL,
    started_at_ms INTEGER NOT NULL,
    ended_at_ms   INTEGER NOT NULL, -- 0 = not yet
    exit_code     INTEGER NOT NULL, -- -1 = none
    out_bytes     INTEGER NOT NULL,
    err_bytes     INTEGER NOT NULL,
    error         TEXT    NOT NULL,
    details       TEXT    NOT NULL, -- JSON object, or ''
    out           TEXT    NOT NULL, -- tails
    err           TEXT    NOT NULL,
    PRIMARY KEY (tenant, run, n, attempt)
) STRICT;

-- Triggers that were told the id of a run that was there already: of each run the newest 100.
CREATE TABLE il_run_join (
    tenant     TEXT    NOT NULL,
    run        TEXT    NOT NULL,
    at_ms      INTEGER NOT NULL,
    request_id TEXT    NOT NULL,
    who        TEXT    NOT NULL,
    type       TEXT    NOT NULL, -- of the trigger
    PRIMARY KEY (tenant, run, at_ms, request_id)
) STRICT, WITHOUT ROWID;
