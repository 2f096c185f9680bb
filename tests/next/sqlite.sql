-- A made-up step: a column of a table that has rows, and an index on it.
ALTER TABLE il_lease ADD COLUMN next INTEGER NOT NULL DEFAULT 7;
CREATE INDEX il_lease_next ON il_lease (next);
UPDATE il_state SET version = 2, min_version = 2;
PRAGMA user_version = 2;
