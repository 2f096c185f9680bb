-- schema/lock.sql: leases, waiters and learned lock order. The rules are in src/core/README.md.

-- Leases, live (OFFERED, HELD, CLOSING) and ended (RELEASED, EXPIRED, BROKEN).
--
-- The newest fence of a key is authoritative. A release marks the row as ended, in place: that row
-- remembers that this (key, holder) has ended, and a sweep deletes it a minute later. Deleting and
-- inserting instead would leave dead entries where the next acquire of the key looks first, for as
-- long as any old snapshot is open; this way a hot key stays fast.
--
-- Renewing and releasing change no indexed column, so nothing is written to an index (a HOT
-- update). Half of a page is left free for that. None of these columns is in the primary key, so
-- that both can pass beside the FOR KEY SHARE of check_fence().
CREATE TABLE lease (
    tenant     text     COLLATE "C" NOT NULL,
    key        text     COLLATE "C" NOT NULL,
    fence      bigint   NOT NULL,
    run        bigint   NOT NULL,           -- seq of the run that it belongs to, 0 = none
    ttl_ms     bigint   NOT NULL,
    settle_ms  bigint   NOT NULL,
    granted_ms bigint   NOT NULL,           -- granted or offered
    renewed_ms bigint   NOT NULL,
    expires_ms bigint   NOT NULL,
    -- when a sweep must look at the row: not after it expires; see lock_sweep.sql
    look_ms    bigint   NOT NULL,
    -- smallest fence of the key that was live at the grant; 0: it was alone
    floor      bigint   NOT NULL,
    head       bigint   NOT NULL,           -- no waiter of the key has a smaller ticket
    permits    int      NOT NULL,
    mode       smallint NOT NULL,
    state      smallint NOT NULL,
    -- NULL: it is live, or was an offer that was not taken, which is not remembered
    ended_ms   bigint,
    holder     text     COLLATE "C" NOT NULL,
    -- the unit of work: tenant, 0x1f, holder up to its first '/'; see unit_of(), unit_tidy()
    root       text     COLLATE "C" NOT NULL,
    -- tenant, 0x1f, key: if it is live and not exclusive; otherwise NULL
    live       text     COLLATE "C",
    meta       text     NOT NULL,
    place      text     NOT NULL,
    reason     text     NOT NULL,           -- why it was broken, or ''
    PRIMARY KEY (tenant, key, fence)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.5);

-- Here and below, a column is in one index only, or in the others as part of an expression. With
-- the statistics of an empty table all indexes look alike to the planner: it may choose any that
-- has one of the given columns, at any position, and the session keeps that plan while the table
-- grows.

-- What a unit of work holds (lock order, deadlocks), and how a (key, holder) has ended.
CREATE INDEX lease_unit ON lease (root, (holder || E'\x1f' || key));
-- The live leases of a key that is shared or a semaphore.
CREATE INDEX lease_live ON lease (live, fence) WHERE live IS NOT NULL;
-- What sweeps look at.
CREATE INDEX lease_look ON lease (look_ms);

-- Where sweeps start in lease_look: for overdue rows, for rows to be forgotten; and when a sweep
-- last checked all of it. Sequences, because they have no old versions: those of a row would
-- accumulate with an old snapshot, too. See sweep_marks().
CREATE SEQUENCE look_due  AS bigint MINVALUE 0 START 0;
CREATE SEQUENCE look_gone AS bigint MINVALUE 0 START 0;
CREATE SEQUENCE look_full AS bigint MINVALUE 0 START 0;

-- Waiters, in the order of their tickets. verdict: the cycle it was cancelled for, or ''.
CREATE TABLE waiter (
    tenant      text     COLLATE "C" NOT NULL,
    key         text     COLLATE "C" NOT NULL,
    ticket      bigint   NOT NULL,
    run         bigint   NOT NULL,
    ttl_ms      bigint   NOT NULL,
    settle_ms   bigint   NOT NULL,
    queued_ms   bigint   NOT NULL,
    seen_ms     bigint   NOT NULL,           -- last sign of life
    deadline_ms bigint   NOT NULL,           -- 2^63 - 1: never
    drop_ms     bigint   NOT NULL,           -- min(deadline_ms, seen_ms + 15 s): dead from then on
    permits     int      NOT NULL,
    mode        smallint NOT NULL,
    holder      text     COLLATE "C" NOT NULL,
    root        text     COLLATE "C" NOT NULL, -- as in lease
    meta        text     NOT NULL,
    place       text     NOT NULL,
    verdict     text     NOT NULL,
    PRIMARY KEY (tenant, key, ticket)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.5);
-- What a unit of work waits for; and a holder waits once for a key.
CREATE UNIQUE INDEX waiter_unit ON waiter (root, (holder || E'\x1f' || key));
-- What sweeps look at.
CREATE INDEX waiter_drop ON waiter ((drop_ms + 0));
-- By ticket alone, for verdicts. Not a tree: no plan shall scan all queues in ticket order.
CREATE INDEX waiter_ticket ON waiter USING hash (ticket);

-- What an op must know about a key before it decides: see key_look().
CREATE TYPE key_view AS (
    head    bigint,  -- where its queue begins
    newest  bigint,  -- fence of its newest live lease, 0 = none
    oldest  bigint,  -- of the oldest that may have others beside it, 0 = none
    nx      bigint,  -- live leases: exclusive, shared, permits; and N of the latter
    ns      bigint,
    np      bigint,
    n_live  int,
    waits   boolean, -- there are waiters, cancelled ones too
    queued  boolean, -- somebody waits who is still to be served
    overdue boolean  -- a lease or a waiter
);

-- What happened to keys: expiries, breaks, refusals. Their text is replaced as a whole.
CREATE TABLE history (
    tenant  text   COLLATE "C" NOT NULL,
    key     text   COLLATE "C" NOT NULL,
    last_ms bigint NOT NULL, -- of the newest event, on the wall clock
    events  jsonb  NOT NULL, -- see functions/history.sql
    PRIMARY KEY (tenant, key)
);
-- Which goes if there are too many.
CREATE INDEX history_oldest ON history ((tenant || ''), last_ms);
-- What sweeps look at.
CREATE INDEX history_due ON history ((last_ms + 0));

-- Learned lock order: a key of class `first` was held when one of class `then_` was taken.
-- state.order_n counts the rows; n is the order in which they were learned.
CREATE TABLE order_edge (
    tenant      text COLLATE "C" NOT NULL,
    first       text COLLATE "C" NOT NULL,
    then_       text COLLATE "C" NOT NULL,
    n           int  NOT NULL,
    first_place text NOT NULL,
    then_place  text NOT NULL,
    against     int  NOT NULL, -- 1: the opposite was known when it was learned
    PRIMARY KEY (tenant, first, then_)
);
