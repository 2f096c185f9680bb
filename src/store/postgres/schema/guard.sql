-- schema/guard.sql: the user's tables that refuse a write without a current fence.

-- One row per guarded table. The sequence refused_RELATION counts its refusals, because a sequence
-- is not rolled back with the refused transaction. `relation` is the number that the guard's
-- triggers have as an argument: at first the table's OID, but in a restored database only a number.
CREATE TABLE guard (
    relation oid    PRIMARY KEY,
    key      text   NOT NULL, -- as it was given: 'event:{event_id}'
    tenant   text   NOT NULL
);
