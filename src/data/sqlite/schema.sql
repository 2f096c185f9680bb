-- schema.sql: version 1 of the tables. il_data_meta.version is the version of these tables;
-- min_version is the oldest version of the code that may still use them. A change that older code
-- tolerates (a new table, a new column with a default) raises only the former. The store itself has
-- a separate version.
CREATE TABLE il_data_meta (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    version     INTEGER NOT NULL,
    min_version INTEGER NOT NULL
) STRICT;

-- Secrets of the servers: `pepper`, unless it is in a separate file, and `pepper_check`, an HMAC
-- computed with it, which reveals a wrong pepper.
CREATE TABLE il_secret (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL -- hex digits
) STRICT, WITHOUT ROWID;

-- A limit of 0: the server's default. See limits.def.
CREATE TABLE il_tenant (
    id                  TEXT PRIMARY KEY,
    name                TEXT    NOT NULL,
    requests_per_second INTEGER NOT NULL,
    burst               INTEGER NOT NULL,
    waiters             INTEGER NOT NULL,
    streams             INTEGER NOT NULL,
    locks               INTEGER NOT NULL,
    jobs                INTEGER NOT NULL,
    triggers_per_minute INTEGER NOT NULL,
    triggers_per_hour   INTEGER NOT NULL,
    runs                INTEGER NOT NULL,
    runs_per_day        INTEGER NOT NULL,
    bytes               INTEGER NOT NULL,
    created_at_ms       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE il_api_key (
    id            TEXT PRIMARY KEY, -- UUIDv7: in order of age
    tenant        TEXT    NOT NULL REFERENCES il_tenant (id),
    name          TEXT    NOT NULL,
    role          TEXT    NOT NULL, -- none, read, write, operator, admin
    permissions   TEXT    NOT NULL, -- separated by spaces
    prefix        TEXT    NOT NULL,
    -- HMAC-SHA-256(pepper, key) in hex digits; the key itself is not stored
    hash          TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL, -- 0 = never
    used_at_ms    INTEGER NOT NULL DEFAULT 0,
    revoked_at_ms INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX il_api_key_hash ON il_api_key (hash);
CREATE INDEX il_api_key_tenant ON il_api_key (tenant, id);

-- AUTOINCREMENT: numbers of purged rows are never reused.
CREATE TABLE il_audit (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms   INTEGER NOT NULL,
    tenant  TEXT    NOT NULL,
    who     TEXT    NOT NULL,
    action  TEXT    NOT NULL,
    what    TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    outcome TEXT    NOT NULL,
    details TEXT    NOT NULL
) STRICT;
CREATE INDEX il_audit_at ON il_audit (at_ms);
CREATE INDEX il_audit_tenant ON il_audit (tenant, seq);
CREATE INDEX il_audit_action ON il_audit (action, seq);
CREATE INDEX il_audit_both ON il_audit (tenant, action, seq);

-- Details of runs, in addition to their row in the store.

-- One row per run. It exists whenever one of the tables below has a row for the run, since the
-- purge relies on it. pipeline '': nothing else is known about the run yet. class: of the run's key
-- CLASS:NAME; each class is purged by itself, after a time of its own.
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
    class         TEXT    NOT NULL,
    PRIMARY KEY (tenant, run)
) STRICT;
CREATE INDEX il_run_detail_created ON il_run_detail (class, created_at_ms);

-- One row per attempt of a step. The long texts come last: queries that do not read them do not
-- visit their pages. For the same reason the table has rowids.
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

-- Triggers that joined an existing run and got its id: the newest 100 of each run.
CREATE TABLE il_run_join (
    tenant     TEXT    NOT NULL,
    run        TEXT    NOT NULL,
    at_ms      INTEGER NOT NULL,
    request_id TEXT    NOT NULL,
    who        TEXT    NOT NULL,
    type       TEXT    NOT NULL, -- of the trigger
    PRIMARY KEY (tenant, run, at_ms, request_id)
) STRICT, WITHOUT ROWID;
