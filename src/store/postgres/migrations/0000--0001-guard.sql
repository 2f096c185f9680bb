-- 0000--0001, guard: tables of the user's own that refuse a write without a current fence.

-- One row per guarded table. How often it has refused is counted by the sequence refused_OID: what a sequence counts is not
-- undone with the transaction that was refused.
CREATE TABLE guard (
    relation oid    PRIMARY KEY,
    key      text   NOT NULL, -- as it was given: 'event:{event_id}'
    tenant   text   NOT NULL,
    made_ms  bigint NOT NULL
);
