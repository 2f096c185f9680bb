-- 0002--0003: idempotency keys and cached values.

-- Idempotency keys. A claim is renewed while `response` is still NULL, so a large response is written once. It comes last: what
-- stands before it is found without reading it.
CREATE TABLE il_once (
    id          INTEGER PRIMARY KEY,
    tenant      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    attempt     TEXT    NOT NULL,
    token       INTEGER NOT NULL,
    fingerprint BLOB    NOT NULL,
    state       INTEGER NOT NULL, -- 1 RUNNING, 2 DONE
    expires_ms  INTEGER NOT NULL, -- of the claim, lease time
    keep_ms     INTEGER NOT NULL,
    purge_ms    INTEGER NOT NULL, -- RUNNING: lease time, DONE: wall clock
    created_at  INTEGER NOT NULL, -- wall clock
    meta        TEXT    NOT NULL,
    before      TEXT,             -- after a takeover: the meta of the attempt before
    code        INTEGER NOT NULL,
    response    BLOB              -- DONE
) STRICT;
CREATE UNIQUE INDEX il_once_key ON il_once (tenant, key);
CREATE INDEX il_once_purge ON il_once (state, purge_ms);

-- Cached values. Builds are in a table of their own: renewing one must not write a large value again.
CREATE TABLE il_cache_value (
    id          INTEGER PRIMARY KEY,
    tenant      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    filled      INTEGER NOT NULL, -- token of the build that filled it
    began_at    INTEGER NOT NULL, -- wall clock, as the next three
    fresh_until INTEGER NOT NULL,
    stale_until INTEGER NOT NULL,
    purge_at    INTEGER NOT NULL,
    build_ms    INTEGER NOT NULL,
    code        INTEGER NOT NULL,
    negative    INTEGER NOT NULL,
    value       BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX il_cache_value_key ON il_cache_value (tenant, key);
CREATE INDEX il_cache_value_purge ON il_cache_value (purge_at);

-- Who builds which value.
CREATE TABLE il_cache_build (
    tenant     TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    holder     TEXT    NOT NULL,
    token      INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL, -- lease time
    began_ms   INTEGER NOT NULL, -- lease time
    began_at   INTEGER NOT NULL, -- wall clock
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX il_cache_build_expires ON il_cache_build (expires_ms);

UPDATE il_state SET version = 3, min_version = 3;
PRAGMA user_version = 3;
