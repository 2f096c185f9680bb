-- schema/base.sql: what all families share. Version rule: state.version is the schema's version;
-- state.min_version is the oldest version of the code that may still use this schema. A change that
-- is compatible with older code (a new table, a new column with a default) raises only the first.
-- Functions are not part of the version: they are reinstalled whenever their text has changed, and
-- state.functions identifies the installed text. CREATE OR REPLACE cannot change the parameters or
-- the result of a function: a step of the schema drops the old form, and so raises the version.

-- One row. No op writes it, so callers never contend for it; learning lock order does, at most
-- 4,096 times in the life of a store.
CREATE TABLE state (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    version     int     NOT NULL,
    min_version int     NOT NULL,
    test_clock  boolean NOT NULL, -- made with ?clock=test: time comes with each batch
    functions   text    NOT NULL DEFAULT '', -- fingerprint of the functions that are installed
    -- rows of order_edge, so that processes notice new ones
    order_n     bigint  NOT NULL DEFAULT 0
);

-- Fences. They start at the store's creation time in epoch microseconds, so a store that was lost
-- and created again continues above what it granted before. CACHE 1: with more, each session would
-- draw from its own range, and a later grant could have the smaller fence. A sequence is not rolled
-- back and, after a crash, skips numbers: fences only grow.
CREATE SEQUENCE fence_seq AS bigint CACHE 1;
SELECT setval('fence_seq', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);

-- Tickets of waiters, and other numbers that only need an order: runs, jobs. Drawn under the mutex
-- of what is ordered.
CREATE SEQUENCE ticket_seq AS bigint CACHE 1;

-- One row of a verb's reply: the head first, then its parts.
CREATE TYPE reply AS (
    out   jsonb,
    data  bytea, -- of the head: out.value; of a job: the payload
    data2 bytea  -- of a job: the result
);
