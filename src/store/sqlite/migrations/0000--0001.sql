-- 0000--0001: the first schema. Version rule: PRAGMA user_version is the schema's version; il_state.min_version
-- is the oldest version of the code that may still write this schema. A change that older code can live with
-- (a new table, a new column with a default) raises the first only. il_state.version repeats user_version, so that
-- a file whose user_version was set by something else is not mistaken for a store that we can live with.

-- One row: the counters and the clock of the store. Every write transaction reads it and most write it.
CREATE TABLE il_state (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    version     INTEGER NOT NULL,
    min_version INTEGER NOT NULL,
    fence       INTEGER NOT NULL, -- last one drawn; starts at the store's birth in epoch microseconds
    ticket      INTEGER NOT NULL, -- last one drawn
    boot_id     TEXT    NOT NULL, -- of the boot that offset_ms belongs to
    offset_ms   INTEGER NOT NULL, -- lease time = offset_ms + CLOCK_BOOTTIME
    mark_ms     INTEGER NOT NULL, -- lease time of the last commit; time never goes below it
    seed        INTEGER NOT NULL, -- of the hashes in il_ended
    ended_seq   INTEGER NOT NULL, -- last row of il_ended
    order_n     INTEGER NOT NULL, -- rows of il_order, so that processes notice new ones
    test_clock  INTEGER NOT NULL
) STRICT;

-- Live leases: OFFERED (2), HELD (3), CLOSING (4). An ended lease leaves this table at once.
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
    verdict     TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX il_waiter_key ON il_waiter (tenant, key, ticket);
CREATE UNIQUE INDEX il_waiter_holder ON il_waiter (tenant, key, holder);
CREATE INDEX il_waiter_root ON il_waiter (tenant, root);
CREATE INDEX il_waiter_drop ON il_waiter (drop_ms);

-- The memory that (tenant, key, holder) ended: one row per commit, in the order of time. Processes keep an
-- index of it in memory and read what others have added; so adding is an append, and looking is no query.
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
    PRIMARY KEY (tenant, first, then_)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 1;
