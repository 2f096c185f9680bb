-- 0000--0001: the first version. Version rule: il_data_meta.version is the version of these tables, min_version the oldest version of the code that may still use
-- them. A change that older code can live with (a new table, a new column with a default) raises the first only. The store's own version is another one.
CREATE TABLE il_data_meta (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    version     INTEGER NOT NULL,
    min_version INTEGER NOT NULL
) STRICT;

-- What only servers know: `pepper`, unless it is in a file of its own, and `pepper_check`, an HMAC with it, by which another pepper is noticed.
CREATE TABLE il_secret (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL -- hex digits
) STRICT, WITHOUT ROWID;

-- 0 is no limit.
CREATE TABLE il_tenant (
    id                  TEXT PRIMARY KEY,
    name                TEXT    NOT NULL,
    requests_per_second INTEGER NOT NULL,
    burst               INTEGER NOT NULL,
    waiters             INTEGER NOT NULL,
    streams             INTEGER NOT NULL,
    locks               INTEGER NOT NULL,
    jobs                INTEGER NOT NULL,
    created_at_ms       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE il_api_key (
    id            TEXT PRIMARY KEY, -- UUIDv7: in order of age
    tenant        TEXT    NOT NULL REFERENCES il_tenant (id),
    name          TEXT    NOT NULL,
    role          TEXT    NOT NULL, -- none, read, write, operator, admin
    permissions   TEXT    NOT NULL, -- separated by spaces
    prefix        TEXT    NOT NULL,
    hash          TEXT    NOT NULL, -- HMAC-SHA-256(pepper, key) in hex digits; the key itself is nowhere
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL, -- 0 = never
    used_at_ms    INTEGER NOT NULL DEFAULT 0,
    revoked_at_ms INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX il_api_key_hash ON il_api_key (hash);
CREATE INDEX il_api_key_tenant ON il_api_key (tenant, id);

-- AUTOINCREMENT: the number of what was purged is never used again.
CREATE TABLE il_audit (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms   INTEGER NOT NULL,
    tenant  TEXT    NOT NULL,
    who     TEXT    NOT NULL,
    act     TEXT    NOT NULL,
    what    TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    outcome TEXT    NOT NULL,
    details TEXT    NOT NULL
) STRICT;
CREATE INDEX il_audit_at ON il_audit (at_ms);
CREATE INDEX il_audit_tenant ON il_audit (tenant, seq);
CREATE INDEX il_audit_act ON il_audit (act, seq);
CREATE INDEX il_audit_both ON il_audit (tenant, act, seq);
