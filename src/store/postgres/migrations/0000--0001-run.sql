-- 0000--0001-run: runs and their logs. The rules are in src/core/runs.md.

-- Runs, live and ended: PENDING (1), RUNNING (2), or how it ended. Live ones are few and change often, ended ones are many and
-- never change again, but for being purged. A stage writes no column that an index looks at, and there is room beside the row: it
-- stays a change within the page (HOT).
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

-- No two indexes begin with the same column, and seq has no tree: see 0000--0001-lock.
CREATE UNIQUE INDEX run_id ON run (id, tenant);
CREATE INDEX run_seq ON run USING hash (seq);
CREATE INDEX run_key ON run (key, tenant, seq);                             -- listings of a key
CREATE INDEX run_live ON run (live, seq) WHERE live IS NOT NULL;            -- the live ones of a key
CREATE INDEX run_purge ON run (purge_ms, seq) WHERE purge_ms IS NOT NULL;   -- what sweeps look at

-- The tail of the runs' logs, in pieces that follow each other. What lies before the last 1 MiB does not count.
CREATE TABLE run_log (
    run  bigint NOT NULL,
    at   bigint NOT NULL, -- the offset of its first byte
    data bytea  NOT NULL,
    PRIMARY KEY (run, at)
);

-- What is needed of the lease or waiter of a run.
CREATE TYPE run_hold AS (state int, ttl_ms bigint, due_ms bigint, deadline_ms bigint, reason text);
