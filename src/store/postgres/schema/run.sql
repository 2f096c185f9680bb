-- schema/run.sql: runs and their logs. The rules are in src/core/runs.md.

-- Runs, live (PENDING, RUNNING) and ended. Live ones are few and change often, ended ones are many
-- and never change again until they are purged. A stage writes no indexed column, and there is room
-- beside the row: the update stays within the page (HOT).
CREATE TABLE run (
    seq        bigint  NOT NULL,    -- order of starts, a ticket
    tenant     text    COLLATE "C" NOT NULL,
    id         text    COLLATE "C" NOT NULL,
    key        text    COLLATE "C" NOT NULL,
    holder     text    COLLATE "C" NOT NULL, -- who executes it, or waits to; '' for a slot
    fence      bigint  NOT NULL,    -- of its lease, also of one that is only offered; 0 = none
    ticket     bigint  NOT NULL,    -- of its waiter; 0 = none
    state      int     NOT NULL,
    cancelled  int     NOT NULL,    -- 1: a stop was asked for
    finished   int     NOT NULL,    -- 1: it ended by a finish
    error      text    NOT NULL,    -- why it should stop; why it ended
    trigger_   text    NOT NULL,
    by_        text    NOT NULL,
    meta       text    NOT NULL,
    stage      text    NOT NULL DEFAULT '',
    progress   int     NOT NULL DEFAULT -1,
    n_joined   bigint  NOT NULL DEFAULT 0,
    log_bytes  bigint  NOT NULL DEFAULT 0, -- written so far
    ttl_ms     bigint  NOT NULL,
    keep_ms    bigint  NOT NULL,
    created_ms bigint  NOT NULL,    -- wall clock, like the following; 0 = not yet
    started_ms bigint  NOT NULL,
    ended_ms   bigint  NOT NULL DEFAULT 0,
    updated_ms bigint  NOT NULL,
    purge_ms   bigint,              -- when an ended one is purged; NULL while it is live
    live       text    COLLATE "C", -- tenant, 0x1f, key, of a live one; else NULL
    PRIMARY KEY (tenant, seq)       -- listings, newest first
) WITH (fillfactor = 80);

-- Each index begins with an expression that no other one has, and no plain column of another index
-- follows it: for a nearly empty table all indexes cost the same, and a session keeps the plan that
-- it made then. See lock.sql, also for why seq has no tree.
CREATE UNIQUE INDEX run_name ON run ((tenant || E'\x1f' || id));
CREATE INDEX run_seq ON run USING hash (seq);
-- listings of a key and state
CREATE INDEX run_key ON run ((tenant || E'\x1f' || key || E'\x1f' || state::text), (seq + 0));
-- and of a state
CREATE INDEX run_state ON run ((tenant || E'\x1f' || state::text), (seq + 0));
-- what a tenant created of a class since midnight; the class is the key up to its first colon
CREATE INDEX run_day ON run ((tenant || E'\x1f' || split_part(key, ':', 1)), (created_ms + 0));
-- the live ones of a key
CREATE INDEX run_live ON run (live, seq) WHERE live IS NOT NULL;
CREATE INDEX run_purge ON run (purge_ms, seq) WHERE purge_ms IS NOT NULL;   -- what sweeps look at

-- The tail of the runs' logs, in consecutive pieces. Anything before the last 1 MiB does not count.
CREATE TABLE run_log (
    run  bigint NOT NULL,
    at   bigint NOT NULL, -- the offset of its first byte
    data bytea  NOT NULL,
    PRIMARY KEY (run, at)
);

-- The required columns of the lease or waiter of a run.
CREATE TYPE run_hold AS (state int, ttl_ms bigint, due_ms bigint, deadline_ms bigint, reason text);

-- Admitted starts of runs, for rates: 60 slots of each window (span_ms), a ring.
CREATE TABLE rate (
    tenant  text   NOT NULL,
    class   text   NOT NULL,
    span_ms bigint NOT NULL,
    place   int    NOT NULL,
    slot    bigint NOT NULL,
    n       bigint NOT NULL,
    PRIMARY KEY (tenant, class, span_ms, place)
) WITH (fillfactor = 50);
CREATE INDEX rate_slot ON rate ((span_ms + 0), (slot + 0)); -- what sweeps delete
