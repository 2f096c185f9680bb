-- 0001--0002: what is known of pipeline runs beside their row in the store, and limits of a tenant that has pipelines. Older code can live with it: it neither reads nor writes what is new.

-- 0 is the server's default.
ALTER TABLE tenant ADD COLUMN triggers_per_minute bigint NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN triggers_per_hour bigint NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN runs bigint NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN runs_per_day bigint NOT NULL DEFAULT 0;

-- One row per run. It is there whenever one of the tables below has a row of the run: the purge goes by it. pipeline '': so far nothing else is known of the run.
CREATE TABLE run_detail (
    tenant        text COLLATE "C" NOT NULL,
    run           text COLLATE "C" NOT NULL,
    pipeline      text   NOT NULL,
    version       text   NOT NULL,
    node          text   NOT NULL,
    parameters    text   NOT NULL, -- JSON object
    renewals      bigint NOT NULL,
    renewed_at_ms bigint NOT NULL,
    created_at_ms bigint NOT NULL,
    PRIMARY KEY (tenant, run)
);
CREATE INDEX run_detail_created ON run_detail (created_at_ms);

-- One row per attempt of a step. The tails are stored out of line: who does not read them does not fetch them.
CREATE TABLE run_step (
    tenant        text COLLATE "C" NOT NULL,
    run           text COLLATE "C" NOT NULL,
    n             bigint NOT NULL, -- place in the pipeline
    attempt       bigint NOT NULL, -- 0: not begun
    step          text   NOT NULL,
    type          text   NOT NULL,
    state         text   NOT NULL,
    level         bigint NOT NULL,
    started_at_ms bigint NOT NULL,
    ended_at_ms   bigint NOT NULL, -- 0 = not yet
    exit_code     bigint NOT NULL, -- -1 = none
    out_bytes     bigint NOT NULL,
    err_bytes     bigint NOT NULL,
    error         text   NOT NULL,
    details       text   NOT NULL, -- JSON object, or ''
    out           text   NOT NULL, -- tails
    err           text   NOT NULL,
    PRIMARY KEY (tenant, run, n, attempt)
);

-- Triggers that were told the id of a run that was there already: of each run the newest 100.
CREATE TABLE run_join (
    tenant     text COLLATE "C" NOT NULL,
    run        text COLLATE "C" NOT NULL,
    at_ms      bigint NOT NULL,
    request_id text COLLATE "C" NOT NULL,
    who        text   NOT NULL,
    type       text   NOT NULL, -- of the trigger
    PRIMARY KEY (tenant, run, at_ms, request_id)
);
