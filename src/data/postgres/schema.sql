-- schema.sql: version 1 of the tables. data_meta.version is the version of these tables;
-- min_version is the oldest version of the code that may still use them. A change that older code
-- tolerates (a new table, a new column with a default) raises only the former. The store itself has
-- a separate version.
CREATE TABLE data_meta (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    version     bigint NOT NULL,
    min_version bigint NOT NULL
);

-- Secrets of the servers: `pepper`, unless it is in a separate file, and `pepper_check`, an HMAC
-- computed with it, which reveals a wrong pepper.
CREATE TABLE secret (
    name  text PRIMARY KEY,
    value text NOT NULL -- hex digits
);

-- A limit of 0: the server's default. See limits.def. Texts used for sorting are ordered by their
-- bytes, whatever the database's collation.
CREATE TABLE tenant (
    id                  text COLLATE "C" PRIMARY KEY,
    name                text   NOT NULL,
    requests_per_second bigint NOT NULL,
    burst               bigint NOT NULL,
    waiters             bigint NOT NULL,
    streams             bigint NOT NULL,
    locks               bigint NOT NULL,
    jobs                bigint NOT NULL,
    triggers_per_minute bigint NOT NULL,
    triggers_per_hour   bigint NOT NULL,
    runs                bigint NOT NULL,
    runs_per_day        bigint NOT NULL,
    bytes               bigint NOT NULL,
    created_at_ms       bigint NOT NULL
);

CREATE TABLE api_key (
    id            text COLLATE "C" PRIMARY KEY, -- UUIDv7: in order of age
    tenant        text COLLATE "C" NOT NULL REFERENCES tenant (id),
    name          text   NOT NULL,
    role          text   NOT NULL, -- none, read, write, operator, admin
    permissions   text   NOT NULL, -- separated by spaces
    prefix        text   NOT NULL,
    -- HMAC-SHA-256(pepper, key) in hex digits; the key itself is not stored
    hash          text COLLATE "C" NOT NULL,
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL, -- 0 = never
    used_at_ms    bigint NOT NULL DEFAULT 0,
    revoked_at_ms bigint NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX api_key_hash ON api_key (hash);
CREATE INDEX api_key_tenant ON api_key (tenant, id);

CREATE TABLE audit (
    seq     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at_ms   bigint NOT NULL,
    tenant  text COLLATE "C" NOT NULL,
    who     text   NOT NULL,
    action  text COLLATE "C" NOT NULL,
    what    text   NOT NULL,
    reason  text   NOT NULL,
    outcome text   NOT NULL,
    details text   NOT NULL
);
CREATE INDEX audit_at ON audit (at_ms);
CREATE INDEX audit_tenant ON audit (tenant, seq);
CREATE INDEX audit_action ON audit (action, seq);
CREATE INDEX audit_both ON audit (tenant, action, seq);

-- Details of runs, in addition to their row in the store.

-- One row per run. It exists whenever one of the tables below has a row for the run, since the
-- purge relies on it. pipeline '': nothing else is known about the run yet. class: of the run's key
-- CLASS:NAME; each class is purged by itself, after a time of its own.
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
    class         text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, run)
);
CREATE INDEX run_detail_created ON run_detail (class, created_at_ms);

-- One row per attempt of a step. The tails are stored out of line: queries that do not read them do
-- not fetch them.
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

-- Triggers that joined an existing run and got its id: the newest 100 of each run.
CREATE TABLE run_join (
    tenant     text COLLATE "C" NOT NULL,
    run        text COLLATE "C" NOT NULL,
    at_ms      bigint NOT NULL,
    request_id text COLLATE "C" NOT NULL,
    who        text   NOT NULL,
    type       text   NOT NULL, -- of the trigger
    PRIMARY KEY (tenant, run, at_ms, request_id)
);
