-- 0001--0002: runs. A lease and a waiter know the run that they belong to (its seq; 0 = none).
ALTER TABLE il_lease ADD COLUMN run INTEGER NOT NULL DEFAULT 0;
ALTER TABLE il_waiter ADD COLUMN run INTEGER NOT NULL DEFAULT 0;

-- Runs, live and ended: PENDING (1), RUNNING (2), or how it ended.
CREATE TABLE il_run (
    seq        INTEGER PRIMARY KEY, -- order of starts, a ticket
    tenant     TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    holder     TEXT    NOT NULL, -- who executes it, or waits to; '' for a slot
    fence      INTEGER NOT NULL, -- of its lease, also of one that is only offered; 0 = none
    ticket     INTEGER NOT NULL, -- of its waiter; 0 = none
    state      INTEGER NOT NULL,
    cancelled  INTEGER NOT NULL, -- a stop was asked for
    finished   INTEGER NOT NULL, -- it ended by a finish
    error      TEXT    NOT NULL, -- why it should stop; why it ended
    trigger_   TEXT    NOT NULL,
    by_        TEXT    NOT NULL,
    meta       TEXT    NOT NULL,
    stage      TEXT    NOT NULL,
    progress   INTEGER NOT NULL,
    n_joined   INTEGER NOT NULL,
    log_bytes  INTEGER NOT NULL, -- written so far
    ttl_ms     INTEGER NOT NULL,
    keep_ms    INTEGER NOT NULL,
    created_ms INTEGER NOT NULL, -- wall clock, like the following; 0 = not yet
    started_ms INTEGER NOT NULL,
    ended_ms   INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    purge_ms   INTEGER           -- when an ended one is purged; NULL while it is live
) STRICT;
CREATE UNIQUE INDEX il_run_id ON il_run (tenant, id);
CREATE INDEX il_run_tenant ON il_run (tenant);   -- listings: an index goes on with the seq
CREATE INDEX il_run_key ON il_run (tenant, key);
CREATE INDEX il_run_live ON il_run (tenant, key) WHERE state <= 2;
CREATE INDEX il_run_purge ON il_run (purge_ms) WHERE purge_ms IS NOT NULL;

-- The tail of the runs' logs, in pieces that follow each other. What lies before the last IL_LOG_BYTES_MAX does not count.
CREATE TABLE il_run_log (
    piece  INTEGER PRIMARY KEY,
    run    INTEGER NOT NULL,
    offset INTEGER NOT NULL, -- of its first byte
    data   BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX il_run_log_run ON il_run_log (run, offset);

UPDATE il_state SET version = 2, min_version = 2;
PRAGMA user_version = 2;
