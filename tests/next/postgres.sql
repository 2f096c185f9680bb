-- A made-up step: a column of a table that has rows, and an index on it.
ALTER TABLE run ADD COLUMN next bigint NOT NULL DEFAULT 7;
CREATE INDEX run_next ON run ((next + 0));
