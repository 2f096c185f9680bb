-- schema.sql: version 1 of the schema. Version rule: PRAGMA user_version is the schema's version;
-- il_state.min_version is the oldest version of the code that may still write this schema. A change
-- that is compatible with older code (a new table, a new column with a default) raises only the
-- first. il_state.version repeats user_version, so that a file whose user_version was set by
-- another program is not mistaken for a store that we can use.

-- One row: the counters and the clock of the store. Every write transaction reads it and most write
-- it.
CREATE TABLE il_state (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    version     INTEGER NOT NULL,
    min_version INTEGER NOT NULL,
    -- last one drawn; starts at the store's birth in epoch microseconds
    fence       INTEGER NOT NULL,
    ticket      INTEGER NOT NULL, -- last one drawn
    boot_id     TEXT    NOT NULL, -- of the boot that offset_ms belongs to
    offset_ms   INTEGER NOT NULL, -- lease time = offset_ms + CLOCK_BOOTTIME
    mark_ms     INTEGER NOT NULL, -- lease time of the last commit; time never goes below it
    seed        INTEGER NOT NULL, -- of the hashes in il_ended
    ended_seq   INTEGER NOT NULL, -- last row of il_ended
    order_n     INTEGER NOT NULL, -- rows of il_order, so that processes notice new ones
    test_clock  INTEGER NOT NULL
) STRICT;

-- Live leases: OFFERED, HELD, CLOSING. An ended lease leaves this table at once.
CREATE TABLE il_lease (
    tenant     TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    fence      INTEGER NOT NULL,
    holder     TEXT    NOT NULL,
    root       TEXT    NOT NULL, -- of the holder: the unit of work
    mode       INTEGER NOT NULL,
    permits    INTEGER NOT NULL,
    state      INTEGER NOT NULL,
    ttl_ms     INTEGER NOT NULL,
    settle_ms  INTEGER NOT NULL,
    granted_ms INTEGER NOT NULL,
    renewed_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    meta       TEXT    NOT NULL,
    place      TEXT    NOT NULL,
    reason     TEXT    NOT NULL, -- why it was broken, or ''
    run        INTEGER NOT NULL, -- seq of the run that it belongs to; 0 = none
    PRIMARY KEY (tenant, key, fence)
) STRICT, WITHOUT ROWID;
CREATE INDEX il_lease_expires ON il_lease (expires_ms);
CREATE INDEX il_lease_root ON il_lease (tenant, root);

-- Waiters, in the order of their tickets. verdict: the cycle it was cancelled for, or ''.
CREATE TABLE il_waiter (
    ticket      INTEGER PRIMARY KEY,
    tenant      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    holder      TEXT    NOT NULL,
    root        TEXT    NOT NULL,
    mode        INTEGER NOT NULL,
    permits     INTEGER NOT NULL,
    ttl_ms      INTEGER NOT NULL,
    settle_ms   INTEGER NOT NULL,
    queued_ms   INTEGER NOT NULL,
    seen_ms     INTEGER NOT NULL,
    deadline_ms INTEGER NOT NULL,
    drop_ms     INTEGER NOT NULL, -- min(deadline_ms, seen_ms + 15 s): dead from then on
    meta        TEXT    NOT NULL,
    place       TEXT    NOT NULL,
    verdict     TEXT    NOT NULL,
    run         INTEGER NOT NULL -- as in il_lease
) STRICT;
CREATE UNIQUE INDEX il_waiter_key ON il_waiter (tenant, key, ticket);
CREATE UNIQUE INDEX il_waiter_holder ON il_waiter (tenant, key, holder);
CREATE INDEX il_waiter_root ON il_waiter (tenant, root);
CREATE INDEX il_waiter_drop ON il_waiter (drop_ms);

-- Remembers that (tenant, key, holder) ended: one row per commit, in order of time. Processes keep
-- an index of it in memory and read what others have added; so adding is an append, and a lookup
-- needs no query.
CREATE TABLE il_ended (
    seq      INTEGER PRIMARY KEY, -- il_state.ended_seq counts along
    ended_ms INTEGER NOT NULL,
    entries  BLOB    NOT NULL     -- 24 bytes each, see sqlite/ended.c
) STRICT;

-- Learned lock order: a key of class `first` was held when one of class `then_` was taken.
CREATE TABLE il_order (
    tenant      TEXT NOT NULL,
    first       TEXT NOT NULL,
    then_       TEXT NOT NULL,
    first_place TEXT NOT NULL,
    then_place  TEXT NOT NULL,
    against     INTEGER NOT NULL, -- the opposite was known when it was learned
    PRIMARY KEY (tenant, first, then_)
) STRICT, WITHOUT ROWID;

-- What happened to keys: expiries, breaks, refusals.
CREATE TABLE il_history (
    id      INTEGER PRIMARY KEY,
    tenant  TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    last_ms INTEGER NOT NULL, -- of the newest event, on the wall clock
    events  BLOB    NOT NULL  -- see core/history.c
) STRICT;
CREATE UNIQUE INDEX il_history_key ON il_history (tenant, key);
CREATE INDEX il_history_due ON il_history (last_ms);
CREATE INDEX il_history_oldest ON il_history (tenant, last_ms, key);

-- How many rows of il_history a tenant has.
CREATE TABLE il_history_size (
    tenant TEXT    PRIMARY KEY,
    n      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Runs, live (PENDING, RUNNING) and ended.
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
CREATE INDEX il_run_state ON il_run (tenant, state); -- listings: an index goes on with the seq
CREATE INDEX il_run_key ON il_run (tenant, key, state);
CREATE INDEX il_run_live ON il_run (tenant, key) WHERE state <= @RUN_RUNNING@;
-- This index serves to count the runs of a class that a tenant has created since midnight. The
-- class is the part of the key before its first colon.
CREATE INDEX il_run_day ON il_run (tenant, substr(key, 1, instr(key || ':', ':') - 1), created_ms);
CREATE INDEX il_run_purge ON il_run (purge_ms) WHERE purge_ms IS NOT NULL;

-- The tail of the runs' logs, in consecutive pieces. Anything before the last IL_LOG_BYTES_MAX does
-- not count.
CREATE TABLE il_run_log (
    piece  INTEGER PRIMARY KEY,
    run    INTEGER NOT NULL,
    offset INTEGER NOT NULL, -- of its first byte
    data   BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX il_run_log_run ON il_run_log (run, offset);

-- Admitted starts of runs, for rates: 60 slots of each window (span_ms), a ring.
CREATE TABLE il_rate (
    tenant TEXT NOT NULL, class TEXT NOT NULL, span_ms INTEGER NOT NULL, place INTEGER NOT NULL,
    slot INTEGER NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY (tenant, class, span_ms, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX il_rate_slot ON il_rate (span_ms, slot); -- what sweeps delete

-- Idempotency keys. A claim is renewed while `response` is still NULL, so a large response is
-- written once. It comes last: the columns before it are read without it.
CREATE TABLE il_once (
    id          INTEGER PRIMARY KEY,
    tenant      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    attempt     TEXT    NOT NULL,
    token       INTEGER NOT NULL,
    fingerprint BLOB    NOT NULL,
    state       INTEGER NOT NULL, -- ONCE_RUNNING, ONCE_DONE
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

-- Cached values. Builds are in a separate table: renewing one must not write a large value again.
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

-- Queues. The rules are in src/core/queue.md; why the tables have this shape, in
-- src/store/README.md.

-- A queue: settings, and totals since it was created. Jobs refer to it by number.
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
    keep_failed_ms          INTEGER NOT NULL,
    processing_timeout_ms INTEGER NOT NULL,
    executing_timeout_ms  INTEGER NOT NULL,
    paused                INTEGER NOT NULL,
    reason                TEXT    NOT NULL,
    pushed                INTEGER NOT NULL,
    claimed               INTEGER NOT NULL,
    completed             INTEGER NOT NULL,
    failed_attempts       INTEGER NOT NULL,
    failed                INTEGER NOT NULL,
    snoozed               INTEGER NOT NULL,
    cancelled             INTEGER NOT NULL,
    recovered             INTEGER NOT NULL,
    duplicates            INTEGER NOT NULL,
    stale                 INTEGER NOT NULL,
    n_scheduled           INTEGER NOT NULL, -- jobs by state, changed with their rows
    n_ready               INTEGER NOT NULL,
    n_running             INTEGER NOT NULL,
    n_failed              INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX il_queue_name ON il_queue (tenant, name);

-- A job from its push to its purge: its identity and its payload. Never changes.
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

-- The part of a live job that changes. `lane` is where it waits: 8 * queue + kind, and (ord, at) is
-- its place there:
--   LANE_SCHEDULED  SCHEDULED, by run_at        ord = run_at_ms   at = 0
--   LANE_READY      READY, in claiming order    ord = priority    at = run_at_ms
--   LANE_PARENT     RUNNING, a parent           ord = 0           at = 0
--   LANE_BLOCKED    READY, its group is full    ord = priority    at = run_at_ms
-- and LANE_CLAIMED for the claimed ones of all queues, by expiry: ord = expires_ms, at = 0.
CREATE TABLE il_live (
    seq        INTEGER PRIMARY KEY,
    queue      INTEGER NOT NULL,
    lane       INTEGER NOT NULL,
    ord        INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    last       INTEGER NOT NULL, -- how the last attempt ended: enum il__job_last
    attempt    INTEGER NOT NULL,
    token      INTEGER NOT NULL,
    flags      INTEGER NOT NULL, -- JOB_FLAG_*
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
CREATE INDEX il_live_kind ON il_live (queue, lane & 7); -- listings: an index goes on with the seq
CREATE INDEX il_live_group ON il_live (queue, grp, lane, ord, at) WHERE grp IS NOT NULL;
CREATE INDEX il_live_parent ON il_live (parent) WHERE parent IS NOT NULL;

-- The same for an ended job. What a claim reads does not grow with these.
CREATE TABLE il_done (
    queue        INTEGER NOT NULL,
    state        INTEGER NOT NULL, -- COMPLETED, FAILED or CANCELLED
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

-- The job that has a unique key, live or ended: the job itself tells whether it still excludes
-- others.
CREATE TABLE il_unique (
    queue INTEGER NOT NULL,
    key   TEXT    NOT NULL,
    seq   INTEGER NOT NULL,
    PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;

-- A worker's last claim: its id, when it was (lease time), and what it returned: (seq, token), 16
-- bytes each.
CREATE TABLE il_worker (
    queue   INTEGER NOT NULL,
    worker  TEXT    NOT NULL,
    claim   TEXT    NOT NULL,
    seen_ms INTEGER NOT NULL,
    jobs    BLOB    NOT NULL,
    PRIMARY KEY (queue, worker)
) STRICT, WITHOUT ROWID;
CREATE INDEX il_worker_seen ON il_worker (seen_ms);

-- For queues with a rate: how many jobs were claimed when, in lease time.
CREATE TABLE il_start (
    queue INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    n     INTEGER NOT NULL,
    PRIMARY KEY (queue, at_ms)
) STRICT, WITHOUT ROWID;

-- Schedules. They refer to their queue by name, because they push like any other caller.
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
CREATE INDEX il_cron_list ON il_cron (tenant, queue, name);

PRAGMA user_version = 1;
