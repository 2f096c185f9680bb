-- 0000--0001-base: what all families share. Version rule: state.version is the schema's version; state.min_version is the
-- oldest version of the code that may still use this schema. A change that older code can live with (a new
-- table, a new column with a default) raises the first only. Functions are no part of the version: they are
-- installed anew whenever their text has changed, and state.functions says which text is installed.

-- One row. Nothing on the way of an op writes it, so it is never a point where callers meet; learning lock order does,
-- at most 4,096 times in the life of a store.
CREATE TABLE state (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    version     int     NOT NULL,
    min_version int     NOT NULL,
    test_clock  boolean NOT NULL, -- made with ?clock=test: time comes with each batch
    functions   text    NOT NULL DEFAULT '', -- fingerprint of the functions that are installed
    order_n     bigint  NOT NULL DEFAULT 0   -- rows of order_edge, so that processes notice new ones
);

-- Fences. They begin at the store's birth in epoch microseconds, so a store that was lost and made anew goes on above
-- what it gave before. CACHE 1: with more, sessions would draw from ranges of their own, and a later grant could
-- have the smaller fence. A sequence is not rolled back and, after a crash, skips numbers: fences only grow.
CREATE SEQUENCE fence_seq AS bigint CACHE 1;
SELECT setval('fence_seq', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);

-- Tickets of waiters, and whatever else only needs an order: runs, jobs. Drawn under the mutex of what is ordered.
CREATE SEQUENCE ticket_seq AS bigint CACHE 1;

-- One row of what a verb answers: the head first, then its parts.
CREATE TYPE reply AS (
    out   jsonb,
    data  bytea, -- of the head: out.value; of a job: the payload
    data2 bytea  -- of a job: the result
);
-- The same from a verb that carries out several requests at once; i counts them from 1.
CREATE TYPE reply_many AS (
    i     int,
    out   jsonb,
    data  bytea,
    data2 bytea
);
