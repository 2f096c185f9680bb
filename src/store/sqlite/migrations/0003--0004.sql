-- 0003--0004: queues. The rules are in src/core/queue.md; why the tables have this shape, in src/store/README.md.

-- A queue: settings, and totals since it was made. Jobs refer to it by number.
CREATE TABLE il_queue (
    no                    INTEGER PRIMARY KEY,
    tenant                TEXT    NOT NULL,
    name                  TEXT    NOT NULL,
    strategy              INTEGER NOT NULL,
    max_attempts          INTEGER NOT NULL,
    lease_ms              INTEGER NOT NULL,
    backoff_ms            INTEGER NOT NULL,
    backoff_max_ms        INTEGER NOT NULL,
    group_limit           INTEGER NOT NULL,
    rate_n                INTEGER NOT NULL,
    rate_ms               INTEGER NOT NULL,
    keep_ms               INTEGER NOT NULL,
    keep_dead_ms          INTEGER NOT NULL,
    processing_timeout_ms INTEGER NOT NULL,
    executing_timeout_ms  INTEGER NOT NULL,
    paused                INTEGER NOT NULL,
    reason                TEXT    NOT NULL,
    pushed                INTEGER NOT NULL,
    claimed               INTEGER NOT NULL,
    completed             INTEGER NOT NULL,
    failed                INTEGER NOT NULL,
    dead                  INTEGER NOT NULL,
    snoozed               INTEGER NOT NULL,
    cancelled             INTEGER NOT NULL,
    recovered             INTEGER NOT NULL,
    duplicates            INTEGER NOT NULL,
    stale                 INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX il_queue_name ON il_queue (tenant, name);

-- A job from its push to its purge: who it is and what it carries. Never changes.
CREATE TABLE il_job (
    seq             INTEGER PRIMARY KEY,
    queue           INTEGER NOT NULL,
    tenant          TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    priority        INTEGER NOT NULL,
    max_attempts    INTEGER NOT NULL,
    is_parent       INTEGER NOT NULL,
    n_children      INTEGER NOT NULL,
    created_ms      INTEGER NOT NULL,
    unique_until_ms INTEGER NOT NULL,
    parent          INTEGER, -- its seq
    ordinal         INTEGER, -- 1 for the parent's first child, and so on
    parent_id       TEXT,
    grp             TEXT,
    unique_key      TEXT,
    payload         BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX il_job_id ON il_job (tenant, id);
CREATE INDEX il_job_parent ON il_job (parent, ordinal) WHERE parent IS NOT NULL;

-- What changes of a live job. `lane` is where it waits: 8 * queue + kind, and (ord, at) its place there:
--   1  SCHEDULED, by run_at        ord = run_at_ms   at = 0
--   2  READY, in claiming order    ord = priority    at = run_at_ms
--   3  RUNNING, a parent           ord = 0           at = 0
--   4  READY, its group is full    ord = priority    at = run_at_ms
-- and lane 0 for the claimed ones of all queues, by expiry: ord = expires_ms, at = 0.
CREATE TABLE il_live (
    seq        INTEGER PRIMARY KEY,
    queue      INTEGER NOT NULL,
    lane       INTEGER NOT NULL,
    ord        INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    last       INTEGER NOT NULL, -- how the last attempt ended: enum il__job_last
    attempt    INTEGER NOT NULL,
    token      INTEGER NOT NULL,
    flags      INTEGER NOT NULL, -- 1 cancelled, 2 silent, 4 sealed
    progress   INTEGER NOT NULL,
    run_at_ms  INTEGER NOT NULL,
    lease_ms   INTEGER NOT NULL,
    started_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    parent     INTEGER,
    grp        TEXT,
    worker     TEXT    NOT NULL,
    error      TEXT    NOT NULL,
    message    TEXT    NOT NULL
) STRICT;
CREATE INDEX il_live_lane ON il_live (lane, ord, at);
CREATE INDEX il_live_queue ON il_live (queue);
CREATE INDEX il_live_group ON il_live (queue, grp, lane, ord, at) WHERE grp IS NOT NULL;
CREATE INDEX il_live_parent ON il_live (parent) WHERE parent IS NOT NULL;

-- The same of an ended job. What a claim looks at does not grow with these.
CREATE TABLE il_done (
    queue        INTEGER NOT NULL,
    state        INTEGER NOT NULL, -- 4 COMPLETED, 5 FAILED, 6 CANCELLED
    seq          INTEGER NOT NULL,
    purge_at_ms  INTEGER NOT NULL,
    last         INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    token        INTEGER NOT NULL,
    flags        INTEGER NOT NULL,
    progress     INTEGER NOT NULL,
    run_at_ms    INTEGER NOT NULL,
    started_ms   INTEGER NOT NULL,
    completed_ms INTEGER NOT NULL,
    worker       TEXT    NOT NULL,
    error        TEXT    NOT NULL,
    message      TEXT    NOT NULL,
    result       BLOB    NOT NULL,
    PRIMARY KEY (queue, state, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX il_done_purge ON il_done (purge_at_ms, seq);

-- Who has a unique key, live or ended: the job itself says whether it still keeps others from it.
CREATE TABLE il_unique (
    queue INTEGER NOT NULL,
    key   TEXT    NOT NULL,
    seq   INTEGER NOT NULL,
    PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;

-- A worker's last claim: its id, when it was (lease time), and what it gave: (seq, token), 16 bytes each.
CREATE TABLE il_worker (
    queue   INTEGER NOT NULL,
    worker  TEXT    NOT NULL,
    claim   TEXT    NOT NULL,
    seen_ms INTEGER NOT NULL,
    jobs    BLOB    NOT NULL,
    PRIMARY KEY (queue, worker)
) STRICT, WITHOUT ROWID;
CREATE INDEX il_worker_seen ON il_worker (seen_ms);

-- Of queues with a rate: how many jobs were claimed when, in lease time.
CREATE TABLE il_start (
    queue INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    n     INTEGER NOT NULL,
    PRIMARY KEY (queue, at_ms)
) STRICT, WITHOUT ROWID;

-- Schedules. Their queue is a name here: they push as anybody else does.
CREATE TABLE il_cron (
    tenant       TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    queue        TEXT    NOT NULL,
    schedule     TEXT    NOT NULL,
    missed       INTEGER NOT NULL,
    priority     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    n_ticks      INTEGER NOT NULL,
    next_ms      INTEGER NOT NULL, -- wall clock
    last_ms      INTEGER NOT NULL,
    payload      BLOB    NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX il_cron_next ON il_cron (next_ms);
CREATE INDEX il_cron_queue ON il_cron (tenant, queue, next_ms);

UPDATE il_state SET version = 4, min_version = 4;
PRAGMA user_version = 4;
