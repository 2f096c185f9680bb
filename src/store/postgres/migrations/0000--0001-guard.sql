-- 0000--0001, guard: tables of the user's own that refuse a write without a current fence.

-- One row per guarded table. How often it has refused is counted by the sequence refused_RELATION: what a sequence counts is not
-- undone with the transaction that was refused. `relation` is the number that the guard's triggers have as an argument: at first the table's, but in
-- a database that was restored from a dump only a number.
CREATE TABLE guard (
    relation oid    PRIMARY KEY,
    key      text   NOT NULL, -- as it was given: 'event:{event_id}'
    tenant   text   NOT NULL,
    made_ms  bigint NOT NULL
);
